/* rule_set.c - a list of rules, each of which has its own subscription in the filter index.
 *
 * A match sets the rule's `hit`. When the event has been matched with all filters, the names of the
 * hit rules become the end of the event for this client. A new rule is bound before the one it
 * replaces is removed, so that no event is missed. Looking up a rule is linear; the caller limits
 * the number of rules. */
#include "gateway/delivery/rule_set.h"

#include <assert.h>
#include <errno.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/list.h"
#include "gateway/delivery/deliver_parts.h"

struct rule {
    struct named_rule named;
    struct list_node node;
    uint32_t subscription;
    size_t bytes; /* the cost of the filter */
    bool hit;     /* by the current event */
};

struct rule_set {
    struct lane *lane;
    struct list rules;  /* in the order of adding */
    size_t bytes;       /* the costs of their filters */
    struct buffer tail; /* of the current event */
    struct buffer hits; /* for a lane that counts: a slice for each hit rule */
};

struct rule_set *rule_set_new(struct lane *lane)
{
    struct rule_set *rules = mem_zalloc(sizeof(*rules));

    if (!rules)
        return NULL;
    rules->lane = lane;
    list_init(&rules->rules);
    return rules;
}

static void rule_free(struct rule *rule)
{
    if (!rule)
        return;
    sl_filter_unref(rule->named.filter);
    mem_free((char *)rule->named.id);
    mem_free((char *)rule->named.tag);
    mem_free(rule);
}

static void drop(struct rule_set *rules, struct rule *rule)
{
    binding_remove(rules->lane->deliver, rule->subscription);
    list_remove(&rules->rules, &rule->node);
    rules->bytes -= rule->bytes;
    rule_free(rule);
}

void rule_set_free(struct rule_set *rules)
{
    if (!rules)
        return;
    LIST_EACH(&rules->rules, node)
    drop(rules, LIST_OWNER(node, struct rule, node));
    buffer_done(&rules->tail);
    buffer_done(&rules->hits);
    mem_free(rules);
}

static struct rule *find(const struct rule_set *rules, struct sl_slice id)
{
    LIST_EACH(&rules->rules, node)
    {
        struct rule *rule = LIST_OWNER(node, struct rule, node);

        if (sl_slice_is(id, rule->named.id))
            return rule;
    }
    return NULL;
}

static struct rule *rule_new(struct sl_slice id, struct sl_slice tag, struct sl_filter *filter)
{
    struct rule *rule = mem_zalloc(sizeof(*rule));

    if (!rule)
        return NULL;
    rule->named.filter = sl_filter_ref(filter);
    rule->named.id = mem_strndup(id.data, id.size);
    if (tag.data)
        rule->named.tag = mem_strndup(tag.data, tag.size);
    if (!rule->named.id || (tag.data && !rule->named.tag)) {
        rule_free(rule);
        return NULL;
    }
    return rule;
}

/* Equal filters of many clients are stored once. */
static void share_filter(const struct deliver *deliver, struct rule *rule)
{
    struct sl_filter *own = rule->named.filter;

    rule->named.filter = sl_filter_ref(sl_filter_index_filter(deliver->index, rule->subscription));
    sl_filter_unref(own);
}

int rule_set_put(struct rule_set *rules, struct sl_slice id, struct sl_slice tag,
                 struct sl_filter *filter)
{
    struct deliver *deliver = rules->lane->deliver;
    struct rule *replaced = find(rules, id);
    struct rule *rule = rule_new(id, tag, filter);

    if (!rule)
        return -ENOMEM;
    if (deliver_filter_cost(deliver, filter, &rule->bytes) < 0 ||
        binding_add(deliver, filter, rules->lane, &rule->hit, &rule->subscription) < 0) {
        rule_free(rule);
        return -ENOMEM;
    }
    share_filter(deliver, rule);
    rules->bytes += rule->bytes;
    list_append(&rules->rules, &rule->node);
    if (replaced)
        drop(rules, replaced);
    return 0;
}

int rule_set_remove(struct rule_set *rules, struct sl_slice id)
{
    struct rule *rule = find(rules, id);

    if (!rule)
        return -ENOENT;
    drop(rules, rule);
    return 0;
}

size_t rule_set_bytes(const struct rule_set *rules)
{
    return rules->bytes;
}

size_t rule_set_bytes_of(const struct rule_set *rules, struct sl_slice id, size_t *ret_freed)
{
    const struct rule *rule = find(rules, id);

    *ret_freed =
        rule ? sl_filter_index_removal_bytes(rules->lane->deliver->index, rule->subscription) : 0;
    return rule ? rule->bytes : 0;
}

size_t rule_set_count(const struct rule_set *rules)
{
    return rules->rules.count;
}

bool rule_set_has(const struct rule_set *rules, struct sl_slice id)
{
    return find(rules, id) != NULL;
}

const struct named_rule *rule_set_at(const struct rule_set *rules, size_t index)
{
    LIST_EACH(&rules->rules, node)
    {
        if (index-- == 0)
            return &LIST_OWNER(node, struct rule, node)->named;
    }
    return NULL;
}

struct sl_slice rule_set_name_hits(struct rule_set *rules)
{
    struct buffer *tail = &rules->tail;
    const char *separator = "";

    buffer_clear(tail);
    buffer_append_str(tail, ",\"matching_rules\":[");
    LIST_EACH(&rules->rules, node)
    {
        struct rule *rule = LIST_OWNER(node, struct rule, node);

        if (!rule->hit)
            continue;
        rule->hit = false;
        buffer_append_str(tail, separator);
        separator = ",";
        buffer_append_str(tail, "{\"id\":");
        buffer_append_json_string(tail, sl_slice_str(rule->named.id));
        if (rule->named.tag) {
            buffer_append_str(tail, ",\"tag\":");
            buffer_append_json_string(tail, sl_slice_str(rule->named.tag));
        }
        buffer_append_char(tail, '}');
    }
    buffer_append_char(tail, ']');
    return tail->failed ? SL_SLICE_NONE : buffer_slice(tail);
}

struct count_keys rule_set_hits(const struct rule_set *rules)
{
    return (struct count_keys){.list = (const struct sl_slice *)rules->hits.data,
                               .count = rules->hits.size / sizeof(struct sl_slice)};
}

int rule_set_take_hits(struct rule_set *rules)
{
    buffer_clear(&rules->hits);
    LIST_EACH(&rules->rules, node)
    {
        struct rule *rule = LIST_OWNER(node, struct rule, node);
        const struct sl_slice id = sl_slice_str(rule->named.id);

        if (rule->hit)
            buffer_append(&rules->hits, &id, sizeof(id));
        rule->hit = false;
    }
    return rules->hits.failed ? -ENOMEM : 0;
}

int rule_set_wants(struct rule_set *rules, const struct event *event, const struct sl_words *words,
                   struct sl_slice *ret_tail)
{
    bool is_hit = false;

    LIST_EACH(&rules->rules, node)
    {
        struct rule *rule = LIST_OWNER(node, struct rule, node);

        rule->hit = sl_filter_matches(rule->named.filter, &event->view, words);
        is_hit = is_hit || rule->hit;
    }
    if (!is_hit)
        return 0;
    if (lane_counts(rules->lane))
        return rule_set_take_hits(rules) < 0 ? -ENOMEM : 1;
    *ret_tail = rule_set_name_hits(rules);
    return ret_tail->data ? 1 : -ENOMEM;
}
