/* home_loader.c - one call for each feed: whom its user follows and mutes, and who hides from the
 * user.
 *
 * The feed may end before the answer arrives, so a load contains the user's id and the number from
 * home.h, not a pointer. Sets with more than 200,000 users in total are refused, because they are
 * kept in memory as long as the feed exists. Failures are logged at most once a second; home.h
 * decides whether to try again. */
#include "gateway/delivery/home_loader.h"

#include <inttypes.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/log.h"
#include "src/home/home_sets.h"
#include "src/model/id.h"

enum { SETS_MAX = 200000 }; /* users in the sets of one feed */

/* An outstanding call. It contains the user's id, because the feed may have ended when the answer
 * arrives. */
struct load {
    struct home_loader *loader;
    char *user;
    uint64_t number; /* from home.h */
};

struct home_loader {
    struct home *home;
    struct redis_commands *commands;
    uint32_t shards; /* 0: unknown */
    struct log_rate failure_rate;
};

static void load_free(struct load *load)
{
    mem_free(load->user);
    mem_free(load);
}

static void load_failed(struct load *load, const char *why)
{
    char room[LOG_QUOTE_SIZE];
    uint64_t held_back;

    if (log_rate_allows(&load->loader->failure_rate, clock_monotonic_ms(), &held_back))
        log_warn("home_load_failed", "user=%s why=%s held_back=%" PRIu64, load->user,
                 log_quote(sl_slice_str(why), room), held_back);
    home_load_failed(load->loader->home, load->user, load->number);
}

static struct home_set set_at(const struct sl_slice *users, const struct sl_home_sets *sets,
                              enum sl_home_set set)
{
    return (struct home_set){users + sets->begin[set], sets->begin[set + 1] - sets->begin[set]};
}

static void take_sets(struct load *load, const redisReply *reply, const struct sl_home_sets *read)
{
    size_t count = read->begin[SL_HOME_SETS];
    struct sl_slice *users = NULL;
    struct home_sets sets;

    if (count <= SETS_MAX)
        users = mem_alloc(mem_array_size(count, sizeof(*users)));
    if (!users) {
        load_failed(load, count > SETS_MAX ? "too many users" : "out of memory");
        return;
    }
    for (size_t i = 0; i < count; i++)
        users[i] = sl_home_sets_at(reply, read, i);
    sets = (struct home_sets){.followed = set_at(users, read, SL_HOME_FOLLOWED),
                              .hidden_by = set_at(users, read, SL_HOME_HIDDEN_BY),
                              .muted = set_at(users, read, SL_HOME_MUTED)};
    home_loaded(load->loader->home, load->user, load->number, &sets);
    mem_free(users);
}

static void on_reply(void *owner, const redisReply *reply, const char *why)
{
    struct load *load = owner;
    struct failure failure = {""};
    struct sl_home_sets sets;

    if (!reply)
        load_failed(load, why);
    else if (sl_home_sets_reply(reply, &sets, &failure) < 0)
        load_failed(load, failure.text);
    else
        take_sets(load, reply, &sets);
    load_free(load);
}

static struct load *load_new(struct home_loader *loader, const char *user, uint64_t number)
{
    struct load *load = mem_zalloc(sizeof(*load));

    if (!load)
        return NULL;
    load->loader = loader;
    load->number = number;
    load->user = mem_strndup(user, strlen(user));
    if (!load->user) {
        mem_free(load);
        return NULL;
    }
    return load;
}

static void start_load(void *owner, const char *user, uint64_t number)
{
    struct home_loader *loader = owner;
    const struct sl_meta meta = {.shards = loader->shards};
    struct sl_call call = SL_CALL_INIT;
    struct load *load;
    uint64_t id;

    if (loader->shards == 0) {
        home_load_failed(loader->home, user, number);
        return;
    }
    /* Users that were not created in this database follow nobody. */
    if (sl_id_parse(sl_slice_str(user), &id) < 0 || sl_id_shard(id) >= loader->shards) {
        home_loaded(loader->home, user, number, &(struct home_sets){.followed = {NULL, 0}});
        return;
    }
    load = load_new(loader, user, number);
    if (!load) {
        home_load_failed(loader->home, user, number);
        return;
    }
    if (sl_home_sets_call(&call, &meta, id, NULL) < 0 ||
        redis_commands_run_take(loader->commands, &call, on_reply, load) < 0) {
        load_failed(load, "out of memory");
        sl_call_done(&call);
        load_free(load);
    }
}

struct home_loader *home_loader_new(struct home *home, struct redis_commands *commands)
{
    struct home_loader *loader = mem_zalloc(sizeof(*loader));

    if (!loader)
        return NULL;
    loader->home = home;
    loader->commands = commands;
    home_on_load(home, start_load, loader);
    return loader;
}

void home_loader_set_shards(struct home_loader *loader, uint32_t shards)
{
    loader->shards = shards;
}

void home_loader_free(struct home_loader *loader)
{
    mem_free(loader);
}
