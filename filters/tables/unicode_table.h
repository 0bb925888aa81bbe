/* filters/tables/unicode_table.h - what words need to know of a code point; internal.
 *
 * Unicode 15.0, pinned: the tables are generated (make_unicode_table.py) and part of the source.
 * A two-stage array gives each code point a value. Below SL_UNICODE_RECORDS the code point is its
 * own normal form and the value says the rest; above, the value counts records. */
#pragma once

#include <stdint.h>

/* Section 4 of docs/filters.md; each also the low bits of a value and of a record's `info`. */
enum sl_unicode_class {
    SL_UNICODE_SEPARATOR,
    SL_UNICODE_WORD,
    SL_UNICODE_UNSPACED,
    SL_UNICODE_EMOJI,
    SL_UNICODE_CLASS_MASK = 3
};

enum {
    SL_UNICODE_LETTER = 4, /* general category L* */

    /* How a code point that is its own normal form behaves among others. */
    SL_UNICODE_PLAIN = 0,      /* nothing of it moves or melts into what stands before it */
    SL_UNICODE_UNASSIGNED = 8, /* so too, and marks do not melt into it */
    SL_UNICODE_MARK = 16,      /* combining mark that never composes: calm if it stands alone */
    SL_UNICODE_FLAGGED = 24,   /* can change with what stands before it */
    SL_UNICODE_KIND_MASK = 24,

    SL_UNICODE_RECORDS = 32, /* value of the first record */

    /* The same of a record's mapping; neither: it is PLAIN at both ends, or empty. */
    SL_UNICODE_OPEN = 8,     /* ends with a mark */
    SL_UNICODE_MELTING = 16, /* FLAGGED */

    SL_UNICODE_BLOCK_BITS = 7
};

/* A code point that is replaced by others. */
struct sl_unicode_record {
    uint16_t offset; /* of the mapping, UTF-8, in sl_unicode_pool */
    uint8_t size;    /* bytes; 0: the code point vanishes */
    uint8_t info;    /* class and letter bit of the code point itself; OPEN, MELTING */
};

extern const uint16_t sl_unicode_index[];
extern const uint16_t sl_unicode_values[];
extern const struct sl_unicode_record sl_unicode_records[];
extern const unsigned char sl_unicode_pool[];

/* What became of one code point must fit where its mapping is put together. */
enum { SL_UNICODE_LONGEST_MAPPING = 33 };

static inline uint16_t sl_unicode_value(uint32_t code_point)
{
    uint32_t block = sl_unicode_index[code_point >> SL_UNICODE_BLOCK_BITS];
    uint32_t low = code_point & ((1u << SL_UNICODE_BLOCK_BITS) - 1);

    return sl_unicode_values[(block << SL_UNICODE_BLOCK_BITS) + low];
}

static inline const struct sl_unicode_record *sl_unicode_record(uint16_t value)
{
    return &sl_unicode_records[value - SL_UNICODE_RECORDS];
}

/* Class and letter bit of the code point as it stands. */
static inline unsigned sl_unicode_info(uint32_t code_point)
{
    uint16_t value = sl_unicode_value(code_point);

    return value < SL_UNICODE_RECORDS ? value : sl_unicode_record(value)->info;
}

/* The code point at `bytes`, which hold valid UTF-8; *ret_size is 1 to 4. */
static inline uint32_t sl_utf8_decode(const unsigned char *bytes, unsigned *ret_size)
{
    uint32_t lead = bytes[0];

    if (lead < 0x80) {
        *ret_size = 1;
        return lead;
    }
    if (lead < 0xE0) {
        *ret_size = 2;
        return (lead & 0x1F) << 6 | (bytes[1] & 0x3Fu);
    }
    if (lead < 0xF0) {
        *ret_size = 3;
        return (lead & 0x0F) << 12 | (bytes[1] & 0x3Fu) << 6 | (bytes[2] & 0x3Fu);
    }
    *ret_size = 4;
    return (lead & 0x07) << 18 | (bytes[1] & 0x3Fu) << 12 | (bytes[2] & 0x3Fu) << 6 |
           (bytes[3] & 0x3Fu);
}
