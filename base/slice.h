/* base/slice.h - a slice: borrowed bytes.
 *
 * A slice is a plain value: pointer and length, no NUL at the end, no ownership. As a parameter it
 * is borrowed until the call returns. `data == NULL` means absent, which differs from empty. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct sl_slice {
    const char *data;
    size_t size; /* bytes */
};

#define SL_SLICE(literal) ((struct sl_slice){(literal), sizeof(literal) - 1})
#define SL_SLICE_NONE     ((struct sl_slice){NULL, 0})

/* For printf("%.*s", SL_SLICE_ARG(s)). */
#define SL_SLICE_ARG(slice) (int)(slice).size, (slice).data

static inline struct sl_slice sl_slice(const char *data, size_t size)
{
    return (struct sl_slice){data, size};
}

/* NULL returns an absent slice. */
static inline struct sl_slice sl_slice_str(const char *text)
{
    return (struct sl_slice){text, text ? strlen(text) : 0};
}

static inline bool sl_slice_equal(struct sl_slice a, struct sl_slice b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

static inline bool sl_slice_is(struct sl_slice a, const char *text)
{
    return sl_slice_equal(a, sl_slice_str(text));
}

static inline bool sl_slice_starts_with(struct sl_slice a, struct sl_slice prefix)
{
    return a.size >= prefix.size &&
           (prefix.size == 0 || memcmp(a.data, prefix.data, prefix.size) == 0);
}

static inline struct sl_slice sl_slice_from(struct sl_slice a, size_t offset)
{
    return (struct sl_slice){offset > 0 ? a.data + offset : a.data, a.size - offset};
}
