/* condition_build.c - appends conditions to one buffer, and normalises joins.
 *
 * The parts of a join are appended first and then closed: the parts after the mark are sorted as
 * bytes, duplicates are removed, nested joins of the same kind are flattened, and a single part
 * needs no join. This makes equal filters equal bytes, in O(n log n) of the parts. Out of memory
 * shows in the buffer, which is checked once at the end. */
#include "filters/condition.h"

#include <assert.h>
#include <stdlib.h>

#include "filters/polygon_cells.h"

enum { VARINT_MAX = 5 };

static size_t varint_write(unsigned char *at, uint32_t number)
{
    size_t size = 0;

    for (; number >= 0x80; number >>= 7)
        at[size++] = (unsigned char)(number | 0x80);
    at[size++] = (unsigned char)number;
    return size;
}

static size_t varint_size(uint32_t number)
{
    unsigned char room[VARINT_MAX];

    return varint_write(room, number);
}

static void add_varint(struct buffer *bytes, uint32_t number)
{
    unsigned char room[VARINT_MAX];

    buffer_append(bytes, room, varint_write(room, number));
}

static void add_head(struct sl_condition_builder *builder, enum sl_condition_kind kind, size_t size)
{
    buffer_append_char(&builder->bytes, (char)kind);
    add_varint(&builder->bytes, (uint32_t)size);
}

/* Makes what was appended since bytes.size was `mark` the operand of a condition. */
static void wrap(struct sl_condition_builder *builder, enum sl_condition_kind kind, size_t mark)
{
    struct buffer *bytes = &builder->bytes;
    unsigned char head[1 + VARINT_MAX];
    size_t head_size, size = bytes->size - mark;

    head[0] = (unsigned char)kind;
    head_size = 1 + varint_write(head + 1, (uint32_t)size);
    if (bytes->failed || !buffer_reserve(bytes, head_size))
        return;
    memmove(bytes->data + mark + head_size, bytes->data + mark, size);
    memcpy(bytes->data + mark, head, head_size);
    bytes->size += head_size;
}

void sl_condition_builder_done(struct sl_condition_builder *builder)
{
    buffer_done(&builder->bytes);
    buffer_done(&builder->copy);
    buffer_done(&builder->order);
}

void sl_condition_add(struct sl_condition_builder *builder, enum sl_condition_kind kind,
                      const void *operand, size_t size)
{
    add_head(builder, kind, size);
    buffer_append(&builder->bytes, operand, size);
}

/* The varint of a token is twice its size, plus its gap. Tokens of a place have no gaps, because
 * they do not matter there, and neither has the first token of a keyword. */
static uint32_t token_head(enum sl_condition_kind kind, const struct sl_token_list *tokens,
                           size_t i)
{
    bool gap = kind == SL_CONDITION_KEYWORD && i > 0 && tokens->items[i].gap;

    return tokens->items[i].size << 1 | gap;
}

void sl_condition_add_tokens(struct sl_condition_builder *builder, enum sl_condition_kind kind,
                             struct sl_slice normal, const struct sl_token_list *tokens)
{
    size_t size = 0;

    assert(tokens->count > 0);
    for (size_t i = 0; i < tokens->count; i++)
        size += varint_size(token_head(kind, tokens, i)) + tokens->items[i].size;
    add_head(builder, kind, size);
    for (size_t i = 0; i < tokens->count; i++) {
        add_varint(&builder->bytes, token_head(kind, tokens, i));
        buffer_append(&builder->bytes, normal.data + tokens->items[i].offset,
                      tokens->items[i].size);
    }
}

void sl_condition_add_url(struct sl_condition_builder *builder, struct sl_slice host,
                          struct sl_slice path)
{
    add_head(builder, SL_CONDITION_URL, varint_size((uint32_t)host.size) + host.size + path.size);
    add_varint(&builder->bytes, (uint32_t)host.size);
    buffer_append_slice(&builder->bytes, host);
    buffer_append_slice(&builder->bytes, path);
}

void sl_condition_add_polygon(struct sl_condition_builder *builder, const struct sl_point *points,
                              size_t count)
{
    size_t mark = builder->bytes.size;

    sl_polygon_write(points, count, &builder->bytes);
    wrap(builder, SL_CONDITION_POLYGON, mark);
}

static int compare_slices(const void *a, const void *b)
{
    const struct sl_slice *left = a, *right = b;
    size_t size = left->size < right->size ? left->size : right->size;
    int order = memcmp(left->data, right->data, size);

    if (order == 0)
        order = (left->size > right->size) - (left->size < right->size);
    return order;
}

/* Sorts and removes duplicates. Returns the number left. */
static size_t sort_unique(struct sl_slice *slices, size_t count)
{
    size_t kept = 0;

    qsort(slices, count, sizeof(*slices), compare_slices);
    for (size_t i = 0; i < count; i++) {
        if (kept == 0 || !sl_slice_equal(slices[kept - 1], slices[i]))
            slices[kept++] = slices[i];
    }
    return kept;
}

/* The number of ids, the end offset of each, then their bytes: suitable for binary search. */
void sl_condition_add_users(struct sl_condition_builder *builder, struct sl_slice *ids,
                            size_t count)
{
    uint32_t end = 0, number;

    count = sort_unique(ids, count);
    for (size_t i = 0; i < count; i++)
        end += (uint32_t)ids[i].size;
    add_head(builder, SL_CONDITION_USERS, sizeof(number) * (1 + count) + end);

    number = (uint32_t)count;
    buffer_append(&builder->bytes, &number, sizeof(number));
    end = 0;
    for (size_t i = 0; i < count; i++) {
        end += (uint32_t)ids[i].size;
        buffer_append(&builder->bytes, &end, sizeof(end));
    }
    for (size_t i = 0; i < count; i++)
        buffer_append_slice(&builder->bytes, ids[i]);
}

/* Lists the conditions in `rest`, replacing those of `kind` by their parts. */
static void list_parts(struct sl_condition_builder *builder, enum sl_condition_kind kind,
                       struct sl_slice rest)
{
    struct sl_condition part;

    while (sl_condition_next(&rest, &part)) {
        if (part.kind == kind)
            list_parts(builder, kind, part.operand);
        else
            buffer_append(&builder->order, &part.whole, sizeof(part.whole));
    }
}

/* Copies the conditions from `mark` on. 0: out of memory. */
static size_t copy_parts(struct sl_condition_builder *builder, enum sl_condition_kind kind,
                         size_t mark, struct sl_slice **ret_parts)
{
    struct buffer *bytes = &builder->bytes;

    buffer_clear(&builder->copy);
    buffer_clear(&builder->order);
    buffer_append(&builder->copy, bytes->data + mark, bytes->size - mark);
    list_parts(builder, kind, buffer_slice(&builder->copy));
    if (builder->copy.failed || builder->order.failed) {
        bytes->failed = true;
        return 0;
    }
    *ret_parts = (struct sl_slice *)(void *)builder->order.data;
    return builder->order.size / sizeof(**ret_parts);
}

static void replace_parts(struct buffer *bytes, size_t mark, const struct sl_slice *parts,
                          size_t count)
{
    bytes->size = mark;
    for (size_t i = 0; i < count; i++)
        buffer_append_slice(bytes, parts[i]);
}

/* Sorts the conditions from `mark` on. 1: only one is left, which keeps its own kind. */
static size_t sort_parts(struct sl_condition_builder *builder, enum sl_condition_kind kind,
                         size_t mark)
{
    struct sl_slice *parts;
    size_t count = copy_parts(builder, kind, mark, &parts);

    if (count == 0)
        return 0;
    count = sort_unique(parts, count);

    /* "anything" sorts first */
    if (kind == SL_CONDITION_ANY && parts[0].data[0] == SL_CONDITION_ANYTHING)
        count = 1;
    replace_parts(&builder->bytes, mark, parts, count);
    return count;
}

static bool is_single(const struct sl_condition_builder *builder, size_t mark)
{
    struct sl_slice rest = sl_slice_from(buffer_slice(&builder->bytes), mark);
    struct sl_condition first;

    sl_condition_next(&rest, &first);
    return rest.size == 0;
}

void sl_condition_close(struct sl_condition_builder *builder, enum sl_condition_kind kind,
                        size_t mark)
{
    if (builder->bytes.failed)
        return;
    if (kind != SL_CONDITION_NOT) {
        if (is_single(builder, mark) || sort_parts(builder, kind, mark) < 2)
            return;
    }
    wrap(builder, kind, mark);
}

/* A term that occurs twice must match twice. */
void sl_condition_close_near(struct sl_condition_builder *builder, unsigned between, size_t mark)
{
    struct sl_slice *parts;
    size_t count;

    if (builder->bytes.failed)
        return;
    count = copy_parts(builder, SL_CONDITION_NEAR, mark, &parts);
    if (count == 0)
        return;
    qsort(parts, count, sizeof(*parts), compare_slices);
    replace_parts(&builder->bytes, mark, parts, count);
    buffer_append_char(&builder->bytes, (char)between);
    wrap(builder, SL_CONDITION_NEAR, mark);
}
