/* demo.c - turns each line of demo_posts, a JSON object, into an event for a replay.
 *
 * {"login","name"} is a user, {"user","lang","text","geo"} a post. The replay (cli/replay_batch.h)
 * creates users on demand and writes the posts. Pauses are exponentially distributed, as between
 * independent actions of people. */
#include "cli/demo.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

#include <jansson.h>

#include "cli/replay_batch.h"

extern const char demo_posts[]; /* made from examples/demo-producer/posts.jsonl */
extern const size_t demo_posts_size;

struct demo {
    const struct cli *cli;
    struct database database;
    struct replay_batch *batch;
    json_t *names; /* {login: name} */
    json_t *posts; /* an array */
    size_t lines;  /* put into the batch so far */
};

static void refuse(void *context, size_t line, const char *why)
{
    const struct demo *demo = context;

    cli_warn(demo->cli, "demo event %zu: %s", line, why);
}

/* Reads demo_posts. */
static bool read_posts(struct demo *demo)
{
    struct sl_slice rest = sl_slice(demo_posts, demo_posts_size);

    demo->names = json_object();
    demo->posts = json_array();
    while (rest.size > 0) {
        json_t *line = json_loadb(rest.data, rest.size, JSON_DISABLE_EOF_CHECK, NULL);
        const char *end = memchr(rest.data, '\n', rest.size);
        json_t *login = json_object_get(line, "login");

        if (login)
            json_object_set(demo->names, json_string_value(login), json_object_get(line, "name"));
        else if (line)
            json_array_append(demo->posts, line);
        json_decref(line);
        if (!end)
            break;
        rest = sl_slice(end + 1, rest.size - (size_t)(end + 1 - rest.data));
    }
    return json_array_size(demo->posts) > 0;
}

/* Writes the event. Failures of Redis are ignored. */
static void happen(struct demo *demo, json_t *event)
{
    char *line = json_dumps(event, JSON_COMPACT);
    struct failure failure;
    int r;

    json_decref(event);
    if (!line)
        return;
    r = replay_batch_add(demo->batch, sl_slice_str(line), ++demo->lines, &failure);
    if (r == 0)
        r = replay_batch_send(demo->batch, &failure);
    if (r < 0)
        cli_failed(demo->cli, &failure);
    free(line);
}

static json_t *person(const struct demo *demo, const char *login)
{
    return json_pack("{s:s, s:O}", "login", login, "name", json_object_get(demo->names, login));
}

static void follow_all(struct demo *demo, const char *follower)
{
    const char *login;
    json_t *name;

    json_object_foreach(demo->names, login, name)
        happen(demo, json_pack("{s:s, s:{s:s}, s:o}", "type", "follow", "user", "login", follower,
                               "target", person(demo, login)));
}

static void say_something(struct demo *demo)
{
    const json_t *said =
        json_array_get(demo->posts, (size_t)random() % json_array_size(demo->posts));
    json_t *post = json_pack("{s:O, s:o, s:s}", "text", json_object_get(said, "text"), "user",
                             person(demo, json_string_value(json_object_get(said, "user"))),
                             "source", "sluice");

    if (json_object_get(said, "lang"))
        json_object_set(post, "lang", json_object_get(said, "lang"));
    if (json_object_get(said, "geo"))
        json_object_set(post, "geo", json_object_get(said, "geo"));
    happen(demo, json_pack("{s:s, s:o}", "type", "post", "post", post));
}

static void pause_between(double per_minute)
{
    double chance = ((double)random() + 1) / ((double)RAND_MAX + 1);
    double seconds = -log(chance) * 60 / per_minute;
    const struct timespec time = {(time_t)seconds, (long)(fmod(seconds, 1) * 1e9)};

    nanosleep(&time, NULL);
}

int demo_run(const struct cli *cli, const char *follower, double per_minute)
{
    struct demo demo = {.cli = cli};
    int status = database_open(&demo.database, cli, 0);

    if (status != CLI_GOOD)
        return status;
    srandom((unsigned)time(NULL));
    demo.batch = replay_batch_new(&demo.database, refuse, &demo);
    if (!demo.batch || !read_posts(&demo))
        return cli_failed_with(cli, "out of memory");
    follow_all(&demo, follower);
    while (true) {
        say_something(&demo);
        pause_between(per_minute);
    }
}
