/* tests/support/patience.h - a loop that runs until something has happened, but not for ever.
 *
 * A turn of libuv's loop (UV_RUN_ONCE) runs the timers that are due and waits then: what a timer
 * has brought about in it, because the test was late, would be seen only when something else
 * happens. So the loop is woken again and again while it is waited. */
#pragma once

#include <uv.h>

struct patience {
    uv_loop_t loop;
    uv_timer_t timer;
    unsigned ticks;
    void (*complain)(
        void); /* fails the test, and says what has come; NULL: there is no more to say */
};

void patience_init(struct patience *patience, void (*complain)(void));
/* Lets closing handles close; one that stays open fails the test. */
void patience_done(struct patience *patience);

void patience_begin(struct patience *patience);
void patience_end(struct patience *patience);

/* Calls `turn` again and again. The test fails when it takes a minute of the loop's own time.
 */
#define TURNS_UNTIL(patience, turn, condition)                                                     \
    do {                                                                                           \
        patience_begin(patience);                                                                  \
        while (!(condition))                                                                       \
            turn;                                                                                  \
        patience_end(patience);                                                                    \
    } while (0)

#define RUN_UNTIL(patience, condition)                                                             \
    TURNS_UNTIL(patience, uv_run(&(patience)->loop, UV_RUN_ONCE), condition)
