/* master_finder.c - asks one sentinel after the other, beginning with the last one that knew the
 * master.
 *
 * Each has a second to accept the connection and one to answer. When all have failed in a row, the
 * caller is told why the last one did, and asks again when it wants. There is one connection at a
 * time. */
#include "gateway/redis/master_finder.h"

#include <assert.h>

#include "base/alloc.h"
#include "base/failure.h"
#include "gateway/redis/sentinel_line.h"

enum { SENTINEL_MS = 1000 };

struct master_finder {
    struct sl_redis_address address;
    master_found_fn found;
    void *context;
    struct sentinel_line *line;
    uint32_t current; /* the sentinel being asked */
    uint32_t failed;  /* consecutive failures */
};

static void ask(struct master_finder *finder)
{
    sentinel_line_open(finder->line, finder->current);
}

static void on_answer(void *context, const struct sl_redis_endpoint *master)
{
    struct master_finder *finder = context;

    master_finder_stop(finder);
    finder->found(finder->context, master, NULL);
}

static void on_lost(void *context, const char *reason)
{
    struct master_finder *finder = context;
    char endpoint[SL_REDIS_ENDPOINT_TEXT_SIZE];
    struct failure failure;

    sl_redis_endpoint_print(&finder->address.sentinels[finder->current], endpoint,
                            sizeof(endpoint));
    finder->current = (finder->current + 1) % finder->address.sentinel_count;
    if (++finder->failed < finder->address.sentinel_count) {
        ask(finder);
        return;
    }
    failure_set(&failure, 0, "no sentinel says which Redis is the master; %s: %s", endpoint,
                reason);
    finder->found(finder->context, NULL, failure.text);
}

void master_finder_start(struct master_finder *finder)
{
    finder->failed = 0;
    ask(finder);
}

void master_finder_stop(struct master_finder *finder)
{
    sentinel_line_close(finder->line);
}

struct master_finder *master_finder_new(uv_loop_t *loop, const struct sl_redis_address *address,
                                        master_found_fn found, void *context)
{
    static const struct sentinel_line_callbacks callbacks = {
        .on_answer = on_answer,
        .on_lost = on_lost,
    };
    struct master_finder *finder = mem_zalloc(sizeof(*finder));

    if (!finder)
        return NULL;
    assert(address->sentinel_count > 0);
    finder->address = *address;
    finder->found = found;
    finder->context = context;
    finder->line = sentinel_line_new(loop, address, false, SENTINEL_MS, &callbacks, finder);
    if (!finder->line) {
        mem_free(finder);
        return NULL;
    }
    return finder;
}

void master_finder_free(struct master_finder *finder)
{
    if (!finder)
        return;
    sentinel_line_free(finder->line);
    mem_free(finder);
}
