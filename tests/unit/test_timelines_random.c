/* Thousands of random operations by users who post, delete, follow, hide, mute and read, compared
 * with a simple model of everybody's home timeline. Push, pull and hybrid must all agree with it,
 * with one shard and with eight:
 *
 * - when all tasks have run, every timeline is that of the model, in one page and in several;
 * - at any moment before that, no timeline shows what its reader may not see.
 *
 * SLUICE_TEST_SEED=N repeats a run; each run prints its seed. SLUICE_TEST_OPERATIONS=N makes it
 * longer. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/database/settings.h"
#include "src/home/home_read.h"
#include "src/model/id.h"
#include "src/model/keys.h"
#include "tests/support/core_group.h"
#include "tests/support/draw.h"

enum { USERS = 10, POSTS = 20000, OPERATIONS = 360, SIZE = 12, CHECK_EVERY = 90 };

struct model_post {
    uint64_t id;
    int author;
    char kind; /* p, f, o, e */
    bool listed[USERS];
    bool is_deleted;
};

static int operations = OPERATIONS;
static uint64_t user_ids[USERS];
static struct model_post posts[POSTS];
static size_t post_count;
static uint32_t upgraded_count; /* number of upgraded shards */
static bool follows[USERS][USERS], hides[USERS][USERS], mutes[USERS][USERS];

static const char *login_of(int user)
{
    static char logins[2][16];
    static int which;

    which = !which;
    snprintf(logins[which], sizeof(logins[which]), "user%d", user);
    return logins[which];
}

static void expect(int r, const char *operation)
{
    if (r != 0)
        fail_msg("seed %" PRIu64 ": %s gave %d (%s)", draw_seed, operation, r, core.failure.text);
}

/* ---- the model ---- */

static bool may_see(int reader, const struct model_post *post)
{
    if (reader == post->author)
        return true;
    if (hides[post->author][reader] || mutes[reader][post->author])
        return false;
    return post->kind == 'p' || (post->kind == 'f' && follows[reader][post->author]) ||
           (post->kind == 'o' && post->listed[reader]) ||
           (post->kind == 'e' && !post->listed[reader]);
}

static bool belongs(int reader, const struct model_post *post)
{
    return !post->is_deleted && (reader == post->author || follows[reader][post->author]) &&
           may_see(reader, post);
}

static int compare_posts(const void *a, const void *b)
{
    const struct model_post *const *left = a, *const *right = b;

    return (*left)->id < (*right)->id ? 1 : -1;
}

static size_t model_timeline(int reader, uint64_t *ret_ids)
{
    static const struct model_post *found[POSTS];
    size_t count = 0;

    for (size_t i = 0; i < post_count; i++) {
        if (belongs(reader, &posts[i]))
            found[count++] = &posts[i];
    }
    qsort(found, count, sizeof(found[0]),
          compare_posts); /* ids of different shards do not grow together */
    if (count > SIZE)
        count = SIZE;
    for (size_t i = 0; i < count; i++)
        ret_ids[i] = found[i]->id;
    return count;
}

/* ---- reading ---- */

static struct sl_home_read *read_page(int reader, uint64_t before, uint64_t after, size_t limit)
{
    const struct sl_user_ref ref = draw(2) ? sl_user_by_id(user_ids[reader])
                                           : sl_user_by_login(sl_slice_str(login_of(reader)));
    const struct sl_home_page page = {.before = before, .after = after, .limit = limit};
    struct sl_home_read *read;

    expect(sl_home_read_new(&read, &core.meta, &ref, &page, &core.failure), "new read");
    expect(sl_home_run(core.link, read, &core.failure), "read");
    return read;
}

static void describe(const char *what, const uint64_t *ids, size_t count)
{
    printf("%s:", what);
    for (size_t i = 0; i < count; i++)
        printf(" %" PRIu64, ids[i]);
    printf("\n");
}

/* The page must be the part of `expected` between the limits. */
static void check_page(int reader, uint64_t before, uint64_t after, size_t limit,
                       const uint64_t *expected, size_t expected_count)
{
    struct sl_home_read *read = read_page(reader, before, after, limit);
    uint64_t want[SIZE], got[SL_HOME_PAGE_MAX];
    size_t count = 0;

    for (size_t i = 0; i < expected_count && count < limit; i++) {
        if ((before == 0 || expected[i] < before) && expected[i] > after)
            want[count++] = expected[i];
    }
    for (size_t i = 0; i < sl_home_read_count(read); i++)
        got[i] = sl_home_read_at(read, i)->id;
    if (sl_home_read_count(read) != count || memcmp(got, want, count * sizeof(got[0])) != 0) {
        describe("wanted", want, count);
        describe("got", got, sl_home_read_count(read));
        fail_msg("seed %" PRIu64 ": reader %d, before %" PRIu64 ", after %" PRIu64 ", limit %zu",
                 draw_seed, reader, before, after, limit);
    }
    sl_home_read_free(read);
}

static void check_reader(int reader)
{
    uint64_t expected[SIZE], before = 0;
    size_t count = model_timeline(reader, expected), limit = 2 + draw(6), at = 0;

    check_page(reader, 0, 0, SL_HOME_PAGE_MAX, expected, count);
    do {
        check_page(reader, before, 0, limit, expected, count);
        at += limit;
        before = at <= count ? expected[at - 1] : 0;
    } while (at <= count);
    if (post_count > 0) {
        uint64_t one = posts[draw((uint32_t)post_count)].id;
        uint64_t two = posts[draw((uint32_t)post_count)].id;

        check_page(reader, one, 0, limit, expected, count);
        check_page(reader, 0, one, limit, expected, count);
        check_page(reader, one > two ? one : two, one > two ? two : one, limit, expected, count);
    }
}

static void check_all(void)
{
    core_work_fast(&core);
    for (int reader = 0; reader < USERS; reader++) {
        if (draw(3) > 0)
            check_reader(reader);
    }
    core_work_fast(&core); /* what the reads have requested */
    for (int reader = 0; reader < USERS; reader++) {
        if (draw(3) > 0)
            check_reader(reader);
    }
}

static const struct model_post *find_post(uint64_t id)
{
    for (size_t i = 0; i < post_count; i++) {
        if (posts[i].id == id)
            return &posts[i];
    }
    fail_msg("seed %" PRIu64 ": there is no post %" PRIu64, draw_seed, id);
    return NULL;
}

/* Whichever tasks have not run yet. */
static void do_peek(void)
{
    int reader = (int)draw(USERS);
    struct sl_home_read *read = read_page(reader, 0, 0, 1 + draw(SIZE));

    for (size_t i = 0; i < sl_home_read_count(read); i++) {
        const struct sl_post_row *row = sl_home_read_at(read, i);
        const struct model_post *post = find_post(row->id);
        bool has_list = memmem(row->json.data, row->json.size, "only:", 5) ||
                        memmem(row->json.data, row->json.size, "except:", 7);

        if (!belongs(reader, post))
            fail_msg("seed %" PRIu64 ": reader %d is shown %" PRIu64, draw_seed, reader, row->id);
        assert_true(!has_list || post->author == reader);
    }
    sl_home_read_free(read);
}

/* ---- operations ---- */

static void do_post(void)
{
    struct model_post *made = &posts[post_count];
    char text[32], audience[128], id[SL_ID_TEXT_SIZE];
    struct sl_post post = {.text = SL_SLICE_NONE};
    static const char *const words[] = {"public", "followers", "only:", "except:"};
    uint32_t kind = draw(3) > 0 ? 0 : draw(4);

    *made = (struct model_post){.author = (int)draw(USERS), .kind = "pfoe"[kind]};
    if (draw(2))
        made->author = (int)draw(3); /* some post much */
    snprintf(text, sizeof(text), "text %zu", post_count);
    strcpy(audience, words[kind]);
    for (int i = 0, first = 1; kind >= 2 && i < 3; i++) {
        int user = (int)draw(USERS);

        made->listed[user] = true;
        strcat(strcat(audience, first ? "" : ","), sl_id_print(user_ids[user], id));
        first = 0;
    }
    post.text = sl_slice_str(text);
    post.audience = sl_slice_str(audience);
    expect(core_post(&core, login_of(made->author), &post, NULL), "post");
    made->id = core.written.id;
    post_count++;
}

static void do_delete(void)
{
    size_t recent = post_count < 40 ? post_count : 40;
    struct model_post *post;

    if (recent == 0)
        return;
    post = &posts[post_count - 1 - draw((uint32_t)recent)];
    if (post->is_deleted)
        return;
    expect(core_delete(&core, login_of(post->author), post->id, NULL), "delete");
    post->is_deleted = true;
}

static void do_relation(bool (*relation)[USERS], uint32_t on_of_8,
                        int (*on)(struct core *, const char *, const char *, const char *),
                        int (*off)(struct core *, const char *, const char *, const char *))
{
    int user = (int)draw(USERS), target = draw(2) ? (int)draw(3) : (int)draw(USERS);
    bool turns_on = draw(8) < on_of_8;

    if (user == target)
        return;
    if (draw(4) == 0) { /* authors with many followers, too */
        int swapped = user;

        user = target;
        target = swapped;
    }
    expect((turns_on ? on : off)(&core, login_of(user), login_of(target), NULL), "relation");
    relation[user][target] = turns_on;
}

/* As if the reader had been inactive for too long: not all keys expire at the same moment. */
static void do_leave(void)
{
    uint64_t reader = user_ids[draw(USERS)];
    const char *const names[] = {"active", "home", "behind"};
    char key[SL_KEY_SIZE];

    for (uint32_t i = 0; i < 1 + draw(3); i++)
        freeReplyObject(core_command(&core, "DEL %s", sl_key_of(names[i], reader, key)));
}

/* A home timeline that is accessed from then on becomes a list. */
static void do_upgrade(void)
{
    if (upgraded_count < core.meta.shards)
        core_upgrade(&core, upgraded_count++);
}

static void do_something(void)
{
    if (draw(operations) < core.meta.shards)
        do_upgrade();
    switch (draw(16)) {
    case 0:
    case 1:
        do_delete();
        break;
    case 2:
    case 3:
    case 4:
        do_relation(follows, 5, core_follow, core_unfollow);
        break;
    case 5:
        do_relation(hides, 3, core_hide, core_unhide);
        break;
    case 6:
        do_relation(mutes, 3, core_mute, core_unmute);
        break;
    case 7:
        if (draw(4) == 0)
            do_leave();
        break;
    case 8:
    case 9:
        do_peek();
        break;
    case 10:
        if (draw(4) == 0)
            core_work_fast(&core);
        break;
    default:
        do_post();
        break;
    }
}

static int begin(void **state)
{
    core_group_fresh(state);
    upgraded_count = 0;
    memset(follows, 0, sizeof(follows));
    memset(hides, 0, sizeof(hides));
    memset(mutes, 0, sizeof(mutes));
    post_count = 0;
    for (int user = 0; user < USERS; user++)
        user_ids[user] = core_must_create(&core, login_of(user));
    core_set(&core, "home-size", "12");
    core_set(&core, "push-at-once", "3");
    core_set(&core, "merge-above", "5");
    return 0;
}

static void run(const char *timeline)
{
    core_set(&core, "timeline", timeline);
    for (int i = 1; i <= operations; i++) {
        do_something();
        if (i % CHECK_EVERY == 0)
            check_all();
    }
    assert_true(post_count > (size_t)operations / 5);
}

static void test_pushed_timelines_are_the_model_s(void **state)
{
    (void)state;
    run("push");
}

static void test_pulled_timelines_are_the_model_s(void **state)
{
    (void)state;
    run("pull");
}

static void test_hybrid_timelines_are_the_model_s(void **state)
{
    (void)state;
    run("hybrid");
}

/* What was stored for one way is not considered complete in another. */
static void test_the_way_may_change_at_any_time(void **state)
{
    static const char *const timelines[] = {"push", "pull", "hybrid"};

    (void)state;
    for (int i = 1; i <= operations; i++) {
        if (draw(40) == 0)
            core_set(&core, "timeline", timelines[draw(3)]);
        do_something();
        if (i % CHECK_EVERY == 0)
            check_all();
    }
}

/* In the end no deleted post is stored. */
static void test_no_timeline_keeps_a_deleted_post(void **state)
{
    (void)state;
    run(draw(2) ? "push" : "hybrid");
    core_work_fast(&core);
    for (int reader = 0; reader < USERS; reader++) {
        redisReply *kept = core_home(&core, user_ids[reader]);

        for (size_t i = 0; i < kept->elements; i++) {
            const struct model_post *post = find_post(strtoull(kept->element[i]->str, NULL, 10));

            if (post->is_deleted)
                fail_msg("seed %" PRIu64 ": reader %d keeps %s", draw_seed, reader,
                         kept->element[i]->str);
        }
        freeReplyObject(kept);
    }
}

#define HOME_TEST(name) cmocka_unit_test_setup(name, begin)

int main(void)
{
    const struct CMUnitTest tests[] = {
        HOME_TEST(test_pushed_timelines_are_the_model_s),
        HOME_TEST(test_pulled_timelines_are_the_model_s),
        HOME_TEST(test_hybrid_timelines_are_the_model_s),
        HOME_TEST(test_the_way_may_change_at_any_time),
        HOME_TEST(test_no_timeline_keeps_a_deleted_post),
    };

    if (getenv("SLUICE_TEST_OPERATIONS"))
        operations = atoi(getenv("SLUICE_TEST_OPERATIONS"));
    draw_begin();
    return core_group_run(tests);
}
