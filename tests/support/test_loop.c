#include "tests/support/test_loop.h"

#include "tests/support/cmocka_all.h"

enum { TICK_MS = 20, TICKS = 3000 };

/* Turns are counted, not time: for a process that was stopped for an hour that is a single one. */
static void on_tick(uv_timer_t *timer)
{
    struct test_loop *test_loop = timer->data;

    if (++test_loop->ticks < TICKS)
        return;
    if (test_loop->complain)
        test_loop->complain();
    fail_msg("waited too long");
}

void test_loop_init(struct test_loop *test_loop, void (*complain)(void))
{
    uv_loop_init(&test_loop->uv);
    uv_timer_init(&test_loop->uv, &test_loop->timer);
    test_loop->timer.data = test_loop;
    test_loop->complain = complain;
}

void test_loop_done(struct test_loop *test_loop)
{
    test_loop_start_deadline(test_loop);
    uv_unref((uv_handle_t *)&test_loop->timer); /* fires, but does not keep the loop alive */
    uv_run(&test_loop->uv, UV_RUN_DEFAULT);
    uv_close((uv_handle_t *)&test_loop->timer, NULL);
    uv_run(&test_loop->uv, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&test_loop->uv), 0);
}

void test_loop_start_deadline(struct test_loop *test_loop)
{
    test_loop->ticks = 0;
    uv_timer_start(&test_loop->timer, on_tick, TICK_MS, TICK_MS);
}

void test_loop_stop_deadline(struct test_loop *test_loop)
{
    uv_timer_stop(&test_loop->timer);
}
