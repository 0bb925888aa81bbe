/* tests/support/patience.h - an event loop that runs until something has happened, with a deadline.
 *
 * A turn of libuv's loop (UV_RUN_ONCE) runs the timers that are due and then waits: the effect of a
 * timer, if the test was late, would be seen only when something else happens. So the loop is woken
 * repeatedly while the test waits. */
#pragma once

#include <uv.h>

struct patience {
    uv_loop_t loop;
    uv_timer_t timer;
    unsigned ticks;
    void (*complain)(
        void); /* fails the test, and prints what has arrived; NULL: nothing more to print */
};

void patience_init(struct patience *patience, void (*complain)(void));
/* Lets closing handles close; a handle that stays open fails the test. */
void patience_done(struct patience *patience);

void patience_begin(struct patience *patience);
void patience_end(struct patience *patience);

/* Calls `turn` repeatedly. The test fails if that takes a minute of the loop's own time. */
#define TURNS_UNTIL(patience, turn, condition)                                                     \
    do {                                                                                           \
        patience_begin(patience);                                                                  \
        while (!(condition))                                                                       \
            turn;                                                                                  \
        patience_end(patience);                                                                    \
    } while (0)

#define RUN_UNTIL(patience, condition)                                                             \
    TURNS_UNTIL(patience, uv_run(&(patience)->loop, UV_RUN_ONCE), condition)
