#include "tests/support/patience.h"

#include "tests/support/cmocka_all.h"

enum { PATIENCE_MS = 30000 };

static void on_impatience(uv_timer_t *timer)
{
    struct patience *patience = timer->data;

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
    uv_timer_start(&patience->timer, on_impatience, PATIENCE_MS, 0);
}

void patience_end(struct patience *patience)
{
    uv_timer_stop(&patience->timer);
}
