/* tests/support/test_loop.h - an event loop that runs until something has happened, with a
 * deadline.
 *
 * A turn of libuv's loop (UV_RUN_ONCE) runs the timers that are due and then waits: the effect of a
 * timer, if the test was late, would be seen only when something else happens. So the loop is woken
 * repeatedly while the test waits. */
#pragma once

#include <uv.h>

struct test_loop {
    uv_loop_t uv;
    uv_timer_t timer;
    unsigned ticks;
    void (*complain)(
        void); /* fails the test, and prints what has arrived; NULL: nothing more to print */
};

void test_loop_init(struct test_loop *test_loop, void (*complain)(void));
/* Lets closing handles close; a handle that stays open fails the test. */
void test_loop_done(struct test_loop *test_loop);

void test_loop_start_deadline(struct test_loop *test_loop);
void test_loop_stop_deadline(struct test_loop *test_loop);

/* Calls `turn` repeatedly. The test fails if that takes a minute of the loop's own time. */
#define TURNS_UNTIL(test_loop, turn, condition)                                                    \
    do {                                                                                           \
        test_loop_start_deadline(test_loop);                                                       \
        while (!(condition))                                                                       \
            turn;                                                                                  \
        test_loop_stop_deadline(test_loop);                                                        \
    } while (0)

#define RUN_UNTIL(test_loop, condition)                                                            \
    TURNS_UNTIL(test_loop, uv_run(&(test_loop)->uv, UV_RUN_ONCE), condition)
