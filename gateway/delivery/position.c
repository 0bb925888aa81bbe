#include "gateway/delivery/position.h"

#include <assert.h>

static bool is_behind(const struct position *position, uint32_t shard)
{
    return position->behind >> shard & 1;
}

static void set_shard(struct position *position, uint32_t shard, uint64_t id)
{
    uint64_t bit = UINT64_C(1) << shard;

    assert(shard < SL_SHARDS_MAX);
    position->low[shard] = id;
    if (id < position->id)
        position->behind |= bit;
    else
        position->behind &= ~bit;
}

uint64_t position_of_shard(const struct position *position, uint32_t shard)
{
    return is_behind(position, shard) ? position->low[shard] : position->id;
}

struct sl_cursor position_cursor(const struct position *position)
{
    struct sl_cursor cursor = {.id = position->id};

    for (uint64_t rest = position->behind; rest; rest &= rest - 1) {
        uint32_t shard = (uint32_t)__builtin_ctzll(rest);

        sl_cursor_lower(&cursor, shard, position->low[shard]);
    }
    return cursor;
}

void position_set(struct position *position, const struct sl_cursor *cursor)
{
    *position = (struct position){.id = cursor->id};
    for (uint32_t shard = 0; shard < SL_SHARDS_MAX && !sl_cursor_is_plain(cursor); shard++)
        set_shard(position, shard, sl_cursor_of_shard(cursor, shard));
}

void position_reach(struct position *position, const struct sl_cursor *cursor)
{
    uint64_t id = cursor->id > position->id ? cursor->id : position->id;

    if (position_is_plain(position) && sl_cursor_is_plain(cursor)) {
        position->id = id;
        return;
    }
    for (uint32_t shard = 0; shard < SL_SHARDS_MAX; shard++) {
        uint64_t before = position_of_shard(position, shard);
        uint64_t reached = sl_cursor_of_shard(cursor, shard);

        position->low[shard] = before > reached ? before : reached;
    }
    position->id = id;
    for (uint32_t shard = 0; shard < SL_SHARDS_MAX; shard++)
        set_shard(position, shard, position->low[shard]);
}

void position_raise_shard(struct position *position, uint32_t shard, uint64_t id)
{
    if (is_behind(position, shard) && id > position->low[shard])
        set_shard(position, shard, id);
}

void position_pass(struct position *position, uint32_t shard, uint64_t id, uint64_t held,
                   const uint64_t *lows)
{
    uint64_t before = position->id, rest = held & ~position->behind & ~(UINT64_C(1) << shard);

    if (id > before) {
        position->id = id;
        for (; rest; rest &= rest - 1) {
            uint32_t other = (uint32_t)__builtin_ctzll(rest);

            position_lower_shard(position, other, lows[other] > before ? lows[other] : before);
        }
    }
    position_raise_shard(position, shard, id);
}

void position_lower_shard(struct position *position, uint32_t shard, uint64_t low)
{
    if (low < position_of_shard(position, shard))
        set_shard(position, shard, low);
}
