/* demo_producer.c - a small social site at human speed: people post, reply, delete, follow.
 *
 *     demo-producer [--redis URL] [--per-minute N] [--count N] FILE
 *
 * FILE has people, {"login","name"}, and what they say, {"user","lang","text","geo"}, one JSON
 * object per line. Everything goes through the social core (libsluice), so it is stored, logged and
 * published. It shows how a blocking program uses the core: a call is built and sent, and its reply
 * read, always in the same three steps (write_it() below). */
#include <errno.h>
#include <hiredis/hiredis.h>
#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <sluice/follows.h>
#include <sluice/id.h>
#include <sluice/meta.h>
#include <sluice/posts.h>
#include <sluice/redis_address.h>
#include <sluice/redis_link.h>
#include <sluice/users.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PEOPLE_MAX = 200, POSTS_MAX = 2000, RECENT = 40 };

struct person {
    const char *login, *name; /* of the file's JSON */
    uint64_t id;
};

struct recent_post {
    uint64_t id;
    struct person *author;
};

struct recent_follow {
    struct person *user, *target;
};

struct site {
    struct sl_redis_link *link;
    struct sl_meta meta;
    struct sl_call call; /* rebuilt for every request */
    unsigned long requests;
    json_t *lines; /* all of the file */
    struct person people[PEOPLE_MAX];
    size_t people_count;
    json_t *posts[POSTS_MAX];
    size_t posts_count, posts_used;
    struct recent_post recent[RECENT]; /* a ring */
    size_t recent_count;
    struct recent_follow follows[RECENT]; /* another */
    size_t follow_count;
};

static volatile sig_atomic_t stopped;

static void on_signal(int signal_number)
{
    (void)signal_number;
    stopped = 1;
}

static struct sl_slice member(const json_t *object, const char *name)
{
    return sl_slice_str(json_string_value(json_object_get(object, name)));
}

static struct person *find_person(struct site *site, const char *login, size_t length)
{
    for (size_t i = 0; i < site->people_count; i++) {
        struct person *person = &site->people[i];

        if (strlen(person->login) == length && strncmp(person->login, login, length) == 0)
            return person;
    }
    return NULL;
}

/* A new name for each write: if its answer is lost, the link sends it again, and it is still done
 * only once. */
static struct sl_slice request_id(struct site *site, char *room, size_t room_size)
{
    int length = snprintf(room, room_size, "demo-%ld-%ld-%lu", (long)getpid(), (long)time(NULL),
                          site->requests++);

    return sl_slice(room, (size_t)length);
}

/* Sends the call that a builder has made of site->call (`r` is its result) and reads the answer. */
static int write_it(struct site *site, int r, struct sl_written *ret_written,
                    struct failure *failure)
{
    struct redisReply *reply = NULL;

    if (r == 0)
        r = sl_redis_link_run(site->link, &site->call, &reply, failure);
    if (r == 0)
        r = sl_write_reply(reply, ret_written, failure);
    freeReplyObject(reply);
    return r;
}

/* Creates the user, or finds out that an earlier run has. */
static int settle(struct site *site, struct person *person, struct failure *failure)
{
    struct sl_user_ref by_login = sl_user_by_login(sl_slice_str(person->login));
    struct redisReply *reply = NULL;
    struct sl_written written;
    struct sl_user user;
    char room[64];
    int r;

    r = sl_user_create_call(&site->call, &site->meta, request_id(site, room, sizeof(room)),
                            sl_slice_str(person->login), sl_slice_str(person->name), failure);
    r = write_it(site, r, &written, failure);
    if (r == 0)
        person->id = written.id;
    if (r != -EEXIST)
        return r;

    r = sl_user_find_call(&site->call, &site->meta, &by_login, failure);
    if (r == 0)
        r = sl_redis_link_run(site->link, &site->call, &reply, failure);
    if (r == 0)
        r = sl_user_find_reply(reply, &user, failure);
    if (r == 0)
        person->id = user.id;
    freeReplyObject(reply);
    return r;
}

/* Returns the newest post of `author`, to reply to; NULL: none. */
static const struct recent_post *newest_of(const struct site *site, const struct person *author)
{
    const struct recent_post *newest = NULL;

    for (size_t i = 0; i < RECENT; i++) {
        const struct recent_post *post = &site->recent[i];

        if (author && post->author == author && (!newest || post->id > newest->id))
            newest = post;
    }
    return newest;
}

/* Returns the author's next line; the order is shuffled anew when all have been used. */
static const json_t *next_line(struct site *site)
{
    if (site->posts_used == site->posts_count)
        site->posts_used = 0;
    if (site->posts_used == 0) {
        for (size_t i = site->posts_count - 1; i > 0; i--) {
            size_t j = (size_t)random() % (i + 1);
            json_t *line = site->posts[i];

            site->posts[i] = site->posts[j];
            site->posts[j] = line;
        }
    }
    return site->posts[site->posts_used++];
}

static int say_something(struct site *site, struct failure *failure)
{
    const json_t *line = next_line(site);
    const json_t *geo = json_object_get(line, "geo");
    struct sl_slice login = member(line, "user");
    struct person *author = find_person(site, login.data, login.size);
    struct sl_post post = {.text = member(line, "text"), .lang = member(line, "lang")};
    const struct recent_post *answered = NULL;
    char request[64], replied[SL_ID_TEXT_SIZE], user[SL_ID_TEXT_SIZE];
    struct sl_user_ref by = sl_user_by_id(author->id);
    struct sl_written written;
    int r;

    post.source = sl_slice_str("demo-producer");
    post.has_point = geo != NULL;
    post.lon = json_number_value(json_object_get(geo, "lon"));
    post.lat = json_number_value(json_object_get(geo, "lat"));
    if (post.text.data[0] == '@')
        answered = newest_of(
            site, find_person(site, post.text.data + 1, strcspn(post.text.data + 1, " :,")));
    if (answered) {
        post.reply_to.post = sl_slice_str(sl_id_print(answered->id, replied));
        post.reply_to.user = sl_slice_str(sl_id_print(answered->author->id, user));
        post.reply_to.login = sl_slice_str(answered->author->login);
        post.is_comment = true;
    }
    r = sl_post_call(&site->call, &site->meta, request_id(site, request, sizeof(request)), &by,
                     &post, failure);
    r = write_it(site, r, &written, failure);
    if (r == 0) {
        site->recent[site->recent_count++ % RECENT] = (struct recent_post){written.id, author};
        printf("%s: %.*s\n", author->login, SL_SLICE_ARG(post.text));
    }
    return r;
}

/* Deletes some recent post. */
static int take_back(struct site *site, struct failure *failure)
{
    struct recent_post *post = &site->recent[(size_t)random() % RECENT];
    struct sl_written written;
    struct sl_user_ref by;
    char request[64];
    int r;

    if (!post->author)
        return 0;
    by = sl_user_by_id(post->author->id);
    r = sl_delete_call(&site->call, &site->meta, request_id(site, request, sizeof(request)), &by,
                       post->id, failure);
    r = write_it(site, r, &written, failure);
    if (r == 0 || r == -ENOENT)
        printf("%s takes a post back\n", post->author->login);
    post->author = NULL;
    return r == -ENOENT ? 0 : r; /* already deleted: an earlier answer was lost */
}

/* `user` follows `target`, or unfollows it. */
static int relate(struct site *site, const struct recent_follow *pair, bool follows,
                  struct failure *failure)
{
    const struct person *other = pair->target;
    struct sl_user target = {other->id, sl_slice_str(other->login), sl_slice_str(other->name)};
    struct sl_user_ref user = sl_user_by_id(pair->user->id);
    struct sl_written written;
    struct sl_slice request;
    char room[64];
    int r;

    request = request_id(site, room, sizeof(room));
    r = follows ? sl_follow_call(&site->call, &site->meta, request, &user, &target, failure)
                : sl_unfollow_call(&site->call, &site->meta, request, &user, &target, failure);
    r = write_it(site, r, &written, failure);
    if (r == 0 && written.id > 0) /* 0: nothing has changed */
        printf("%s %s %s\n", pair->user->login, follows ? "follows" : "unfollows", other->login);
    return r;
}

static int follow_somebody(struct site *site, struct failure *failure)
{
    struct recent_follow pair = {&site->people[(size_t)random() % site->people_count],
                                 &site->people[(size_t)random() % site->people_count]};

    if (pair.user == pair.target)
        return 0;
    site->follows[site->follow_count++ % RECENT] = pair;
    return relate(site, &pair, true, failure);
}

/* Ends some recent follow. */
static int unfollow_somebody(struct site *site, struct failure *failure)
{
    struct recent_follow *pair;

    if (site->follow_count == 0)
        return 0;
    pair = &site->follows[(size_t)random() %
                          (site->follow_count < RECENT ? site->follow_count : RECENT)];
    return relate(site, pair, false, failure);
}

static int do_something(struct site *site, struct failure *failure)
{
    long dice = random() % 100;

    if (dice < 82)
        return say_something(site, failure);
    if (dice < 89)
        return take_back(site, failure);
    if (dice < 96)
        return follow_somebody(site, failure);
    return unfollow_somebody(site, failure);
}

/* Reads the file into site->people and site->posts. */
static int read_file(struct site *site, const char *path)
{
    FILE *file = fopen(path, "r");
    char *line = NULL;
    size_t room = 0;
    int number = 0;

    if (!file) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        return -errno;
    }
    site->lines = json_array();
    while (getline(&line, &room, file) > 0) {
        json_error_t error;
        json_t *object = json_loads(line, 0, &error);
        struct sl_slice login = member(object, "login"), user = member(object, "user");

        number++;
        json_array_append_new(site->lines, object);
        if (login.data && site->people_count < PEOPLE_MAX) {
            site->people[site->people_count++] =
                (struct person){.login = login.data, .name = member(object, "name").data};
        } else if (user.data && member(object, "text").size > 0 && site->posts_count < POSTS_MAX &&
                   find_person(site, user.data, user.size)) {
            site->posts[site->posts_count++] = object;
        } else {
            fprintf(stderr, "%s:%d: neither a person nor a post of one\n", path, number);
        }
    }
    free(line);
    fclose(file);
    if (site->posts_count == 0)
        fprintf(stderr, "%s: nobody says anything\n", path);
    return site->posts_count > 0 ? 0 : -ENODATA;
}

static int open_site(struct site *site, const char *url, struct failure *failure)
{
    struct sl_redis_link_options options = {.retry_ms = 60000};
    struct sl_meta wanted = sl_meta_wanted(0);
    struct sl_redis_address address;
    int r;

    r = sl_redis_address_parse(sl_slice_str(url), &address, failure);
    if (r == 0)
        r = sl_redis_link_open(&address, &options, &site->link, failure);
    if (r == 0)
        r = sl_redis_link_meta(site->link, &wanted, &site->meta, failure);
    for (size_t i = 0; r == 0 && i < site->people_count; i++)
        r = settle(site, &site->people[i], failure);
    return r;
}

/* Pauses between actions of people are random, with an exponential distribution. */
static void pause_between(double per_minute)
{
    double chance = ((double)random() + 1) / ((double)RAND_MAX + 1);
    double seconds = -log(chance) * 60 / per_minute;
    struct timespec time = {(time_t)seconds, (long)(fmod(seconds, 1) * 1e9)};

    nanosleep(&time, NULL); /* a signal interrupts it */
}

static int usage(const char *program)
{
    fprintf(stderr, "Usage: %s [--redis URL] [--per-minute N] [--count N] FILE\n", program);
    return 2;
}

int main(int argc, char **argv)
{
    struct sigaction action = {.sa_handler = on_signal};
    struct site site = {.call = SL_CALL_INIT};
    const char *url = "redis://127.0.0.1:6379";
    double per_minute = 90;
    long count = -1;
    struct failure failure = {""};
    int at = 1, r;

    for (; at + 1 < argc && strncmp(argv[at], "--", 2) == 0; at += 2) {
        if (strcmp(argv[at], "--redis") == 0)
            url = argv[at + 1];
        else if (strcmp(argv[at], "--per-minute") == 0)
            per_minute = strtod(argv[at + 1], NULL);
        else if (strcmp(argv[at], "--count") == 0)
            count = strtol(argv[at + 1], NULL, 10);
        else
            return usage(argv[0]);
    }
    if (argc - at != 1 || !(per_minute > 0))
        return usage(argv[0]);

    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
    setvbuf(stdout, NULL, _IOLBF, 0);
    srandom((unsigned)time(NULL) ^ (unsigned)getpid());

    r = read_file(&site, argv[at]);
    if (r == 0)
        r = open_site(&site, url, &failure);
    while (r == 0 && !stopped && count != 0) {
        r = do_something(&site, &failure);
        count -= count > 0;
        if (r == 0 && !stopped && count != 0)
            pause_between(per_minute);
    }
    if (r < 0 && !stopped && failure.text[0])
        fprintf(stderr, "demo-producer: %s\n", failure.text);

    sl_redis_link_close(site.link);
    sl_call_done(&site.call);
    json_decref(site.lines);
    return r < 0 && !stopped ? 1 : 0;
}
