/* src/call/call.h - a request to Redis, ready to be sent over any connection.
 *
 * A builder (sl_post_call() and others) fills a call, and a parser (sl_write_reply() for all
 * writes) reads the reply. In between, the arguments of the call are sent to Redis as they are:
 *
 *     struct sl_call call = SL_CALL_INIT;
 *     r = sl_post_call(&call, &meta, SL_SLICE_NONE, &author, &post, &failure);
 *     r = sl_redis_link_run(link, &call, &reply, &failure);                      (blocking)
 *     r = redisAsyncCommandArgv(redis, done, context, call.argc, call.argv, call.argvlen);
 *     ...
 *     r = sl_write_reply(reply, &written, &failure);
 *     sl_call_done(&call);
 *
 * Most calls run a script by its SHA1. If the server does not have the script
 * (sl_reply_is_noscript()), call sl_call_use_source() and send the call once more.
 *
 * A call can be rebuilt any number of times. It keeps its memory until sl_call_done(). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/export.h"

struct sl_script;

struct sl_call {
    int argc; /* 0 if the builder failed */
    const char **argv;
    size_t *argvlen;
    uint32_t shard;     /* the shard that holds the keys */
    bool is_repeatable; /* may be sent twice with the effect of once: a read, or a write with a
                           request id */
    bool is_write;

    /* the fields below are private */
    const struct sl_script *script; /* NULL: a plain command */
    char *bytes;                    /* the arguments, concatenated */
    size_t bytes_used, bytes_room;
    int args_used, args_room;
    bool failed; /* out of memory while building */
};

#define SL_CALL_INIT ((struct sl_call){.argc = 0})

SL_EXPORT void sl_call_done(struct sl_call *call);

/* Makes the call send the script's text (true) or its SHA1 (false, the default). No effect on a
 * plain command. */
SL_EXPORT void sl_call_use_source(struct sl_call *call, bool use_source);
