#include "tests/support/core_group.h"

#include <signal.h>

struct core core;
uint32_t shards = 1;

int core_group_start(void **state)
{
    (void)state;
    signal(SIGPIPE, SIG_IGN);
    core_init(&core);
    return 0;
}

int core_group_stop(void **state)
{
    (void)state;
    core_done(&core);
    return 0;
}

int core_group_fresh(void **state)
{
    (void)state;
    core_reset(&core, shards);
    return 0;
}

static int run(const char *name, const struct CMUnitTest *tests, size_t count)
{
    return _cmocka_run_group_tests(name, tests, count, core_group_start, core_group_stop);
}

/* cmocka's own macro, which ends in the same call, needs the array itself. */
int core_group_run_count(const struct CMUnitTest *tests, size_t count)
{
    int failed = 0;

    if (!core_is_clustered()) {
        shards = 1;
        failed = run("one shard", tests, count);
    }
    shards = 8;
    failed += run("eight shards", tests, count);
    if (core_is_clustered()) {
        shards = 64;
        failed += run("64 shards", tests, count);
    }
    return failed;
}
