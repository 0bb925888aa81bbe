/* postings.c - the value of a slot is a posting, or a pointer to a list of postings.
 *
 * The lowest bit tells which. A list begins with room for four, doubles when it is full, and halves
 * when only a quarter is used. When one posting is left, it moves back into the slot. Apart from
 * resizing, adding and removing are O(1); a list that cannot be shrunk stays as it is. */
#include "filters/postings.h"

#include <assert.h>
#include <errno.h>

#include "base/alloc.h"

enum { FIRST_CAPACITY = 4 };

static uint64_t single_value(struct sl_posting posting)
{
    return (uint64_t)posting.entry << 32 | (uint64_t)posting.ordinal << 1 | 1;
}

static uint64_t list_value(struct sl_posting_list *list)
{
    return (uint64_t)(uintptr_t)list;
}

static size_t list_size(uint32_t capacity)
{
    return sizeof(struct sl_posting_list) + capacity * sizeof(struct sl_posting);
}

int sl_postings_init(struct sl_postings *postings)
{
    postings->list_bytes = 0;
    return sl_key_table_init(&postings->table);
}

void sl_postings_done(struct sl_postings *postings)
{
    const struct sl_key_table *table = &postings->table;
    size_t count = table->directory ? (size_t)1 << table->depth : 0;

    for (size_t i = 0; i < count;) {
        const struct sl_key_segment *segment = table->directory[i].segment;

        for (size_t s = 0; s < SL_SEGMENT_SLOTS; s++) {
            if (!sl_posting_value_is_single(segment->slots[s].value))
                mem_free(sl_posting_list(segment->slots[s].value));
        }
        i += (size_t)1 << (table->depth - segment->depth);
    }
    sl_key_table_done(&postings->table);
    postings->list_bytes = 0;
}

/* Changes the capacity of the list of `slot`, or creates a list if it had a single posting. */
static struct sl_posting_list *resize(struct sl_postings *postings, struct sl_key_slot *slot,
                                      uint32_t capacity)
{
    bool was_single = sl_posting_value_is_single(slot->value);
    struct sl_posting_list *list = was_single ? NULL : sl_posting_list(slot->value);
    size_t old_size = list ? list_size(list->capacity) : 0;

    list = mem_realloc(list, list_size(capacity));
    if (!list)
        return NULL;
    if (was_single) {
        list->count = 1;
        list->items[0] = sl_posting_single(slot->value);
    }
    list->capacity = capacity;
    slot->value = list_value(list);
    postings->list_bytes += list_size(capacity) - old_size;
    return list;
}

int sl_postings_add(struct sl_postings *postings, uint64_t key, struct sl_posting posting,
                    uint32_t *ret_position)
{
    struct sl_key_slot *slot = sl_key_table_find(&postings->table, key);
    struct sl_posting_list *list;

    assert(posting.ordinal < UINT32_C(1) << 31);
    if (!slot) {
        *ret_position = 0;
        return sl_key_table_add(&postings->table, key, single_value(posting));
    }
    if (sl_posting_value_is_single(slot->value)) {
        list = resize(postings, slot, FIRST_CAPACITY);
    } else {
        list = sl_posting_list(slot->value);
        if (list->count == list->capacity)
            list = resize(postings, slot, list->capacity * 2);
    }
    if (!list)
        return -ENOMEM;
    *ret_position = list->count;
    list->items[list->count++] = posting;
    return 0;
}

bool sl_postings_remove(struct sl_postings *postings, uint64_t key, uint32_t position,
                        struct sl_posting *ret_moved)
{
    struct sl_key_slot *slot = sl_key_table_find(&postings->table, key);
    struct sl_posting_list *list;
    bool moved;

    assert(slot);
    if (sl_posting_value_is_single(slot->value)) {
        assert(position == 0);
        sl_key_table_remove(&postings->table, slot);
        return false;
    }
    list = sl_posting_list(slot->value);
    assert(position < list->count && list->count > 1);
    moved = position != --list->count;
    if (moved)
        *ret_moved = list->items[position] = list->items[list->count];
    if (list->count == 1) {
        slot->value = single_value(list->items[0]);
        postings->list_bytes -= list_size(list->capacity);
        mem_free(list);
    } else if (list->count <= list->capacity / 4) {
        resize(postings, slot, list->capacity / 2); /* a failure does no harm */
    }
    return moved;
}

uint32_t sl_postings_count(const struct sl_postings *postings, uint64_t key)
{
    const struct sl_key_slot *slot = sl_key_table_find(&postings->table, key);

    if (!slot)
        return 0;
    return sl_posting_value_is_single(slot->value) ? 1 : sl_posting_list(slot->value)->count;
}

size_t sl_postings_bytes(const struct sl_postings *postings)
{
    return sl_key_table_bytes(&postings->table) + postings->list_bytes;
}
