/* redis_node.c - sends a batch of calls to one Redis and reads the replies.
 *
 * A script is called by its SHA1. If a batch has several calls, the text of the script is sent
 * first, because a call whose script is missing would be overtaken by those after it. The scripts
 * sent on a connection are remembered until it ends. */
#include "src/redis/redis_node.h"

#include <assert.h>
#include <errno.h>

#include <hiredis/hiredis.h>

#include "src/call/scripts.h"
#include "src/redis/redis_connection.h"

void sl_redis_node_disconnect(struct sl_redis_node *node)
{
    sl_redis_connection_close(node->connection);
    node->connection = NULL;
    node->loaded_count = 0;
    node->is_asked = false;
}

static bool is_loaded(const struct sl_redis_node *node, const struct sl_script *script)
{
    for (size_t i = 0; i < node->loaded_count; i++) {
        if (node->loaded[i] == script)
            return true;
    }
    return node->loaded_count == SL_NODE_SCRIPTS_MAX;
}

/* Whether the call is outstanding at this node. */
static bool is_ours(const struct sl_redis_node *node, const struct sl_call *call,
                    const redisReply *reply)
{
    return !reply && (node->shards >> call->shard & 1);
}

static int append_script(struct sl_redis_node *node, const struct sl_script *script,
                         struct failure *reterr)
{
    int r;

    if (!script || is_loaded(node, script))
        return 0;
    r = sl_redis_connection_append(node->connection, 3,
                                   (const char *[]){"SCRIPT", "LOAD", script->source},
                                   (size_t[]){6, 4, script->source_size}, reterr);
    if (r == 0) {
        node->loaded[node->loaded_count++] = script;
        node->script_replies++;
    }
    return r;
}

int sl_redis_node_send(struct sl_redis_node *node, const struct sl_call *calls, size_t count,
                       redisReply *const *replies, struct failure *reterr)
{
    int r = 0;

    assert(node->connection && !node->is_asked);
    node->script_replies = 0;
    for (size_t i = 0; r == 0 && count > 1 && i < count; i++) {
        if (is_ours(node, &calls[i], replies[i]))
            r = append_script(node, calls[i].script, reterr);
    }
    for (size_t i = 0; r == 0 && i < count; i++) {
        if (!is_ours(node, &calls[i], replies[i]))
            continue;
        r = sl_redis_connection_append(node->connection, calls[i].argc, calls[i].argv,
                                       calls[i].argvlen, reterr);
        node->has_written = node->has_written || calls[i].is_write;
    }
    if (r == 0)
        r = sl_redis_connection_flush(node->connection, reterr);
    node->is_asked = r == 0;
    return r;
}

int sl_redis_node_receive(struct sl_redis_node *node, const struct sl_call *calls, size_t count,
                          redisReply **replies, struct failure *reterr)
{
    redisReply *reply;
    int r = 0;

    assert(node->is_asked);
    node->is_asked = false;
    for (; r == 0 && node->script_replies > 0; node->script_replies--) {
        r = sl_redis_connection_read(node->connection, &reply, reterr);
        if (r == 0)
            freeReplyObject(reply);
    }
    for (size_t i = 0; r == 0 && i < count; i++) {
        if (is_ours(node, &calls[i], replies[i]))
            r = sl_redis_connection_read(node->connection, &replies[i], reterr);
    }
    return r;
}

int sl_redis_node_ask(struct sl_redis_node *node, const struct sl_call *call,
                      redisReply **ret_reply, struct failure *reterr)
{
    redisReply *asking = NULL;
    int r;

    assert(!call->script); /* which would not find keys that have not been moved yet */
    r = sl_redis_connection_append(node->connection, 1, (const char *[]){"ASKING"}, NULL, reterr);
    if (r == 0)
        r = sl_redis_connection_append(node->connection, call->argc, call->argv, call->argvlen,
                                       reterr);
    if (r == 0)
        r = sl_redis_connection_read(node->connection, &asking, reterr);
    if (r == 0)
        r = sl_redis_connection_read(node->connection, ret_reply, reterr);
    freeReplyObject(asking);
    return r;
}
