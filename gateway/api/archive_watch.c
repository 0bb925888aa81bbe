#include "gateway/api/archive_watch.h"

#include <errno.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "gateway/api/archive_reader.h"
#include "gateway/metrics/health.h"

struct archive_watch {
    uv_timer_t timer;
    const char *url;
    struct archive_reader *reader; /* of the last check; NULL: out of memory */
    struct metrics *metrics;
    bool is_asking;
};

static void on_read(void *owner, int r, struct sl_archive_page *page, const struct failure *failure)
{
    struct archive_watch *watch = owner;
    enum health_state state = r < 0 ? HEALTH_FAILING : HEALTH_OK;
    char room[LOG_QUOTE_SIZE];

    (void)page; /* no post has that id */
    watch->is_asking = false;
    if (r == -ECANCELED || !health_set(watch->metrics, HEALTH_ARCHIVE, state,
                                       r < 0 ? failure->text : NULL, clock_wall_ms()))
        return;
    if (r < 0)
        log_warn("archive_away", "why=%s", log_quote(sl_slice_str(failure->text), room));
    else
        log_info("archive_found", "answers=yes");
}

static void on_timer(uv_timer_t *timer)
{
    struct archive_watch *watch = timer->data;
    const uint64_t no_post = 1;

    if (watch->is_asking)
        return;
    archive_reader_free(watch->reader);
    watch->reader = archive_reader_new(timer->loop, watch->url, ARCHIVE_WATCH_MS);
    if (watch->reader)
        watch->is_asking = archive_reader_find(watch->reader, &no_post, 1, on_read, watch) == 0;
}

struct archive_watch *archive_watch_new(uv_loop_t *loop, const char *url, struct metrics *metrics)
{
    struct archive_watch *watch = mem_zalloc(sizeof(*watch));

    if (!watch)
        return NULL;
    watch->url = url;
    watch->metrics = metrics;
    uv_timer_init(loop, &watch->timer);
    watch->timer.data = watch;
    uv_timer_start(&watch->timer, on_timer, 0, ARCHIVE_WATCH_MS);
    return watch;
}

static void on_closed(uv_handle_t *handle)
{
    mem_free(handle->data);
}

void archive_watch_free(struct archive_watch *watch)
{
    if (!watch)
        return;
    archive_reader_free(watch->reader);
    uv_close((uv_handle_t *)&watch->timer, on_closed);
}
