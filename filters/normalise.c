/* normalise.c - converts text to its normal form, nearly always without ICU's normaliser.
 *
 * NFKC_Casefold maps each code point by itself; what makes a normaliser slow is the NFC step after
 * it, in which marks are reordered and composed with letters. In real text this is rare. So the
 * table contains the finished normal form of each single code point, and flags those that can
 * interact with what is before them (FLAGGED, MELTING). If one occurs, the text from the last code
 * point that cannot interact up to the next such one is a segment: nothing outside of it can
 * change, and only the segment is processed by ICU.
 *
 * Marks that never compose (viramas, vowel signs, tone marks: every few letters of Hindi or Thai)
 * are unchanged if they stand alone after a finished code point. This is the NFC quick check: all
 * code points are allowed, and combining classes do not decrease.
 *
 * ICU only sees mappings of Unicode 15.0, and how these interact is guaranteed to be stable, so a
 * newer ICU gives the same result. */
#include "filters/words_private.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include <unicode/uchar.h>
#include <unicode/unorm2.h>
#include <unicode/utf16.h>
#include <unicode/utf8.h>

#include "base/alloc.h"
#include "filters/tables/unicode_table.h"

enum {
    FEW_POINTS = 96,       /* a segment of up to this size needs no heap memory */
    NFC_GROWTH = 3,        /* UAX #15: the maximum growth of UTF-16 text by NFC */
    COMBINING_DOT = 0x307, /* COMBINING DOT ABOVE */
    ICU_ORDERS = 16        /* runs of marks up to this length are ordered by ICU */
};

static const uint32_t code_point_mask = 0xFFFFFF; /* of an element; its combining class is above */

static inline bool vanishes(uint16_t value)
{
    return value >= SL_UNICODE_RECORDS && sl_unicode_record(value)->size == 0;
}

/* Whether it can interact with what is before it, or vanishes, which does not end a segment
 * either. */
static inline bool continues_segment(uint16_t value)
{
    if (value < SL_UNICODE_RECORDS)
        return value >= SL_UNICODE_MARK;
    return vanishes(value) || (sl_unicode_record(value)->info & SL_UNICODE_MELTING);
}

static const unsigned char *segment_end(const unsigned char *at, const unsigned char *end)
{
    unsigned size;

    while (at < end && continues_segment(sl_unicode_value(sl_utf8_decode(at, &size))))
        at += size;
    return at;
}

/* Writes the code points of the mappings, each with its combining class. */
static size_t map_segment(const unsigned char *at, const unsigned char *end, uint32_t *points)
{
    size_t count = 0;

    while (at < end) {
        const unsigned char *mapped = at;
        const unsigned char *mapped_end;
        uint16_t value;
        unsigned size;

        value = sl_unicode_value(sl_utf8_decode(at, &size));
        at += size;
        mapped_end = at;
        if (value >= SL_UNICODE_RECORDS) { /* those that vanish have no mapping */
            mapped = sl_unicode_pool + sl_unicode_record(value)->offset;
            mapped_end = mapped + sl_unicode_record(value)->size;
        }
        for (; mapped < mapped_end; mapped += size) {
            uint32_t code_point = sl_utf8_decode(mapped, &size);

            points[count++] = (uint32_t)u_getCombiningClass((UChar32)code_point) << 24 | code_point;
        }
    }
    return count;
}

/* Sorts by combining class; stable. */
static void order_marks(uint32_t *marks, size_t count, uint32_t *spare)
{
    size_t start[257] = {0};

    for (size_t i = 0; i < count; i++)
        start[(marks[i] >> 24) + 1]++;
    for (size_t i = 1; i < 257; i++)
        start[i] += start[i - 1];
    for (size_t i = 0; i < count; i++)
        spare[start[marks[i] >> 24]++] = marks[i];
    memcpy(marks, spare, count * sizeof(*marks));
}

/* ICU orders marks by insertion sort, so a text of marks in the wrong order would take seconds.
 * Mappings contain no mark that decomposes, so they can be ordered before. */
static void order_long_runs(uint32_t *points, size_t count, uint32_t *spare)
{
    size_t run = 0;

    for (size_t i = 0; i <= count; i++) {
        if (i < count && points[i] > code_point_mask)
            continue;
        if (i - run > ICU_ORDERS)
            order_marks(points + run, i - run, spare);
        run = i + 1;
    }
}

/* Appends as UTF-8, without dots on an `i`. */
static void append_undotted(struct buffer *normal, const UChar *units, int32_t count)
{
    char *room = buffer_reserve(normal, (size_t)count * 3);
    UChar32 before = 0;
    size_t size = 0;

    if (!room)
        return;
    for (int32_t i = 0; i < count;) {
        UChar32 code_point;

        U16_NEXT_UNSAFE(units, i, code_point);
        if (code_point != COMBINING_DOT || before != 'i')
            U8_APPEND_UNSAFE(room, size, code_point);
        before = code_point;
    }
    normal->size += size;
}

/* `points` and `spare` have room for `count` elements, `units` for (1 + NFC_GROWTH) * 2 * count. */
static int compose(const uint32_t *points, size_t count, UChar *units, struct buffer *normal)
{
    UErrorCode status = U_ZERO_ERROR;
    const UNormalizer2 *nfc = unorm2_getNFCInstance(&status);
    int32_t unit_count = 0, composed_count;
    UChar *composed;

    for (size_t i = 0; i < count; i++)
        U16_APPEND_UNSAFE(units, unit_count, points[i] & code_point_mask);
    composed = units + unit_count;
    composed_count =
        unorm2_normalize(nfc, units, unit_count, composed, NFC_GROWTH * unit_count, &status);
    if (status == U_MEMORY_ALLOCATION_ERROR)
        return -ENOMEM;
    assert(U_SUCCESS(status));
    append_undotted(normal, composed, composed_count);
    return normal->failed ? -ENOMEM : 0;
}

static int append_segment(const unsigned char *at, const unsigned char *end, struct buffer *normal)
{
    /* only the first code point's mapping can have more code points than the source has bytes */
    size_t room = (size_t)(end - at) + SL_UNICODE_LONGEST_MAPPING;
    uint32_t few_points[2 * FEW_POINTS];
    UChar few_units[(1 + NFC_GROWTH) * 2 * FEW_POINTS];
    uint32_t *points = few_points;
    UChar *units = few_units;
    void *memory = NULL;
    size_t count;
    int r;

    if (room > FEW_POINTS) {
        if (room > INT32_MAX / 8)
            return -ENOMEM;
        memory = mem_alloc(room * (2 * sizeof(*points) + (1 + NFC_GROWTH) * 2 * sizeof(*units)));
        if (!memory)
            return -ENOMEM;
        points = memory;
        units = (UChar *)(points + 2 * room);
    }
    count = map_segment(at, end, points);
    order_long_runs(points, count, points + room);
    r = compose(points, count, units, normal);
    mem_free(memory);
    return r;
}

/* Copies ASCII in lower case up to the first other byte. Returns the number of bytes. */
static size_t fold_ascii(const unsigned char *at, size_t size, char *out)
{
    const uint64_t ones = 0x0101010101010101u;
    size_t done = 0;

    for (; done + 8 <= size; done += 8) {
        uint64_t bytes, from_a, after_z;

        memcpy(&bytes, at + done, 8);
        if (bytes & (0x80 * ones))
            break;
        from_a = bytes + (0x80 - 'A') * ones;
        after_z = bytes + (0x80 - 'Z' - 1) * ones;
        bytes |= (from_a & ~after_z & (0x80 * ones)) >> 2; /* sets 0x20 in each capital letter */
        memcpy(out + done, &bytes, 8);
    }
    for (; done < size && at[done] < 0x80; done++)
        out[done] = (char)(at[done] >= 'A' && at[done] <= 'Z' ? at[done] | 0x20 : at[done]);
    return done;
}

static inline size_t copy_code_point(char *out, const unsigned char *at, unsigned size)
{
    out[0] = (char)at[0];
    out[1] = (char)at[1];
    if (size > 2)
        out[2] = (char)at[2];
    if (size > 3)
        out[3] = (char)at[3];
    return size;
}

/* There is always room for as many bytes as are left of the text; code that appends more makes room
 * for it. */
static int normalise(const unsigned char *at, const unsigned char *end, struct buffer *normal)
{
    const unsigned char *base = at;  /* where a segment would begin, */
    size_t base_size = normal->size; /* and its normal form */
    bool calm = true;                /* a MARK here would be unchanged */

    if (!buffer_reserve(normal, (size_t)(end - at)))
        return -ENOMEM;
    while (at < end) {
        char *out = normal->data + normal->size;
        size_t written = 0;
        uint16_t value;
        unsigned size;

        if (*at < 0x80) {
            written = fold_ascii(at, (size_t)(end - at), out);
            at += written;
            normal->size += written;
            base = at - 1;
            base_size = normal->size - 1;
            calm = true;
            continue;
        }

        value = sl_unicode_value(sl_utf8_decode(at, &size));
        if (value < SL_UNICODE_MARK) {
            written = copy_code_point(out, at, size);
            base = value < SL_UNICODE_UNASSIGNED ? at : at + size;
            base_size = normal->size + (size_t)(base - at);
            calm = true;
        } else if (value < SL_UNICODE_FLAGGED && calm) {
            written = copy_code_point(out, at, size);
            calm = false;
        } else if (!continues_segment(value)) {
            const struct sl_unicode_record *record = sl_unicode_record(value);

            if (record->size > size && !buffer_reserve(normal, (size_t)(end - at) + record->size))
                return -ENOMEM;
            written = record->size;
            memcpy(normal->data + normal->size, sl_unicode_pool + record->offset, written);
            base = at;
            base_size = normal->size;
            calm = !(record->info & SL_UNICODE_OPEN);
        } else if (!vanishes(value)) {
            at = segment_end(at, end);
            normal->size = base_size;
            if (append_segment(base, at, normal) < 0 || !buffer_reserve(normal, (size_t)(end - at)))
                return -ENOMEM;
            continue;
        }
        normal->size += written;
        at += size;
    }
    return 0;
}

int sl_normalise(struct sl_slice text, struct buffer *normal)
{
    const unsigned char *at = (const unsigned char *)text.data;
    size_t size = normal->size;
    int r = 0;

    if (text.size > 0)
        r = normalise(at, at + text.size, normal);
    if (r < 0)
        normal->size = size;
    return r;
}
