/* kept_rules.c - makes a stream's named filters equal to the kept rules of its subject.
 *
 * Rules never change, they are only added and removed, and ids ascend. So new rules have ids above
 * all earlier ones, and one walk over two sorted lists finds the removed ones. Rules are added
 * before others are removed, so a rule that was removed and added again matches without
 * interruption. */
#include "gateway/streams/kept_rules.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/log.h"
#include "filters/filter.h"
#include "gateway/delivery/deliver.h"
#include "gateway/delivery/rule_set.h"
#include "gateway/front/dialect.h"
#include "src/model/id.h"

void ready_rules_done(struct ready_rules *ready)
{
    for (size_t i = 0; i < ready->count; i++)
        sl_filter_unref(ready->filters[i]);
    mem_free(ready->filters);
    *ready = (struct ready_rules){.count = 0};
}

/* The index of the first rule with an id above `id`. */
static size_t first_above(const struct subject_rules *rules, uint64_t id)
{
    size_t first = rules->count;

    while (first > 0 && rules->list[first - 1].id > id)
        first--;
    return first;
}

/* Sets *cost to the sum for all filters. */
static int read_filters(struct streams *streams, const struct stream_request *request,
                        const struct subject_rules *rules, bool is_strict,
                        struct ready_rules *ready, size_t *cost, struct http_refusal *refusal)
{
    for (; ready->first + ready->count < rules->count; ready->count++) {
        const struct subject_rule *rule = &rules->list[ready->first + ready->count];
        struct sl_filter **filter = &ready->filters[ready->count];
        size_t bytes = 0;
        int r = request->dialect->read_rule(rule, &request->token, filter, refusal);

        if (r == -EPROTO && !is_strict)
            continue;
        if (r == 0)
            r = deliver_filter_cost(streams->settings.deliver, *filter, &bytes);
        if (r < 0) {
            sl_filter_unref(*filter);
            return r;
        }
        *cost += bytes;
    }
    return 0;
}

int ready_rules_read(struct streams *streams, const struct stream_request *request,
                     const struct subject_rules *rules, uint64_t after, bool is_strict,
                     struct filter_share *share, struct ready_rules *ret_ready,
                     struct http_refusal *refusal)
{
    struct ready_rules ready = {.first = first_above(rules, after)};
    struct filter_change change = {0};
    int r;

    ready.filters =
        mem_zalloc(mem_array_size(rules->count - ready.first + 1, sizeof(*ready.filters)));
    if (!ready.filters)
        return -ENOMEM;
    r = read_filters(streams, request, rules, is_strict, &ready, &change.added, refusal);
    if (r == 0)
        r = stream_filters_take(streams, &request->token, &change, share, refusal);
    if (r < 0)
        ready_rules_done(&ready);
    else
        *ret_ready = ready;
    return r;
}

static int put_new(struct stream *stream, const struct subject_rules *rules,
                   const struct ready_rules *ready)
{
    char id[SL_ID_TEXT_SIZE];

    for (size_t i = 0; i < ready->count; i++) {
        const struct subject_rule *rule = &rules->list[ready->first + i];
        struct sl_slice name = sl_slice_str(sl_id_print(rule->id, id));

        if (!ready->filters[i])
            continue;
        /* Some clients treat a rule without a tag as an error. */
        if (rule_set_put(stream->own.rules, name, sl_slice_str(rule->tag ? rule->tag : ""),
                         ready->filters[i]) < 0)
            return -ENOMEM;
        stream_audit_filter(&stream->own, "filter_add", name, ready->filters[i]);
    }
    return 0;
}

static void remove_old(struct stream *stream, const struct subject_rules *rules)
{
    const struct kept_rules *kept = stream->kept_rules;
    size_t at = 0;

    for (size_t i = 0; i < kept->count; i++) {
        char id[SL_ID_TEXT_SIZE];
        struct sl_slice name;

        while (at < rules->count && rules->list[at].id < kept->ids[i])
            at++;
        if (at < rules->count && rules->list[at].id == kept->ids[i])
            continue;
        name = sl_slice_str(sl_id_print(kept->ids[i], id));
        if (rule_set_remove(stream->own.rules, name) == 0)
            stream_audit_filter(&stream->own, "filter_remove", name, NULL);
    }
}

static int remember(struct kept_rules *kept, const struct subject_rules *rules)
{
    uint64_t *ids = mem_realloc(kept->ids, mem_array_size(rules->count + 1, sizeof(*ids)));

    if (!ids)
        return -ENOMEM;
    for (size_t i = 0; i < rules->count; i++)
        ids[i] = rules->list[i].id;
    kept->ids = ids;
    kept->count = rules->count;
    kept->version = rules->version;
    return 0;
}

void kept_rules_put(struct stream *stream, const struct subject_rules *rules,
                    const struct ready_rules *ready)
{
    const struct token *token = stream_token(stream);
    int r = put_new(stream, rules, ready);

    if (r == 0)
        remove_old(stream, rules);
    if (r == 0)
        r = remember(stream->kept_rules, rules);
    stream_filters_settle(stream->streams, token, rule_set_bytes(stream->own.rules),
                          &stream->own.filters);
    if (r < 0)
        stream_evict(stream, DISCONNECT_INTERNAL);
}

void kept_rules_follow(struct stream *stream, const struct subject_rules *rules)
{
    const struct kept_rules *kept = stream->kept_rules;
    uint64_t last = kept->count > 0 ? kept->ids[kept->count - 1] : 0;
    struct ready_rules ready;
    struct http_refusal refusal;
    int r;

    if (!stream_goes_on(stream) || kept->version == rules->version)
        return;
    deliver_client_flush(&stream->own.client); /* they were matched by the old rules */
    r = ready_rules_read(stream->streams, &stream->own.request, rules, last, false,
                         &stream->own.filters, &ready, &refusal);
    if (r < 0) {
        /* The client reconnects, and then is told what is wrong. */
        stream_evict(stream, r == -EPROTO ? DISCONNECT_BUSY : DISCONNECT_INTERNAL);
        return;
    }
    kept_rules_put(stream, rules, &ready);
    ready_rules_done(&ready);
}

struct kept_rules *kept_rules_new(void)
{
    return mem_zalloc(sizeof(struct kept_rules));
}

void kept_rules_join(struct kept_rules *kept, struct stream *stream)
{
    kept->stream = stream;
    stream->kept_rules = kept;
    list_append(&stream->streams->kept_streams, &kept->node);
}

void kept_rules_free(struct kept_rules *kept)
{
    if (!kept)
        return;
    if (kept->stream)
        list_remove(&kept->stream->streams->kept_streams, &kept->node);
    mem_free(kept->ids);
    mem_free(kept);
}
