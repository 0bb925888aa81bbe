/* tests/support/core_group.h - the fixture of most tests of the core: one database, `core`, created
 * for each test on a server that runs as long as the group of tests. */
#pragma once

#include "tests/support/cmocka_all.h"
#include "tests/support/core.h"

extern struct core core;
extern uint32_t shards; /* of the next databases; 1 unless the test sets it */

#define CORE_TEST(name) cmocka_unit_test_setup(name, core_group_fresh)

int core_group_start(void **state);
int core_group_stop(void **state);
int core_group_fresh(void **state);

/* Runs an array of tests with one shard and with eight, in a cluster with eight and with 64;
 * returns how many failed. */
#define core_group_run(tests) core_group_run_count(tests, sizeof(tests) / sizeof((tests)[0]))
int core_group_run_count(const struct CMUnitTest *tests, size_t count);
