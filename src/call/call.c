/* call.c - the arguments are stored consecutively in one block, which grows by doubling.
 *
 * argv is filled at the end, when the bytes no longer move. The block is reused when the call is
 * rebuilt. All script calls begin with the same arguments, so that the script's text and its SHA1
 * are interchangeable. */
#include "src/call/call.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "src/call/call_build.h"
#include "src/model/id.h"
#include "src/model/keys.h"

enum { FIRST_BYTES = 1024, FIRST_ARGS = 32 };

void sl_call_done(struct sl_call *call)
{
    mem_free(call->argv);
    mem_free(call->argvlen);
    mem_free(call->bytes);
    *call = SL_CALL_INIT;
}

void sl_call_use_source(struct sl_call *call, bool use_source)
{
    if (!call->script || call->argc == 0)
        return;
    call->argv[0] = use_source ? "EVAL" : "EVALSHA";
    call->argvlen[0] = strlen(call->argv[0]);
    call->argv[1] = use_source ? call->script->source : call->script->sha1;
    call->argvlen[1] = use_source ? call->script->source_size : strlen(call->script->sha1);
}

void sl_call_begin(struct sl_call *call, uint32_t shard, bool is_repeatable)
{
    assert(shard < SL_SHARDS_MAX);
    call->argc = 0;
    call->args_used = 0;
    call->shard = shard;
    call->is_repeatable = is_repeatable;
    call->is_write = false;
    call->script = NULL;
    call->bytes_used = 0;
    call->failed = false;
}

void sl_call_begin_script(struct sl_call *call, const struct sl_script *script, uint32_t shard,
                          uint32_t shards, struct sl_slice request_id)
{
    char key[SL_KEY_SIZE];

    sl_call_begin(call, shard, request_id.size > 0);
    call->script = script;
    sl_call_add_str(call, "EVALSHA");
    sl_call_add_str(call, script->sha1);
    sl_call_add_str(call, "1");
    sl_call_add_str(call, sl_key(shard, "meta", key));
    sl_call_add_id(call, shards);
    sl_call_add(call, request_id);
}

void sl_call_begin_repeatable(struct sl_call *call, const struct sl_script *script, uint32_t shard,
                              uint32_t shards)
{
    sl_call_begin_script(call, script, shard, shards, SL_SLICE_NONE);
    call->is_repeatable = true;
}

/* The pointers in `argv` are not valid before sl_call_finish(). */
static bool room_for_argument(struct sl_call *call)
{
    int room = call->args_room ? call->args_room * 2 : FIRST_ARGS;
    const char **argv;
    size_t *argvlen;

    if (call->args_used < call->args_room)
        return true;
    argv = mem_realloc(call->argv, mem_array_size((size_t)room, sizeof(*argv)));
    if (!argv)
        return false;
    call->argv = argv;
    argvlen = mem_realloc(call->argvlen, mem_array_size((size_t)room, sizeof(*argvlen)));
    if (!argvlen)
        return false;
    call->argvlen = argvlen;
    call->args_room = room;
    return true;
}

static bool room_for_bytes(struct sl_call *call, size_t size)
{
    size_t room = call->bytes_room ? call->bytes_room : FIRST_BYTES;
    char *bytes;

    while (room - call->bytes_used < size)
        room *= 2;
    if (room == call->bytes_room)
        return true;
    bytes = mem_realloc(call->bytes, room);
    if (!bytes)
        return false;
    call->bytes = bytes;
    call->bytes_room = room;
    return true;
}

void sl_call_add(struct sl_call *call, struct sl_slice argument)
{
    assert(call->argc == 0); /* not finished: the bytes may still move */
    if (call->failed || !room_for_argument(call) || !room_for_bytes(call, argument.size)) {
        call->failed = true;
        return;
    }
    if (argument.size > 0)
        memcpy(call->bytes + call->bytes_used, argument.data, argument.size);
    call->bytes_used += argument.size;
    call->argvlen[call->args_used++] = argument.size;
}

void sl_call_add_str(struct sl_call *call, const char *argument)
{
    sl_call_add(call, sl_slice_str(argument));
}

void sl_call_add_id(struct sl_call *call, uint64_t id)
{
    char text[SL_ID_TEXT_SIZE];

    sl_call_add_str(call, sl_id_print(id, text));
}

int sl_call_finish(struct sl_call *call, struct failure *reterr)
{
    const char *at = call->bytes;

    if (call->failed)
        return failure_set(reterr, -ENOMEM, "out of memory");
    for (int i = 0; i < call->args_used; i++) {
        call->argv[i] = at;
        at += call->argvlen[i];
    }
    call->argc = call->args_used;
    return 0;
}
