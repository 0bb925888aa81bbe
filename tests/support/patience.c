#include "tests/support/patience.h"

#include "tests/support/cmocka_all.h"

enum { TICK_MS = 20, TICKS = 3000 };

/* Turns are counted, not time: for a process that was stopped for an hour that is a single one. */
static void on_tick(uv_timer_t *timer)
{
    struct patience *patience = timer->data;

    if (++patience->ticks < TICKS)
        return;
    if (patience->complain)
        patience->complain();
    fail_msg("waited too long");
}

void patience_init(struct patience *patience, void (*complain)(void))
{
    uv_loop_init(&patience->loop);
    uv_timer_init(&patience->loop, &patience->timer);
    patience->timer.data = patience;
    patience->complain = complain;
}

void patience_done(struct patience *patience)
{
    patience_begin(patience);
    uv_unref((uv_handle_t *)&patience->timer); /* fires, but does not keep the loop alive */
    uv_run(&patience->loop, UV_RUN_DEFAULT);
    uv_close((uv_handle_t *)&patience->timer, NULL);
    uv_run(&patience->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&patience->loop), 0);
}

void patience_begin(struct patience *patience)
{
    patience->ticks = 0;
    uv_timer_start(&patience->timer, on_tick, TICK_MS, TICK_MS);
}

void patience_end(struct patience *patience)
{
    uv_timer_stop(&patience->timer);
}
