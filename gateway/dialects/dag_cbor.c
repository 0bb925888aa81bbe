/* dag_cbor.c - an encoder for one form of CBOR.
 *
 * It writes items recursively: a head with the type and the length, then the content. The pairs of
 * a map are collected and sorted by key first; a map has as many keys as the JSON object. jansson
 * limits the depth of the JSON. */
#include "gateway/dialects/dag_cbor.h"

#include <errno.h>
#include <openssl/sha.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

enum major_type { MAJOR_UNSIGNED, MAJOR_NEGATIVE, MAJOR_TEXT = 3, MAJOR_ARRAY, MAJOR_MAP };

enum { SIMPLE_FALSE = 0xf4, SIMPLE_TRUE, SIMPLE_NULL };

/* The beginning of each item: its major type, and a number in as few bytes as possible. */
static void append_head(enum major_type type, uint64_t number, struct buffer *bytes)
{
    unsigned size = number < 24            ? 0
                    : number <= UINT8_MAX  ? 1
                    : number <= UINT16_MAX ? 2
                    : number <= UINT32_MAX ? 4
                                           : 8;
    unsigned info = size == 0 ? (unsigned)number : 24 + (unsigned)__builtin_ctz(size);

    buffer_append_char(bytes, (char)(type << 5 | info));
    while (size-- > 0)
        buffer_append_char(bytes, (char)(number >> 8 * size));
}

static void append_text(struct sl_slice text, struct buffer *bytes)
{
    append_head(MAJOR_TEXT, text.size, bytes);
    buffer_append_slice(bytes, text);
}

static int compare_keys(const void *left, const void *right)
{
    struct sl_slice a = sl_slice_str(*(const char *const *)left);
    struct sl_slice b = sl_slice_str(*(const char *const *)right);

    if (a.size != b.size)
        return a.size < b.size ? -1 : 1;
    return memcmp(a.data, b.data, a.size);
}

static int append_map(const json_t *map, struct buffer *bytes)
{
    size_t count = json_object_size(map), i = 0;
    const char **keys = mem_alloc(mem_array_size(count + 1, sizeof(*keys)));
    const char *key;
    json_t *value;
    int r = keys ? 0 : -ENOMEM;

    append_head(MAJOR_MAP, count, bytes);
    json_object_foreach((json_t *)map, key, value)
    {
        if (keys)
            keys[i++] = key;
    }
    if (keys)
        qsort(keys, count, sizeof(*keys), compare_keys);
    for (i = 0; r == 0 && i < count; i++) {
        append_text(sl_slice_str(keys[i]), bytes);
        r = dag_cbor_append(json_object_get(map, keys[i]), bytes);
    }
    mem_free(keys);
    return r;
}

static int append_array(const json_t *array, struct buffer *bytes)
{
    size_t count = json_array_size(array);
    int r = 0;

    append_head(MAJOR_ARRAY, count, bytes);
    for (size_t i = 0; r == 0 && i < count; i++)
        r = dag_cbor_append(json_array_get(array, i), bytes);
    return r;
}

static void append_integer(json_int_t number, struct buffer *bytes)
{
    if (number < 0)
        append_head(MAJOR_NEGATIVE, (uint64_t)(-1 - number), bytes);
    else
        append_head(MAJOR_UNSIGNED, (uint64_t)number, bytes);
}

int dag_cbor_append(const json_t *json, struct buffer *bytes)
{
    int r = 0;

    switch (json_typeof(json)) {
    case JSON_OBJECT:
        r = append_map(json, bytes);
        break;
    case JSON_ARRAY:
        r = append_array(json, bytes);
        break;
    case JSON_STRING:
        append_text(sl_slice(json_string_value(json), json_string_length(json)), bytes);
        break;
    case JSON_INTEGER:
        append_integer(json_integer_value(json), bytes);
        break;
    case JSON_REAL:
        return -EINVAL;
    case JSON_TRUE:
        buffer_append_char(bytes, (char)SIMPLE_TRUE);
        break;
    case JSON_FALSE:
        buffer_append_char(bytes, (char)SIMPLE_FALSE);
        break;
    case JSON_NULL:
        buffer_append_char(bytes, (char)SIMPLE_NULL);
        break;
    }
    return r == 0 && bytes->failed ? -ENOMEM : r;
}

void cid_of(enum cid_codec codec, struct sl_slice bytes, char ret_text[static CID_TEXT_SIZE])
{
    static const char digits[] = "abcdefghijklmnopqrstuvwxyz234567";
    unsigned char cid[4 + SHA256_DIGEST_LENGTH] = {1, (unsigned char)codec, 0x12,
                                                   SHA256_DIGEST_LENGTH};
    char *out = ret_text;

    SHA256((const unsigned char *)bytes.data, bytes.size, cid + 4);
    *out++ = 'b'; /* base32, in lower case, without padding */
    for (size_t bit = 0; bit < sizeof(cid) * 8; bit += 5) {
        unsigned high = cid[bit / 8], low = bit / 8 + 1 < sizeof(cid) ? cid[bit / 8 + 1] : 0;

        *out++ = digits[(high << 8 | low) >> (11 - bit % 8) & 31];
    }
    *out = '\0';
}
