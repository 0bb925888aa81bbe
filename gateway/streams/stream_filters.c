/* stream_filters.c - checks whether a stream may have one more filter, by its cost. */
#include <assert.h>
#include <errno.h>
#include <stdint.h>

#include "gateway/delivery/deliver.h"
#include "gateway/streams/stream.h"

static int refuse_filter(struct streams *streams, enum metric metric, const char *whose,
                         struct http_refusal *refusal)
{
    metric_add(streams->settings.metrics, metric, 1);
    http_refuse(refusal, 429, "too_many_filters", NULL, "%s filters take too much memory", whose);
    refusal->retry_after_s = HTTP_RETRY_AFTER_S;
    return -EPROTO;
}

/* A replaced filter is freed a little later (delivery/binding.c); until then both exist, so at most
 * one filter exceeds the limit. */
int stream_filters_take(struct streams *streams, const struct token *token,
                        const struct filter_change *change, struct filter_share *share,
                        struct http_refusal *refusal)
{
    const struct front_settings *front = streams->settings.front;
    size_t all = deliver_filter_bytes(streams->settings.deliver) - change->freed + change->added;
    size_t own = share->bytes - change->replaced + change->added;
    int r;

    assert(change->replaced <= share->bytes);
    if (all > front->max_filter_bytes)
        return refuse_filter(streams, METRIC_FILTERS_REFUSED_WORKER, "this server's", refusal);
    r = filter_budget_set(streams->budget, sl_slice_str(token->holder), own,
                          front->max_filter_bytes_per_subject, share);
    if (r == -EDQUOT)
        return refuse_filter(streams, METRIC_FILTERS_REFUSED_SUBJECT, "this token's", refusal);
    return r;
}

void stream_filters_settle(struct streams *streams, const struct token *token, size_t bytes,
                           struct filter_share *share)
{
    int r = filter_budget_set(streams->budget, sl_slice_str(token->holder), bytes, SIZE_MAX, share);

    assert(r == 0);
    (void)r;
}
