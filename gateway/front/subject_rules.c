/* subject_rules.c - a list sorted by id; each rule owns its texts.
 *
 * Rules are found by id with the help of the order, and by value with a linear search. Their number
 * is limited by the token. */
#include "gateway/front/subject_rules.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

static int make_room(struct subject_rules *rules)
{
    size_t room = rules->room ? rules->room * 2 : 8;
    struct subject_rule *list;

    if (rules->count < rules->room)
        return 0;
    list = mem_realloc(rules->list, mem_array_size(room, sizeof(*list)));
    if (!list)
        return -ENOMEM;
    rules->list = list;
    rules->room = room;
    return 0;
}

static void rule_done(struct subject_rule *rule)
{
    mem_free((char *)rule->value);
    mem_free((char *)rule->tag);
}

static int copy(struct subject_rule *rule, const char *value, const char *tag)
{
    rule->value = mem_strndup(value, strlen(value));
    rule->tag = tag ? mem_strndup(tag, strlen(tag)) : NULL;
    if (rule->value && (!tag || rule->tag))
        return 0;
    rule_done(rule);
    return -ENOMEM;
}

int subject_rules_add(struct subject_rules *rules, uint64_t id, struct sl_slice json)
{
    json_t *object = json_loadb(json.data, json.size, JSON_REJECT_DUPLICATES, NULL);
    const char *value = json_string_value(json_object_get(object, "value"));
    struct subject_rule rule = {.id = id};
    int r = value ? make_room(rules) : -EBADMSG;

    if (r == 0)
        r = copy(&rule, value, json_string_value(json_object_get(object, "tag")));
    if (r == 0)
        rules->list[rules->count++] = rule;
    json_decref(object);
    return r;
}

static int compare(const void *a, const void *b)
{
    uint64_t first = ((const struct subject_rule *)a)->id,
             second = ((const struct subject_rule *)b)->id;

    return (first > second) - (first < second);
}

void subject_rules_sort(struct subject_rules *rules)
{
    if (rules->count > 1)
        qsort(rules->list, rules->count, sizeof(*rules->list), compare);
}

void subject_rules_done(struct subject_rules *rules)
{
    for (size_t i = 0; i < rules->count; i++)
        rule_done(&rules->list[i]);
    mem_free(rules->list);
    *rules = (struct subject_rules){.list = NULL};
}

const struct subject_rule *subject_rules_find(const struct subject_rules *rules, uint64_t id)
{
    const struct subject_rule key = {.id = id};

    return rules->count > 0 ? bsearch(&key, rules->list, rules->count, sizeof(key), compare) : NULL;
}

const struct subject_rule *subject_rules_find_value(const struct subject_rules *rules,
                                                    struct sl_slice value)
{
    for (size_t i = 0; i < rules->count; i++) {
        if (sl_slice_is(value, rules->list[i].value))
            return &rules->list[i];
    }
    return NULL;
}

void subject_rule_print(const char *value, const char *tag, struct buffer *ret_json)
{
    buffer_append_str(ret_json, "{\"value\":");
    buffer_append_json_string(ret_json, sl_slice_str(value));
    if (tag) {
        buffer_append_str(ret_json, ",\"tag\":");
        buffer_append_json_string(ret_json, sl_slice_str(tag));
    }
    buffer_append_char(ret_json, '}');
}
