/* key_table.c - extendible hashing; the idea and its sources are in key_table.h.
 *
 * The Bloom words of a segment are in a slab, and the directory repeats pointers to them and to the
 * segment, so that a miss touches neither the segment nor its slots. A split moves the keys whose
 * next bit is set, and rebuilds both filters. The highest bits of a key select the segment and the
 * lowest the slot, so a segment has a depth of at most 26. */
#include "filters/key_table.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/alloc.h"

/* Used slots at which a segment is split. With linear probing at a load of 13/16, finding a key
 * takes 3 steps, and finding a free slot 15. */
enum { SEGMENT_FULL = SL_SEGMENT_SLOTS * 13 / 16 };

static uint64_t *bloom_of(const struct sl_key_table *table, const struct sl_key_segment *segment)
{
    return sl_slab_at(&table->blooms, segment->number);
}

static struct sl_key_segment *segment_new(struct sl_key_table *table, uint32_t depth)
{
    struct sl_key_segment *segment = mem_zalloc(sizeof(*segment));

    if (!segment)
        return NULL;
    if (!sl_slab_add(&table->blooms, &segment->number)) {
        mem_free(segment);
        return NULL;
    }
    segment->depth = depth;
    table->segments++;
    return segment;
}

static void segment_put(struct sl_key_segment *segment, uint64_t *bloom, struct sl_key_slot slot)
{
    uint64_t i = slot.key;

    while (segment->slots[i % SL_SEGMENT_SLOTS].value != 0)
        i++;
    segment->slots[i % SL_SEGMENT_SLOTS] = slot;
    segment->used++;
    bloom[(slot.key >> 8) % SL_SEGMENT_BLOOM_WORDS] |= sl_key_bloom_bits(slot.key);
}

int sl_key_table_init(struct sl_key_table *table)
{
    struct sl_key_segment *segment;

    *table = (struct sl_key_table){.depth = 1};
    sl_slab_init(&table->blooms, SL_SEGMENT_BLOOM_WORDS * sizeof(uint64_t));
    table->directory = mem_alloc(2 * sizeof(*table->directory));
    segment = segment_new(table, 0);
    if (!table->directory || !segment) {
        mem_free(segment);
        mem_free(table->directory);
        sl_slab_done(&table->blooms);
        *table = (struct sl_key_table){0};
        return -ENOMEM;
    }
    table->directory[0] = (struct sl_key_dir){bloom_of(table, segment), segment};
    table->directory[1] = table->directory[0];
    return 0;
}

void sl_key_table_done(struct sl_key_table *table)
{
    size_t count = table->directory ? (size_t)1 << table->depth : 0;

    for (size_t i = 0; i < count;) {
        struct sl_key_segment *segment = table->directory[i].segment;

        i += (size_t)1 << (table->depth - segment->depth);
        mem_free(segment);
    }
    mem_free(table->directory);
    sl_slab_done(&table->blooms);
    *table = (struct sl_key_table){0};
}

struct sl_key_slot *sl_key_table_find(const struct sl_key_table *table, uint64_t key)
{
    const struct sl_key_dir *dir = sl_key_table_dir(table, key);

    return sl_key_dir_may_have(dir, key) ? sl_key_dir_find(dir, key) : NULL;
}

static int double_directory(struct sl_key_table *table)
{
    size_t count = (size_t)1 << table->depth;
    struct sl_key_dir *directory;

    directory = mem_alloc(mem_array_size(count * 2, sizeof(*directory)));
    if (!directory)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        directory[2 * i] = directory[2 * i + 1] = table->directory[i];
    mem_free(table->directory);
    table->directory = directory;
    table->depth++;
    return 0;
}

/* Splits the segment of `key`: keys whose next bit is set move to a new segment. */
static int split(struct sl_key_table *table, uint64_t key)
{
    struct sl_key_segment *low = sl_key_table_dir(table, key)->segment;
    struct sl_key_segment *high;
    struct sl_key_slot slots[SL_SEGMENT_SLOTS];
    uint64_t *blooms[2];
    size_t first, half;
    int r;

    /* The bits above select the segment, those below the slot within it. */
    assert(low->depth < 26);
    if (low->depth == table->depth) {
        r = double_directory(table);
        if (r < 0)
            return r;
    }
    high = segment_new(table, low->depth + 1);
    if (!high)
        return -ENOMEM;
    low->depth++;

    half = (size_t)1 << (table->depth - low->depth);
    first = (size_t)(key >> (64 - table->depth)) & ~(2 * half - 1);
    blooms[0] = bloom_of(table, low);
    blooms[1] = bloom_of(table, high);
    for (size_t i = first + half; i < first + 2 * half; i++)
        table->directory[i] = (struct sl_key_dir){blooms[1], high};

    memcpy(slots, low->slots, sizeof(slots));
    memset(low->slots, 0, sizeof(low->slots));
    memset(blooms[0], 0, SL_SEGMENT_BLOOM_WORDS * sizeof(uint64_t));
    low->used = low->removed = 0;
    for (size_t i = 0; i < SL_SEGMENT_SLOTS; i++) {
        unsigned side = slots[i].key >> (64 - low->depth) & 1;

        if (slots[i].value != 0)
            segment_put(side ? high : low, blooms[side], slots[i]);
    }
    return 0;
}

int sl_key_table_add(struct sl_key_table *table, uint64_t key, uint64_t value)
{
    struct sl_key_segment *segment;
    int r;

    assert(value != 0);
    while ((segment = sl_key_table_dir(table, key)->segment)->used >= SEGMENT_FULL) {
        r = split(table, key);
        if (r < 0)
            return r;
    }
    segment_put(segment, bloom_of(table, segment), (struct sl_key_slot){key, value});
    return 0;
}

static void make_bloom_anew(struct sl_key_table *table, struct sl_key_segment *segment)
{
    uint64_t *bloom = bloom_of(table, segment);

    memset(bloom, 0, SL_SEGMENT_BLOOM_WORDS * sizeof(*bloom));
    for (size_t i = 0; i < SL_SEGMENT_SLOTS; i++) {
        uint64_t key = segment->slots[i].key;

        if (segment->slots[i].value != 0)
            bloom[(key >> 8) % SL_SEGMENT_BLOOM_WORDS] |= sl_key_bloom_bits(key);
    }
    segment->removed = 0;
}

void sl_key_table_remove(struct sl_key_table *table, struct sl_key_slot *slot)
{
    struct sl_key_segment *segment = sl_key_table_dir(table, slot->key)->segment;
    struct sl_key_slot *slots = segment->slots;
    size_t hole = (size_t)(slot - slots);

    /* No tombstones: a later key that would be found sooner in the hole moves into it. */
    for (size_t i = hole + 1; slots[i % SL_SEGMENT_SLOTS].value != 0; i++) {
        struct sl_key_slot *next = &slots[i % SL_SEGMENT_SLOTS];
        size_t home_to_next = (i - next->key) % SL_SEGMENT_SLOTS;

        if (home_to_next >= i - hole) {
            slots[hole % SL_SEGMENT_SLOTS] = *next;
            hole = i;
        }
    }
    slots[hole % SL_SEGMENT_SLOTS].value = 0;
    segment->used--;
    if (++segment->removed > SEGMENT_FULL / 2)
        make_bloom_anew(table, segment);
}

size_t sl_key_table_bytes(const struct sl_key_table *table)
{
    return table->segments * sizeof(struct sl_key_segment) + sl_slab_bytes(&table->blooms) +
           ((size_t)1 << table->depth) * sizeof(*table->directory);
}
