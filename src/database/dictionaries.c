/* dictionaries.c - a hash with a line for each dictionary, and a string with the bytes of each.
 *
 * Gateways read the hash every few seconds, so it does not contain the bytes. The lines are
 * described in src/scripts/dictionary_add.lua. */
#include "src/database/dictionaries.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "src/call/call_build.h"
#include "src/call/reply_read.h"
#include "src/model/keys.h"

enum { NUMBERS = 4 };

int sl_dictionaries_call(struct sl_call *call, struct failure *reterr)
{
    char key[SL_KEY_SIZE];

    sl_call_begin(call, 0, true);
    sl_call_add_str(call, "HGETALL");
    sl_call_add_str(call, sl_key(0, "dictionaries", key));
    return sl_call_finish(call, reterr);
}

/* false: the text does not consist of NUMBERS numbers. */
static bool read_numbers(const char *text, uint64_t *ret_numbers)
{
    for (int i = 0; i < NUMBERS; i++) {
        char *end;

        if (*text < '0' || *text > '9')
            return false;
        ret_numbers[i] = strtoull(text, &end, 10);
        if (*end != (i + 1 < NUMBERS ? ' ' : '\0'))
            return false;
        text = end + 1;
    }
    return true;
}

static int read_entry(const redisReply *reply, size_t i, struct sl_dictionary *ret_entry,
                      struct failure *reterr)
{
    struct sl_slice text = sl_reply_at(reply, i + 1); /* hiredis terminates strings with a NUL */
    uint64_t numbers[NUMBERS];

    if (!text.data || !read_numbers(text.data, numbers) ||
        sl_dictionary_id_parse(sl_reply_at(reply, i), &ret_entry->id, NULL) < 0)
        return failure_set(reterr, -EBADMSG, "the list of dictionaries is damaged");
    ret_entry->trained_ms = numbers[0];
    ret_entry->bytes = numbers[1];
    ret_entry->posts = numbers[2];
    ret_entry->withdrawn_ms = numbers[3];
    return 0;
}

static int compare(const void *one, const void *other)
{
    const struct sl_dictionary *a = one, *b = other;

    if (a->trained_ms != b->trained_ms)
        return a->trained_ms < b->trained_ms ? -1 : 1;
    return a->id < b->id ? -1 : a->id > b->id;
}

/* The dictionary of `list` that was withdrawn first; NULL: none was before `withdrawn_ms`. */
static struct sl_dictionary *oldest_withdrawn(struct sl_dictionary *list, size_t count,
                                              uint64_t withdrawn_ms)
{
    struct sl_dictionary *oldest = NULL;

    for (size_t i = 0; i < count; i++) {
        if (list[i].withdrawn_ms > 0 &&
            (withdrawn_ms == 0 || list[i].withdrawn_ms < withdrawn_ms)) {
            oldest = &list[i];
            withdrawn_ms = list[i].withdrawn_ms;
        }
    }
    return oldest;
}

int sl_dictionaries_reply(const struct redisReply *reply, struct sl_dictionary *ret_list,
                          size_t room, size_t *ret_count, struct failure *reterr)
{
    size_t count = 0;
    int r = sl_reply_check_array(reply, 0, reterr);

    for (size_t i = 0; r == 0 && i + 1 < reply->elements; i += 2) {
        struct sl_dictionary entry, *place;

        r = read_entry(reply, i, &entry, reterr);
        if (r < 0)
            return r;
        place =
            count < room ? &ret_list[count] : oldest_withdrawn(ret_list, count, entry.withdrawn_ms);
        if (place)
            *place = entry;
        count += count < room;
    }
    if (r < 0)
        return r;
    qsort(ret_list, count, sizeof(*ret_list), compare);
    *ret_count = count;
    return 0;
}

int sl_dictionary_call(struct sl_call *call, uint32_t id, struct failure *reterr)
{
    char name[32], key[SL_KEY_SIZE];

    snprintf(name, sizeof(name), "dictionary:%" PRIu32, id);
    sl_call_begin(call, 0, true);
    sl_call_add_str(call, "GET");
    sl_call_add_str(call, sl_key(0, name, key));
    return sl_call_finish(call, reterr);
}

int sl_dictionary_reply(const struct redisReply *reply, struct sl_slice *ret_bytes,
                        struct failure *reterr)
{
    int r = sl_reply_check(reply, reterr);

    if (r < 0)
        return r;
    if (reply->type == REDIS_REPLY_NIL)
        return failure_set(reterr, -ENOENT, "there is no such dictionary");
    if (reply->type != REDIS_REPLY_STRING)
        return sl_reply_unexpected(reterr);
    *ret_bytes = sl_slice(reply->str, reply->len);
    return 0;
}

static void begin_write(struct sl_call *call, const struct sl_script *script,
                        const struct sl_meta *meta, uint32_t id)
{
    sl_call_begin_repeatable(call, script, 0, meta->shards);
    call->is_write = true;
    sl_call_add_id(call, id);
}

int sl_dictionary_add_call(struct sl_call *call, const struct sl_meta *meta, uint32_t id,
                           uint64_t posts, struct sl_slice bytes, struct failure *reterr)
{
    begin_write(call, &sl_script_dictionary_add, meta, id);
    sl_call_add_id(call, posts);
    sl_call_add(call, bytes);
    return sl_call_finish(call, reterr);
}

int sl_dictionary_withdraw_call(struct sl_call *call, const struct sl_meta *meta, uint32_t id,
                                struct failure *reterr)
{
    begin_write(call, &sl_script_dictionary_withdraw, meta, id);
    return sl_call_finish(call, reterr);
}
