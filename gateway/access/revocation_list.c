/* revocation_list.c - reads the list page by page into a new set, which then replaces the old one.
 *
 * Events that arrive while it is read change both sets. A page may contain a revocation that was
 * undone while the page was on its way; therefore the list is read once more after such an event. A
 * revocation that cannot be parsed is skipped and logged: a newer program may have written it. */
#include "gateway/access/revocation_list.h"

#include <errno.h>
#include <inttypes.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "gateway/access/revocations.h"
#include "src/database/revocations.h"

struct revocation_list {
    struct revocation_list_settings settings;
    uv_timer_t retry, timeout;
    struct revocations *set;
    struct revocations *next; /* the set being read; NULL: none */
    uint64_t read_to;         /* the highest id so far */
    uint32_t poll_ms;         /* 0: no polling */
    bool is_asked;            /* a page has been requested */
    bool reads_again;         /* as soon as the current reading has ended */
    bool is_known;
    struct log_rate failed_rate, heard_rate;
};

static void ask(struct revocation_list *list);

static void set_known(struct revocation_list *list, bool is_known)
{
    if (is_known)
        uv_timer_stop(&list->timeout);
    if (list->is_known == is_known)
        return;
    list->is_known = is_known;
    list->settings.known(list->settings.context, is_known);
}

static void tell_count(const struct revocation_list *list)
{
    metric_set(list->settings.metrics, METRIC_REVOCATIONS, revocations_count(list->set));
}

/* --- reading --- */

static void on_retry(uv_timer_t *timer)
{
    revocation_list_read(timer->data);
}

static void fail(struct revocation_list *list, const char *why)
{
    char room[LOG_QUOTE_SIZE];
    uint64_t held_back;

    if (log_rate_allows(&list->failed_rate, clock_monotonic_ms(), &held_back))
        log_warn("revocations_not_read", "why=%s held_back=%" PRIu64,
                 log_quote(sl_slice_str(why), room), held_back);
    revocations_free(list->next);
    list->next = NULL;
    uv_timer_start(&list->retry, on_retry, REVOCATION_RETRY_MS, 0);
}

static void finish(struct revocation_list *list)
{
    size_t before = revocations_count(list->set);

    revocations_free(list->set);
    list->set = list->next;
    list->next = NULL;
    revocations_drop_old(list->set, clock_wall_ms());
    if (revocations_count(list->set) != before)
        log_info("revocations_read", "count=%zu before=%zu", revocations_count(list->set), before);
    tell_count(list);
    list->settings.changed(list->settings.context);
    set_known(list, true);
    if (list->reads_again)
        revocation_list_read(list);
    else if (list->poll_ms)
        uv_timer_start(&list->retry, on_retry, list->poll_ms, 0);
}

static int take_row(struct revocation_list *list, struct sl_slice json)
{
    struct sl_revocation revocation;
    struct failure failure;
    uint64_t held_back;
    int r = sl_revocation_parse(json, &revocation, &failure);

    if (r == 0) {
        r = revocations_add(list->next, &revocation);
        if (revocation.id > list->read_to)
            list->read_to = revocation.id;
        sl_revocation_done(&revocation);
    } else if (log_rate_allows(&list->failed_rate, clock_monotonic_ms(), &held_back)) {
        log_error("revocation_not_understood", "held_back=%" PRIu64, held_back);
    }
    return r == -ENOMEM ? r : 0;
}

static void on_page(void *owner, const redisReply *reply, const char *why)
{
    struct revocation_list *list = owner;
    struct failure failure = {"out of memory"};
    uint64_t before = list->read_to;
    size_t count = 0;
    int r = 0;

    list->is_asked = false;
    if (!reply) {
        fail(list, why);
        return;
    }
    r = sl_revocations_reply(reply, &count, &failure);
    for (size_t i = 0; r == 0 && i < count; i++)
        r = take_row(list, sl_revocations_json(reply, i));
    if (r < 0)
        fail(list, failure.text);
    else if (count == REVOCATION_PAGE && list->read_to > before)
        ask(list);
    else
        finish(list);
}

static void ask(struct revocation_list *list)
{
    struct sl_call call = SL_CALL_INIT;
    int r = sl_revocations_call(&call, list->read_to, REVOCATION_PAGE, NULL);

    if (r == 0)
        r = redis_commands_run_take(list->settings.commands, &call, on_page, list);
    else
        sl_call_done(&call);
    list->is_asked = r == 0;
    if (r == -ENOMEM)
        fail(list, "out of memory");
}

void revocation_list_read(struct revocation_list *list)
{
    list->reads_again = list->is_asked;
    if (list->is_asked)
        return;
    uv_timer_stop(&list->retry);
    revocations_free(list->next);
    list->read_to = 0;
    list->next = revocations_new();
    if (list->next)
        ask(list);
    else
        fail(list, "out of memory");
}

static void on_timeout(uv_timer_t *timer)
{
    struct revocation_list *list = timer->data;

    metric_add(list->settings.metrics, METRIC_REVOCATIONS_UNREAD, 1);
    log_error("revocations_unread", "after_ms=%d serves=yes", REVOCATION_TIMEOUT_MS);
    set_known(list, true);
}

void revocation_list_begin(struct revocation_list *list)
{
    set_known(list, false);
    uv_timer_start(&list->timeout, on_timeout, REVOCATION_TIMEOUT_MS, 0);
    revocation_list_read(list);
}

void revocation_list_poll(struct revocation_list *list, uint32_t every_ms)
{
    list->poll_ms = every_ms;
    revocation_list_read(list);
}

/* --- events --- */

static int add_everywhere(struct revocation_list *list, const struct sl_revocation *revocation)
{
    int r = revocations_add(list->set, revocation);

    if (list->next && revocations_add(list->next, revocation) < 0)
        r = -ENOMEM;
    return r;
}

static int take_revocation(struct revocation_list *list, struct sl_slice json)
{
    struct sl_revocation revocation;
    struct failure failure;
    int r = sl_revocation_parse(json, &revocation, &failure);

    if (r < 0)
        return r;
    r = add_everywhere(list, &revocation);
    sl_revocation_done(&revocation);
    list->settings.changed(list->settings.context);
    return r;
}

static int take_unrevocation(struct revocation_list *list, struct sl_slice json)
{
    struct failure failure;
    uint64_t id;
    int r = sl_unrevocation_parse(json, &id, &failure);

    if (r < 0)
        return r;
    revocations_remove(list->set, id);
    if (list->next) {
        revocations_remove(list->next, id);
        list->reads_again = true;
    }
    return 0;
}

void revocation_list_take(struct revocation_list *list, const struct event *event)
{
    int r = event->kind == EVENT_REVOKE ? take_revocation(list, event->json)
                                        : take_unrevocation(list, event->json);
    uint64_t held_back;

    if (log_rate_allows(&list->heard_rate, clock_monotonic_ms(), &held_back))
        log_info(event->kind == EVENT_REVOKE ? "revocation" : "revocation_undone",
                 "id=%" PRIu64 " taken=%s held_back=%" PRIu64, event->id, r < 0 ? "no" : "yes",
                 held_back);
    if (r < 0)
        revocation_list_read(list);
    tell_count(list);
}

/* --- checks --- */

bool revocation_list_has(void *context, const struct token *token, uint64_t now_ms)
{
    const struct revocation_list *list = context;

    return revocations_find(list->set, token, now_ms) != 0;
}

/* --- creating and freeing --- */

struct revocation_list *revocation_list_new(const struct revocation_list_settings *settings)
{
    struct revocation_list *list = mem_zalloc(sizeof(*list));

    if (!list)
        return NULL;
    list->set = revocations_new();
    if (!list->set) {
        mem_free(list);
        return NULL;
    }
    list->settings = *settings;
    uv_timer_init(settings->loop, &list->retry);
    uv_timer_init(settings->loop, &list->timeout);
    list->retry.data = list->timeout.data = list;
    return list;
}

static void on_timeout_closed(uv_handle_t *handle)
{
    struct revocation_list *list = handle->data;

    revocations_free(list->set);
    revocations_free(list->next);
    mem_free(list);
}

static void on_retry_closed(uv_handle_t *handle)
{
    struct revocation_list *list = handle->data;

    uv_close((uv_handle_t *)&list->timeout, on_timeout_closed);
}

void revocation_list_free(struct revocation_list *list)
{
    if (list)
        uv_close((uv_handle_t *)&list->retry, on_retry_closed);
}
