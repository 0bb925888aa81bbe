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

/* cmocka's own macro, which ends in the same call, wants to see the array. */
int core_group_run_count(const struct CMUnitTest *tests, size_t count)
{
    int failed;

    shards = 1;
    failed = _cmocka_run_group_tests("one shard", tests, count, core_group_start, core_group_stop);
    shards = 8;
    return failed +
           _cmocka_run_group_tests("eight shards", tests, count, core_group_start, core_group_stop);
}
