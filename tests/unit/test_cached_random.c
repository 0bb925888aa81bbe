/* Processes rename, post, like, hide, delete and read with a cache concurrently, while memcached is
 * killed, stalled and flushed and posts move to the archive: a read is never older than what was
 * acknowledged before it began, and never shows what was deleted or hidden before.
 *
 * SLUICE_TEST_SEED=N repeats the random choices, but not the scheduling of the processes. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/model/id.h"
#include "src/social/likes.h"
#include "src/tasks/worker.h"
#include "tests/support/cached_reader.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/core_group.h"
#include "tests/support/draw.h"
#include "tests/support/memcached_server.h"

enum {
    ACTORS = 4, /* each is a user, for whom nobody else writes */
    STEPS = 400,
    POSTS_MAX = ACTORS * STEPS,
    ASKED = 8,
    PROFILE_MAX = 3,
    TIMEOUT_MS = 200,
    STALL_MS = 300,
};

enum post_state { POST_NONE, POST_THERE, POST_GOING, POST_GONE };

struct post {
    _Atomic uint64_t id;
    _Atomic int author, state;
    _Atomic unsigned liking, liked; /* started, acknowledged */
};

/* Odd while it changes; even ones alternate between shown and hidden. */
typedef _Atomic unsigned hide_state;

static struct shared {
    _Atomic unsigned naming[ACTORS],
        named[ACTORS];                /* number of the newest name: started, acknowledged */
    hide_state hides[ACTORS][ACTORS]; /* author, reader; % 4: 0 shown, 2 hidden */
    struct post posts[POSTS_MAX];
    _Atomic size_t post_count;
    _Atomic uint64_t hits, shown;
    _Atomic bool is_over;
} * shared;

static struct memcached_server server;
static char folder[64], path[96], url[128];
static uint64_t users[ACTORS];

/* ---- an actor, in its own process: cmocka cannot be used here ---- */

static int self;
static struct cached_reader reader;
static bool has_liked[POSTS_MAX];

static _Noreturn void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void complain(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fprintf(stderr, "actor %d: ", self);
    vfprintf(stderr, format, args);
    fprintf(stderr, "\n");
    va_end(args);
    _exit(EXIT_FAILURE);
}

static int run_write(struct sl_call *call, int built, uint64_t *ret_id)
{
    struct sl_written written;
    redisReply *reply = NULL;
    int r = built;

    if (r == 0)
        r = sl_redis_link_run(reader.link, call, &reply, &reader.failure);
    if (r == 0)
        r = sl_write_reply(reply, &written, &reader.failure);
    if (r == 0 && ret_id)
        *ret_id = written.id;
    freeReplyObject(reply);
    sl_call_done(call);
    return r;
}

static void must(int r, const char *what)
{
    if (r < 0)
        complain("%s: %s", what, reader.failure.text);
}

static struct sl_user_ref me(void)
{
    return sl_user_by_id(users[self]);
}

static void act_rename(void)
{
    const struct sl_user_ref user = me();
    struct sl_call call = SL_CALL_INIT;
    unsigned version = atomic_load(&shared->named[self]) + 1;
    char name[32];

    snprintf(name, sizeof(name), "name %u", version);
    atomic_store(&shared->naming[self], version);
    must(run_write(&call,
                   sl_user_rename_call(&call, &reader.meta, SL_SLICE_NONE, &user,
                                       sl_slice_str(name), &reader.failure),
                   NULL),
         "rename");
    atomic_store(&shared->named[self], version);
}

static void act_post(void)
{
    const size_t slot = atomic_fetch_add(&shared->post_count, 1);
    struct post *post = &shared->posts[slot];
    const struct sl_user_ref user = me();
    struct sl_call call = SL_CALL_INIT;
    uint64_t id = 0;
    char text[32];

    snprintf(text, sizeof(text), "text %zu.", slot);
    const struct sl_post content = {.text = sl_slice_str(text)};

    must(run_write(
             &call,
             sl_post_call(&call, &reader.meta, SL_SLICE_NONE, &user, &content, &reader.failure),
             &id),
         "post");
    atomic_store(&post->author, self);
    atomic_store(&post->id, id);
    atomic_store(&post->state, POST_THERE);
}

static struct post *draw_post(void)
{
    size_t count = atomic_load(&shared->post_count);

    return count > 0 ? &shared->posts[draw((uint32_t)count)] : NULL;
}

static int delete_archived(uint64_t id)
{
    const struct sl_user_ref user = me();
    struct sl_archive_page page = SL_ARCHIVE_PAGE_INIT;
    struct sl_call call = SL_CALL_INIT;
    int r = sl_archive_find(reader.archive, &id, 1, &page, &reader.failure);

    if (r == 0 && page.count == 0)
        r = failure_set(&reader.failure, -ENOENT, "post %" PRIu64 " is nowhere", id);
    if (r == 0)
        r = run_write(&call,
                      sl_delete_archived_call(&call, &reader.meta, SL_SLICE_NONE, &user, id,
                                              page.posts[0].json, &reader.failure),
                      NULL);
    sl_archive_page_done(&page);
    return r;
}

static void act_delete(void)
{
    const struct sl_user_ref user = me();
    struct post *post = draw_post();
    struct sl_call call = SL_CALL_INIT;
    uint64_t id;
    int r;

    if (!post || atomic_load(&post->state) != POST_THERE || atomic_load(&post->author) != self)
        return;
    atomic_store(&post->state, POST_GOING);
    id = atomic_load(&post->id);
    r = run_write(&call,
                  sl_delete_call(&call, &reader.meta, SL_SLICE_NONE, &user, id, &reader.failure),
                  NULL);
    must(r == -ENOENT ? delete_archived(id) : r, "delete");
    atomic_store(&post->state, POST_GONE);
}

/* An archived, hidden or deleted post cannot be liked; then the result is unknown. */
static void act_like(void)
{
    const struct sl_user_ref user = me();
    struct post *post = draw_post();
    struct sl_call call = SL_CALL_INIT;

    if (!post || atomic_load(&post->state) != POST_THERE || has_liked[post - shared->posts])
        return;
    has_liked[post - shared->posts] = true;
    atomic_fetch_add(&post->liking, 1);
    if (run_write(&call,
                  sl_like_call(&call, &reader.meta, SL_SLICE_NONE, &user, atomic_load(&post->id),
                               &reader.failure),
                  NULL) == 0)
        atomic_fetch_add(&post->liked, 1);
}

static void act_hide(void)
{
    const int other = (self + 1 + (int)draw(ACTORS - 1)) % ACTORS;
    const struct sl_user_ref user = me();
    char name[] = "user0";
    const struct sl_user target = {
        .id = users[other], .login = sl_slice_str(name), .name = sl_slice_str(name)};
    struct sl_call call = SL_CALL_INIT;
    hide_state *state = &shared->hides[self][other];
    bool is_hidden = atomic_load(state) % 4 == 2;
    int r;

    name[4] = (char)('0' + other);
    atomic_fetch_add(state, 1);
    r = is_hidden
            ? sl_unhide_call(&call, &reader.meta, SL_SLICE_NONE, &user, &target, &reader.failure)
            : sl_hide_call(&call, &reader.meta, SL_SLICE_NONE, &user, &target, &reader.failure);
    must(run_write(&call, r, NULL), "hide");
    atomic_fetch_add(state, 1);
}

/* ---- reading ---- */

/* What is known of a post before it is read. */
struct before {
    int state;
    unsigned named, liked, hide;
};

static unsigned number_behind(const char *json, const char *what)
{
    const char *at = strstr(json, what);

    if (!at)
        complain("no %s in %s", what, json);
    return (unsigned)strtoul(at + strlen(what), NULL, 10);
}

static struct before look(const struct post *post)
{
    const int author = atomic_load(&post->author);

    return (struct before){
        .state = atomic_load(&post->state),
        .named = atomic_load(&shared->named[author]),
        .liked = atomic_load(&post->liked),
        .hide = atomic_load(&shared->hides[author][self]),
    };
}

static void check_shown(size_t slot, const struct before *before, const char *json)
{
    const struct post *post = &shared->posts[slot];
    const int author = atomic_load(&post->author);
    unsigned text = number_behind(json, "\"text\":\"text ");
    unsigned name = number_behind(json, "\"name\":\"name ");
    unsigned likes = number_behind(json, "\"likes\":");

    if (before->state == POST_GONE)
        complain("was deleted and is shown: %s", json);
    if (before->hide % 4 == 2 && atomic_load(&shared->hides[author][self]) == before->hide)
        complain("is hidden and shown: %s", json);
    if (text != slot)
        complain("is the text of %zu: %s", slot, json);
    if (name < before->named || name > atomic_load(&shared->naming[author]))
        complain("is called %u, was called %u: %s", name, before->named, json);
    if (likes < before->liked || likes > atomic_load(&post->liking))
        complain("had %u likes: %s", before->liked, json);
    atomic_fetch_add(&shared->shown, 1);
}

static void check_not_shown(size_t slot, const struct before *before)
{
    const struct post *post = &shared->posts[slot];
    unsigned hide = atomic_load(&shared->hides[atomic_load(&post->author)][self]);

    if (before->state == POST_THERE && atomic_load(&post->state) == POST_THERE &&
        before->hide % 4 == 0 && hide == before->hide)
        complain("post %zu is there and not shown", slot);
}

static void act_find(void)
{
    struct cached_posts posts = {.count = 0};
    struct before before[ASKED];
    uint64_t ids[ASKED];
    size_t slots[ASKED], count = 0;

    while (count < ASKED) {
        struct post *post = draw_post();
        bool is_new = post && atomic_load(&post->state) != POST_NONE;

        for (size_t i = 0; is_new && i < count; i++)
            is_new = slots[i] != (size_t)(post - shared->posts);
        if (!is_new)
            break;
        before[count] = look(post);
        ids[count] = atomic_load(&post->id);
        slots[count++] = (size_t)(post - shared->posts);
    }
    must(cached_reader_find(&reader, users[self], ids, count, &posts), "find");
    for (size_t i = 0; i < count; i++) {
        if (posts.json[i].size > 0)
            check_shown(slots[i], &before[i], buffer_str(&posts.json[i]));
        else
            check_not_shown(slots[i], &before[i]);
    }
    cached_posts_done(&posts);
}

/* Reads somebody's profile, or the actor's home timeline, and checks what is on it. */
static void act_list(bool is_home)
{
    static struct before before[POSTS_MAX];
    struct cached_posts posts = {.count = 0};
    size_t count = atomic_load(&shared->post_count);

    for (size_t i = 0; i < count; i++)
        before[i] = look(&shared->posts[i]);
    must(is_home ? cached_reader_home(&reader, users[self], &posts)
                 : cached_reader_profile(&reader, users[self], users[draw(ACTORS)], &posts),
         is_home ? "home" : "profile");
    for (size_t i = 0; i < posts.count; i++) {
        const char *json = posts.json[i].size > 0 ? buffer_str(&posts.json[i]) : NULL;
        size_t slot = json ? number_behind(json, "\"text\":\"text ") : count;

        if (slot < count && before[slot].state != POST_NONE)
            check_shown(slot, &before[slot], json);
    }
    cached_posts_done(&posts);
}

static void open_reader(void)
{
    const struct sl_cache_options cache_options = {.timeout_ms = TIMEOUT_MS, .rest_ms = 1};
    const struct sl_redis_link_options link_options = {.answer_ms = 60000};
    struct sl_redis_address address;

    reader = (struct cached_reader){.meta = core.meta};
    must(sl_redis_address_parse(sl_slice_str(core.url), &address, &reader.failure), "open");
    must(sl_redis_link_open(&address, &link_options, &reader.link, &reader.failure), "open");
    must(sl_cache_open(server.url, core.meta.database_id, &cache_options, &reader.cache,
                       &reader.failure),
         "open");
    must(sl_archive_open(url, core.meta.database_id, SL_ARCHIVE_MAKE, &reader.archive,
                         &reader.failure),
         "open");
}

static _Noreturn void act(int actor)
{
    self = actor;
    draw_begin_as(actor);
    open_reader();
    for (int i = 0; i < STEPS; i++) {
        uint32_t what = draw(100);

        if (what < 5)
            act_rename();
        else if (what < 15)
            act_post();
        else if (what < 20)
            act_delete();
        else if (what < 25)
            act_like();
        else if (what < 27)
            act_hide();
        else if (what < 70)
            act_find();
        else
            act_list(what < 85);
    }
    atomic_fetch_add(&shared->hits, sl_cache_counts(reader.cache)->hits);
    sl_archive_close(reader.archive);
    sl_cache_close(reader.cache);
    sl_redis_link_close(reader.link);
    _exit(EXIT_SUCCESS);
}

/* ---- the other processes ---- */

static _Noreturn void work(void)
{
    const struct sl_worker_options options = {
        .concurrency = 1, .until_empty = true, .archive = url, .cache = server.url};
    struct sl_redis_address address;
    struct failure failure;

    if (sl_redis_address_parse(sl_slice_str(core.url), &address, &failure) < 0)
        _exit(EXIT_FAILURE);
    while (!atomic_load(&shared->is_over)) {
        struct sl_worker *worker;

        if (sl_worker_new(&address, &core.meta, &options, &worker, &failure) < 0 ||
            sl_worker_run(worker, &failure) < 0) {
            fprintf(stderr, "worker: %s\n", failure.text);
            _exit(EXIT_FAILURE);
        }
        sl_worker_free(worker);
    }
    _exit(EXIT_SUCCESS);
}

static pid_t start(void (*run)(int actor), int actor)
{
    pid_t pid;

    fflush(NULL);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        run(actor);
    }
    return pid;
}

static void start_work(int unused)
{
    (void)unused;
    work();
}

static void trouble_memcached(void)
{
    char answer[256];

    switch (draw(8)) {
    case 0:
        memcached_server_kill(&server);
        usleep(1000 * draw(20));
        memcached_server_start(&server);
        break;
    case 1:
        memcached_server_stall(&server);
        usleep(1000 * (draw(4) > 0 ? draw(20) : STALL_MS));
        memcached_server_go_on(&server);
        break;
    case 2:
        memcached_server_say(&server, "flush_all", answer);
        break;
    }
    usleep(1000 * draw(30));
}

static void test_no_read_shows_what_was_over_before_it_began(void **state)
{
    static const char *const ends[] = {"", "-wal", "-shm"};
    char name[128];
    pid_t actors[ACTORS], worker;
    bool is_good = true;
    int status;

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        snprintf(name, sizeof(name), "%s%s", path, ends[i]);
        unlink(name);
    }
    memset(shared, 0, sizeof(*shared));
    snprintf(name, sizeof(name), "%d", PROFILE_MAX);
    core_set(&core, "profile-max", name);
    core_set(&core, "archive", "1");
    for (int i = 0; i < ACTORS; i++) {
        snprintf(name, sizeof(name), "user%d", i);
        assert_int_equal(core_create(&core, name, "name 0", NULL), 0);
        users[i] = core.written.id;
    }
    for (int i = 0; i < ACTORS * ACTORS; i++) {
        char target[16];

        snprintf(name, sizeof(name), "user%d", i / ACTORS);
        snprintf(target, sizeof(target), "user%d", i % ACTORS);
        if (i / ACTORS != i % ACTORS)
            assert_int_equal(core_follow(&core, name, target, NULL), 0);
    }
    worker = start(start_work, 0);
    for (int i = 0; i < ACTORS; i++)
        actors[i] = start(act, i);
    for (int left = ACTORS; left > 0;) {
        trouble_memcached();
        for (int i = 0; i < ACTORS; i++) {
            if (actors[i] == 0 || waitpid(actors[i], &status, WNOHANG) == 0)
                continue;
            is_good = is_good && WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS;
            actors[i] = 0;
            left--;
        }
    }
    atomic_store(&shared->is_over, true);
    assert_int_equal(waitpid(worker, &status, 0), worker);
    assert_true(is_good && WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS);
    print_message("%zu posts, %" PRIu64 " shown, %" PRIu64 " times from the cache\n",
                  atomic_load(&shared->post_count), atomic_load(&shared->shown),
                  atomic_load(&shared->hits));
    assert_true(atomic_load(&shared->hits) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CORE_TEST(test_no_read_shows_what_was_over_before_it_began),
    };
    int failed;

    if (!memcached_server_is_installed())
        return 0;
    draw_begin();
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    snprintf(folder, sizeof(folder), "/tmp/test_cached_random.XXXXXX");
    if (shared == MAP_FAILED || !mkdtemp(folder))
        return 1;
    snprintf(path, sizeof(path), "%s/posts.db", folder);
    snprintf(url, sizeof(url), "sqlite:%s", path);
    memcached_server_init(&server);
    failed = core_group_run(tests);
    memcached_server_done(&server);
    for (size_t i = 0; i < 3; i++) {
        static const char *const ends[] = {"", "-wal", "-shm"};
        char name[128];

        snprintf(name, sizeof(name), "%s%s", path, ends[i]);
        unlink(name);
    }
    rmdir(folder);
    return failed;
}
