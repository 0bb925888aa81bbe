/* src/model/cursor.h - how far somebody has come in the events of all shards.
 *
 *     114677036875776                       everything up to this id, of all shards
 *     114677036875776~114677036740608:5     the same, but of shards 0 and 2 only up to the second
 * id
 *
 * The second form is given out while a shard is behind the others. Each group after a `~` is an id
 * and, in hexadecimal, a bit for each shard that is complete only up to it. Groups stand in the
 * order of their ids, no shard is in two of them, and no id is as high as the first; so a cursor
 * has one text. There are SL_CURSOR_GROUPS_MAX at most: shards that would need one more share one
 * with a lower id, and what lies between comes again. To clients the text is opaque. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/failure.h"
#include "base/slice.h"
#include "src/model/id.h"

enum {
    SL_CURSOR_GROUPS_MAX = 4,
    /* An id, then ~, an id, : and 16 hexadecimal digits for each group, and a NUL. */
    SL_CURSOR_TEXT_SIZE = SL_ID_TEXT_SIZE + SL_CURSOR_GROUPS_MAX * (SL_ID_TEXT_SIZE - 1 + 2 + 16),
};

struct sl_cursor_group {
    uint64_t low;    /* below the cursor's id; 0: nothing of them yet */
    uint64_t shards; /* a bit for each */
};

/* {.id = ...} is the plain form. */
struct sl_cursor {
    uint64_t id; /* 0 .. SL_ID_MAX */
    uint32_t group_count;
    struct sl_cursor_group groups[SL_CURSOR_GROUPS_MAX]; /* `low` rises */
};

/* Takes what sl_cursor_print() writes, and nothing else. 0; -EINVAL: *reterr says what is wrong. */
int sl_cursor_parse(struct sl_slice text, struct sl_cursor *ret_cursor, struct failure *reterr);

/* Writes the text and a NUL; returns `room`. */
const char *sl_cursor_print(const struct sl_cursor *cursor, char room[static SL_CURSOR_TEXT_SIZE]);

/* Of this shard everything up to there. */
uint64_t sl_cursor_of_shard(const struct sl_cursor *cursor, uint32_t shard);

/* From now on the shard, which is in no group yet, is complete only up to `low`, if that is lower
 * than the cursor's id. */
void sl_cursor_lower(struct sl_cursor *cursor, uint32_t shard, uint64_t low);

/* The same shards are behind another id: those that are complete up to there are not any more. */
void sl_cursor_move(struct sl_cursor *cursor, uint64_t id);

static inline bool sl_cursor_is_plain(const struct sl_cursor *cursor)
{
    return cursor->group_count == 0;
}
