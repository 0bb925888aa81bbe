/* cursor.c - parses and prints cursors, and changes their groups.
 *
 * The parser accepts only what would be printed, so that a cursor has exactly one text. A cursor is
 * a plain value with few groups. Shards that would need one group too many join a group with a
 * lower id, so that a cursor never claims events that are missing. */
#include "src/model/cursor.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* --- text --- */

/* An id, or 0. */
static int read_low(struct sl_slice text, uint64_t *ret_low)
{
    if (sl_slice_is(text, "0")) {
        *ret_low = 0;
        return 0;
    }
    return sl_id_parse(text, ret_low);
}

/* Lower-case hexadecimal without leading zeros. */
static int read_shards(struct sl_slice text, uint64_t *ret_shards)
{
    static const char digits[] = "0123456789abcdef";
    uint64_t shards = 0;

    if (text.size == 0 || text.size > 16 || text.data[0] == '0')
        return -EINVAL;
    for (size_t i = 0; i < text.size; i++) {
        const char *digit = memchr(digits, text.data[i], sizeof(digits) - 1);

        if (!digit)
            return -EINVAL;
        shards = shards << 4 | (uint64_t)(digit - digits);
    }
    *ret_shards = shards;
    return 0;
}

/* The text up to the next `~`; *rest begins after it, or has no data if there is none. */
static struct sl_slice next_part(struct sl_slice *rest)
{
    const char *end = memchr(rest->data, '~', rest->size);
    struct sl_slice part = sl_slice(rest->data, end ? (size_t)(end - rest->data) : rest->size);

    *rest = end ? sl_slice_from(*rest, part.size + 1) : SL_SLICE_NONE;
    return part;
}

static int read_group(struct sl_slice text, struct sl_cursor_group *ret_group,
                      struct failure *reterr)
{
    const char *colon = text.size > 0 ? memchr(text.data, ':', text.size) : NULL;

    if (!colon)
        return failure_set(reterr, -EINVAL, "a cursor has ID:BITS behind a ~");
    if (read_low(sl_slice(text.data, (size_t)(colon - text.data)), &ret_group->low) < 0)
        return failure_set(reterr, -EINVAL, "a cursor has an event id between ~ and :");
    if (read_shards(sl_slice_from(text, (size_t)(colon - text.data) + 1), &ret_group->shards) < 0)
        return failure_set(reterr, -EINVAL,
                           "a cursor has a bit for each shard, in hexadecimal, behind a :");
    return 0;
}

/* Checks whether the group may follow those of the cursor. */
static int check_group(const struct sl_cursor *cursor, const struct sl_cursor_group *group,
                       struct failure *reterr)
{
    uint64_t named = 0;

    if (cursor->group_count == SL_CURSOR_GROUPS_MAX)
        return failure_set(reterr, -EINVAL, "a cursor has no more than %d groups behind its id",
                           SL_CURSOR_GROUPS_MAX);
    if (group->low >= cursor->id)
        return failure_set(reterr, -EINVAL, "an id behind a ~ is below the cursor's own");
    for (uint32_t i = 0; i < cursor->group_count; i++) {
        if (cursor->groups[i].low >= group->low)
            return failure_set(reterr, -EINVAL, "the ids behind the ~ of a cursor rise");
        named |= cursor->groups[i].shards;
    }
    if (named & group->shards)
        return failure_set(reterr, -EINVAL, "a cursor names a shard once");
    return 0;
}

int sl_cursor_parse(struct sl_slice text, struct sl_cursor *ret_cursor, struct failure *reterr)
{
    struct sl_cursor cursor = {0};
    struct sl_cursor_group group;

    if (text.size == 0 || sl_id_parse(next_part(&text), &cursor.id) < 0)
        return failure_set(reterr, -EINVAL, "a cursor begins with an event id");
    while (text.data) {
        int r = read_group(next_part(&text), &group, reterr);

        if (r == 0)
            r = check_group(&cursor, &group, reterr);
        if (r < 0)
            return r;
        cursor.groups[cursor.group_count++] = group;
    }
    *ret_cursor = cursor;
    return 0;
}

const char *sl_cursor_print(const struct sl_cursor *cursor, char room[static SL_CURSOR_TEXT_SIZE])
{
    size_t size;

    assert(cursor->id <= SL_ID_MAX && cursor->group_count <= SL_CURSOR_GROUPS_MAX);
    size = (size_t)snprintf(room, SL_CURSOR_TEXT_SIZE, "%" PRIu64, cursor->id);
    for (uint32_t i = 0; i < cursor->group_count; i++)
        size += (size_t)snprintf(room + size, SL_CURSOR_TEXT_SIZE - size, "~%" PRIu64 ":%" PRIx64,
                                 cursor->groups[i].low, cursor->groups[i].shards);
    assert(size < SL_CURSOR_TEXT_SIZE);
    return room;
}

/* --- groups --- */

uint64_t sl_cursor_of_shard(const struct sl_cursor *cursor, uint32_t shard)
{
    for (uint32_t i = 0; i < cursor->group_count; i++) {
        if (cursor->groups[i].shards >> shard & 1)
            return cursor->groups[i].low;
    }
    return cursor->id;
}

/* Without room for another group, the group before takes the shards; if there is none, the first
 * group takes them and gets the lower id. */
static void share_group(struct sl_cursor *cursor, uint32_t at, uint64_t low, uint64_t shards)
{
    struct sl_cursor_group *group = &cursor->groups[at > 0 ? at - 1 : 0];

    if (low < group->low)
        group->low = low;
    group->shards |= shards;
}

void sl_cursor_lower(struct sl_cursor *cursor, uint32_t shard, uint64_t low)
{
    uint64_t shards = UINT64_C(1) << shard;
    uint32_t at = 0;

    assert(shard < SL_SHARDS_MAX);
    if (low >= cursor->id)
        return;
    while (at < cursor->group_count && cursor->groups[at].low < low)
        at++;
    if (at < cursor->group_count && cursor->groups[at].low == low) {
        cursor->groups[at].shards |= shards;
        return;
    }
    if (cursor->group_count == SL_CURSOR_GROUPS_MAX) {
        share_group(cursor, at, low, shards);
        return;
    }
    memmove(&cursor->groups[at + 1], &cursor->groups[at],
            (cursor->group_count - at) * sizeof(cursor->groups[0]));
    cursor->groups[at] = (struct sl_cursor_group){low, shards};
    cursor->group_count++;
}

void sl_cursor_move(struct sl_cursor *cursor, uint64_t id)
{
    cursor->id = id;
    while (cursor->group_count > 0 && cursor->groups[cursor->group_count - 1].low >= id)
        cursor->group_count--;
}

bool sl_cursor_equals(const struct sl_cursor *a, const struct sl_cursor *b)
{
    if (a->id != b->id || a->group_count != b->group_count)
        return false;
    for (uint32_t i = 0; i < a->group_count; i++) {
        if (a->groups[i].low != b->groups[i].low || a->groups[i].shards != b->groups[i].shards)
            return false;
    }
    return true;
}
