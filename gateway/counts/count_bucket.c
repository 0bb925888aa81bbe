/* count_bucket.c - numbers, a set of authors, and a table of groups.
 *
 * A group's key is a value of the event. For a map cell it is the south-western corner,
 * "west,south": cells are counted from -180, -90 on, and a point on the last edge belongs to the
 * last cell. */
#include "gateway/counts/count_bucket.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"

enum { USUAL_BYTES = 256 /* typical size of a message */ };

struct group {
    uint64_t count;
};

static const struct sl_slice no_key = {"none", 4};

/* --- keys --- */

/* The lower edge, in thousandths, of the cell that contains `degrees`; cells begin at `first`. */
static long cell_edge(double degrees, int first, uint32_t side)
{
    long cells = (2L * -first * 1000 + side - 1) / side;
    long cell = (long)floor((degrees - first) * 1000 / side);

    return first * 1000L + (cell < cells ? cell : cells - 1) * side;
}

static int print_thousandths(char *room, size_t size, long number)
{
    long rest = labs(number) % 1000;
    const char *sign = number < 0 ? "-" : "";

    if (rest == 0)
        return snprintf(room, size, "%s%ld", sign, labs(number) / 1000);
    if (rest % 100 == 0)
        return snprintf(room, size, "%s%ld.%ld", sign, labs(number) / 1000, rest / 100);
    if (rest % 10 == 0)
        return snprintf(room, size, "%s%ld.%02ld", sign, labs(number) / 1000, rest / 10);
    return snprintf(room, size, "%s%ld.%03ld", sign, labs(number) / 1000, rest);
}

bool count_cell_of(const struct sl_event_view *view, uint32_t side, struct count_cell *ret_cell)
{
    if (!view->has_point)
        return false;
    ret_cell->west = cell_edge(view->point.lon, -180, side);
    ret_cell->south = cell_edge(view->point.lat, -90, side);
    return true;
}

static struct sl_slice cell_key(const struct sl_event_view *view, uint32_t side,
                                char room[static COUNT_KEY_BYTES])
{
    struct count_cell cell;
    int size;

    if (!count_cell_of(view, side, &cell))
        return no_key;
    size = print_thousandths(room, COUNT_KEY_BYTES, cell.west);
    room[size++] = ',';
    size += print_thousandths(room + size, (size_t)(COUNT_KEY_BYTES - size), cell.south);
    return sl_slice(room, (size_t)size);
}

/* The group key of an event; without data: it belongs to no group. */
static struct sl_slice key_of(const struct count_question *question, const struct event *event,
                              char room[static COUNT_KEY_BYTES])
{
    const struct sl_event_view *view = &event->view;

    if (question->by == COUNT_BY_TYPE)
        return sl_slice_str(event_kind_name(event->kind));
    if (event->kind != EVENT_POST)
        return SL_SLICE_NONE;
    switch (question->by) {
    case COUNT_BY_LANG:
        return view->lang.size > 0 ? view->lang : SL_SLICE("und");
    case COUNT_BY_COUNTRY:
        return view->country.size > 0 ? view->country : no_key;
    case COUNT_BY_CELL:
        return cell_key(view, question->cell_millidegrees, room);
    default:
        return SL_SLICE_NONE;
    }
}

/* --- counting --- */

/* NULL: out of memory. */
static struct group *add_group(struct count_bucket *bucket, struct sl_slice key)
{
    struct group *group = mem_zalloc(sizeof(*group));

    if (group && hash_map_add(bucket->groups, key, group) < 0) {
        mem_free(group);
        group = NULL;
    }
    return group;
}

static int count_group(struct count_bucket *bucket, struct sl_slice key)
{
    struct group *group;

    if (!bucket->groups)
        bucket->groups = hash_map_new();
    if (!bucket->groups)
        return -ENOMEM;
    group = hash_map_get(bucket->groups, key);
    if (!group && (key.size > COUNT_KEY_BYTES || count_bucket_is_full(bucket))) {
        bucket->other++;
        return 0;
    }
    if (!group)
        group = add_group(bucket, key);
    if (!group)
        return -ENOMEM;
    group->count++;
    return 0;
}

int count_bucket_add(struct count_bucket *bucket, const struct count_question *question,
                     const struct event *event, const struct count_keys *rules)
{
    char room[COUNT_KEY_BYTES];
    struct sl_slice key = key_of(question, event, room);

    if (event->kind == EVENT_POST && distinct_add(&bucket->users, event->view.user) < 0)
        return -ENOMEM;
    if (key.data && count_group(bucket, key) < 0)
        return -ENOMEM;
    for (size_t i = 0; rules && event->kind == EVENT_POST && i < rules->count; i++) {
        if (count_group(bucket, rules->list[i]) < 0)
            return -ENOMEM;
    }
    bucket->posts += event->kind == EVENT_POST;
    bucket->deletes += event->kind == EVENT_DELETE;
    return 0;
}

bool count_bucket_is_full(const struct count_bucket *bucket)
{
    return bucket->groups && hash_map_count(bucket->groups) >= COUNT_GROUPS_MAX;
}

static void forget_groups(struct count_bucket *bucket)
{
    struct sl_slice key;
    void *group;

    for (size_t at = 0; bucket->groups && hash_map_next(bucket->groups, &at, &key, &group);)
        mem_free(group);
    hash_map_free(bucket->groups);
    bucket->groups = NULL;
}

void count_bucket_clear(struct count_bucket *bucket)
{
    bucket->posts = bucket->deletes = bucket->other = 0;
    distinct_clear(&bucket->users);
    forget_groups(bucket);
}

void count_bucket_done(struct count_bucket *bucket)
{
    forget_groups(bucket);
    distinct_done(&bucket->users);
}

/* --- printing --- */

struct named_group {
    struct sl_slice key;
    uint64_t count;
};

/* Descending by count; equal counts by the bytes of their keys. */
static int compare_groups(const void *left, const void *right)
{
    const struct named_group *a = left, *b = right;
    size_t size = a->key.size < b->key.size ? a->key.size : b->key.size;
    int order = memcmp(a->key.data, b->key.data, size);

    if (a->count != b->count)
        return a->count < b->count ? 1 : -1;
    return order ? order : (a->key.size > b->key.size) - (a->key.size < b->key.size);
}

static void print_groups(const struct count_bucket *bucket, const char *member, struct buffer *json)
{
    size_t count = bucket->groups ? hash_map_count(bucket->groups) : 0, i = 0;
    struct named_group *list = mem_alloc(mem_array_size(count + 1, sizeof(*list)));
    void *group;

    if (!list) {
        json->failed = true;
        return;
    }
    for (size_t at = 0; i < count && hash_map_next(bucket->groups, &at, &list[i].key, &group);)
        list[i++].count = ((struct group *)group)->count;
    qsort(list, count, sizeof(*list), compare_groups);
    buffer_append_str(json, ",\"groups\":[");
    for (i = 0; i < count; i++) {
        buffer_append_str(json, i ? ",{\"key\":" : "{\"key\":");
        buffer_append_json_string(json, list[i].key);
        buffer_append_format(json, ",\"%s\":%" PRIu64 "}", member, list[i].count);
    }
    buffer_append_format(json, "],\"other\":%" PRIu64, bucket->other);
    mem_free(list);
}

static void print_text(struct buffer *json, const char *name, const char *value)
{
    buffer_append_str(json, name);
    buffer_append_str(json, value);
    buffer_append_char(json, '"');
}

static void print_number(struct buffer *json, const char *name, uint64_t value)
{
    buffer_append_str(json, name);
    buffer_append_decimal(json, value);
}

void count_bucket_print(const struct count_bucket *bucket, const struct count_question *question,
                        const struct count_telling *telling, struct buffer *json)
{
    char start[CLOCK_RFC3339_SIZE], end[CLOCK_RFC3339_SIZE], id[SL_ID_TEXT_SIZE];

    clock_format_rfc3339(telling->start_ms, start);
    clock_format_rfc3339(telling->end_ms, end);
    buffer_reserve(json, USUAL_BYTES);
    buffer_append_str(json, "{\"type\":\"counts\"");
    if (!telling->is_partial)
        print_text(json, ",\"id\":\"", sl_id_print(sl_id_first_at(telling->end_ms) - 1, id));
    print_text(json, ",\"start\":\"", start);
    print_text(json, ",\"end\":\"", end);
    print_number(json, ",\"posts\":", bucket->posts);
    print_number(json, ",\"deletes\":", bucket->deletes);
    print_number(json, ",\"users\":", distinct_estimate(&bucket->users));
    if (question->by != COUNT_BY_NONE)
        print_groups(bucket, question->by == COUNT_BY_TYPE ? "events" : "posts", json);
    if (telling->revision)
        buffer_append_format(json, ",\"revision\":%" PRIu32, telling->revision);
    if (telling->has_gap)
        buffer_append_str(json, ",\"gap\":true");
    if (telling->is_partial)
        buffer_append_str(json, ",\"partial\":true");
    buffer_append_char(json, '}');
}
