/* src/model/cursor.h - a cursor: how far a client has come in the events of all shards.
 *
 *     114677036875776                       all events up to this id, of all shards
 *     114677036875776~114677036740608:5     the same, but of shards 0 and 2 only up to the second
 * id
 *
 * The second form is used while a shard is behind the others. Each group after a `~` consists of an
 * id and a bit mask, in hexadecimal, of the shards that are complete only up to that id. Groups are
 * sorted by id, no shard is in two groups, and all their ids are lower than the first one, so each
 * cursor has exactly one text. A cursor has at most SL_CURSOR_GROUPS_MAX groups. A shard that would
 * need another group joins one with a lower id; the events in between are then delivered again. For
 * clients the text is opaque. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/failure.h"
#include "base/slice.h"
#include "src/model/id.h"

enum {
    SL_CURSOR_GROUPS_MAX = 4,
    /* An id; then for each group ~, an id, : and 16 hexadecimal digits; and a NUL. */
    SL_CURSOR_TEXT_SIZE = SL_ID_TEXT_SIZE + SL_CURSOR_GROUPS_MAX * (SL_ID_TEXT_SIZE - 1 + 2 + 16),
};

struct sl_cursor_group {
    uint64_t low;    /* lower than the cursor's id; 0: no events of these shards yet */
    uint64_t shards; /* bit S is shard S */
};

/* {.id = ...} is a cursor of the first form. */
struct sl_cursor {
    uint64_t id; /* 0 .. SL_ID_MAX */
    uint32_t group_count;
    struct sl_cursor_group groups[SL_CURSOR_GROUPS_MAX]; /* `low` is ascending */
};

/* Parses the text that sl_cursor_print() writes, and nothing else. 0; -EINVAL: *reterr says what is
 * wrong. */
int sl_cursor_parse(struct sl_slice text, struct sl_cursor *ret_cursor, struct failure *reterr);

/* Writes the text and a NUL. Returns `room`. */
const char *sl_cursor_print(const struct sl_cursor *cursor, char room[static SL_CURSOR_TEXT_SIZE]);

/* The id up to which the events of this shard are complete. */
uint64_t sl_cursor_of_shard(const struct sl_cursor *cursor, uint32_t shard);

/* Records that the shard is complete only up to `low`, if that is lower than the cursor's id. The
 * shard must not be in a group yet. */
void sl_cursor_lower(struct sl_cursor *cursor, uint32_t shard, uint64_t low);

/* Changes the cursor's id and keeps its groups. Shards of groups whose `low` is not lower than the
 * new id leave them. */
void sl_cursor_move(struct sl_cursor *cursor, uint64_t id);

bool sl_cursor_equals(const struct sl_cursor *a, const struct sl_cursor *b);

static inline bool sl_cursor_is_plain(const struct sl_cursor *cursor)
{
    return cursor->group_count == 0;
}
