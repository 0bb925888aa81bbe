/* src/call/call.h - one request to Redis, ready to be sent by whoever has a connection.
 *
 * A builder (sl_post_call() and its like) fills a call, a parser (sl_write_reply() for all writes)
 * reads the reply. In between the call's arguments go to Redis as they are:
 *
 *     struct sl_call call = SL_CALL_INIT;
 *
 *     r = sl_post_call(&call, &meta, SL_SLICE_NONE, &author, &post, &failure);
 *     r = sl_redis_link_run(link, &call, &reply, &failure);                      (blocking)
 *     r = redisAsyncCommandArgv(redis, done, context, call.argc, call.argv, call.argvlen);
 *     ...
 *     r = sl_write_reply(reply, &written, &failure);
 *     sl_call_done(&call);
 *
 * Most calls run a script, by its SHA1. A server that does not know the script yet says so
 * (sl_reply_is_noscript()); then sl_call_use_source() and the same call is sent once more.
 * A call can be built anew as often as one likes; it keeps its memory until sl_call_done(). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/export.h"

struct sl_script;

struct sl_call {
    int argc; /* 0 unless the builder succeeded */
    const char **argv;
    size_t *argvlen;
    uint32_t shard;     /* where the keys live */
    bool is_repeatable; /* sent twice it does no more than once: a read, or a request id is set */
    bool is_write;

    /* from here on private */
    const struct sl_script *script; /* NULL: a plain command */
    char *bytes;                    /* the arguments behind each other */
    size_t bytes_used, bytes_room;
    int args_used, args_room;
    bool failed; /* memory ran out while it was built */
};

#define SL_CALL_INIT ((struct sl_call){.argc = 0})

SL_EXPORT void sl_call_done(struct sl_call *call);

/* Sends the script's text (true) or its SHA1 (false, as built) from now on. No effect on a plain
 * command. */
SL_EXPORT void sl_call_use_source(struct sl_call *call, bool use_source);
