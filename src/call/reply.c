/* reply.c - the first word of an error reply is looked up in a table; other replies are read by
 * position.
 *
 * Error codes of our own scripts come with a message, which is passed on; for those of Redis the
 * message is in the table. A reply with an unexpected structure is an error: each reader checks the
 * type and bounds of what it reads. Slices point into the reply. */
#include "src/call/reply.h"

#include <errno.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "src/call/reply_read.h"
#include "src/model/id.h"

static const struct {
    const char *code; /* the first word of the error reply */
    int error;
    bool is_ours; /* the rest is a message of one of our scripts */
} codes[] = {
    {"NOTINIT", -ENODATA, true},      {"SCHEMA", -ESTALE, true},
    {"SHARDS", -ESTALE, true},        {"LOGINTAKEN", -EEXIST, true},
    {"NOUSER", -ENOENT, true},        {"NOPOST", -ENOENT, true},
    {"NOTOWNER", -EPERM, true},       {"SELF", -EINVAL, true},
    {"REUSED", -EALREADY, true},      {"LIMIT", -EDQUOT, true},
    {"NOTPUBLIC", -EOPNOTSUPP, true}, {"TOOLATE", -ETIME, true},
    {"ARCHIVE", -EMEDIUMTYPE, true},  {"DAMAGED", -EBADMSG, true},
    {"WRONGTYPE", -EBADMSG, false},   {"LOADING", -EAGAIN, false},
    {"BUSY", -EAGAIN, false},         {"TRYAGAIN", -EAGAIN, false},
    {"CLUSTERDOWN", -EAGAIN, false},  {"MASTERDOWN", -EAGAIN, false},
    {"NOAUTH", -EACCES, false},       {"WRONGPASS", -EACCES, false},
    {"NOPERM", -EACCES, false},       {"READONLY", -EROFS, false},
    {"OOM", -ENOSPC, false},          {"MISCONF", -EROFS, false},
    {"NOREPLICAS", -EAGAIN, false},   {"MOVING", -EAGAIN, true},
    {"ASK", -EAGAIN, false},          {"MOVED", -EREMOTE, false},
    {"AHEAD", -ERANGE, true},         {"NODICTIONARY", -ENOENT, true},
    {"TAKEN", -EEXIST, true},         {"TOOMANY", -EDQUOT, true},
    {"NOREVOCATION", -ENOENT, true},
};

/* Redis 6.2 wraps the error of a command within a script: "ERR Error running script (call to
 * f_...): @user_script:198: @user_script: 198: -OOM command not allowed ..." */
static struct sl_slice text_of(const struct redisReply *reply)
{
    static const struct sl_slice wrapped = SL_SLICE("ERR Error running script");
    struct sl_slice text = sl_slice(reply->str, reply->len);
    const char *inner;

    if (!sl_slice_starts_with(text, wrapped))
        return text;
    inner = memmem(text.data, text.size, ": -", 3);
    return inner ? sl_slice_from(text, (size_t)(inner - text.data) + 3) : text;
}

static struct sl_slice code_of(const struct redisReply *reply)
{
    struct sl_slice text = text_of(reply);
    const char *space = text.size > 0 ? memchr(text.data, ' ', text.size) : NULL;

    return space ? sl_slice(text.data, (size_t)(space - text.data)) : text;
}

/* Redis does not have a separate code for each error. */
static bool says(struct sl_slice text, const char *words)
{
    return sl_slice_starts_with(text, (struct sl_slice)SL_SLICE("ERR")) &&
           memmem(text.data, text.size, words, strlen(words));
}

/* A script accessed a key that has been moved to another node of the cluster, before it wrote
 * anything. */
static bool is_of_moving_slot(struct sl_slice text)
{
    return says(text, "non local key");
}

static int error_of(struct sl_slice code, bool *ret_is_ours)
{
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        if (sl_slice_is(code, codes[i].code)) {
            *ret_is_ours = codes[i].is_ours;
            return codes[i].error;
        }
    }
    *ret_is_ours = false;
    return -EIO;
}

bool sl_reply_is_noscript(const struct redisReply *reply)
{
    return reply && reply->type == REDIS_REPLY_ERROR && sl_slice_is(code_of(reply), "NOSCRIPT");
}

bool sl_reply_is_not_yet(const struct redisReply *reply)
{
    bool is_ours;

    return reply && reply->type == REDIS_REPLY_ERROR &&
           (error_of(code_of(reply), &is_ours) == -EAGAIN || is_of_moving_slot(text_of(reply)));
}

bool sl_reply_is_replica(const struct redisReply *reply)
{
    return reply && reply->type == REDIS_REPLY_ERROR && sl_slice_is(code_of(reply), "READONLY");
}

/* The caller took a node of a cluster for a single Redis: a key is at another node, or SELECT is
 * not allowed. */
static bool is_of_cluster_node(int error, struct sl_slice text)
{
    return error == -EREMOTE || says(text, "not allowed in cluster mode");
}

int sl_reply_check(const struct redisReply *reply, struct failure *reterr)
{
    struct sl_slice code, text;
    bool is_ours;
    int error;

    if (!reply)
        return failure_set(reterr, -EPIPE, "the connection to Redis broke before it answered");
    if (reply->type != REDIS_REPLY_ERROR)
        return 0;
    text = text_of(reply);
    code = code_of(reply);
    error = error_of(code, &is_ours);
    if (is_of_cluster_node(error, text))
        return sl_reply_of_cluster_node(reterr);
    if (is_of_moving_slot(text))
        error = -EAGAIN;
    if (is_ours && text.size > code.size) {
        text = sl_slice_from(text, code.size + 1);
        return failure_set(reterr, error, "%.*s", SL_SLICE_ARG(text));
    }
    return failure_set(reterr, error, "Redis says: %.*s", SL_SLICE_ARG(text));
}

int sl_reply_unexpected(struct failure *reterr)
{
    return failure_set(reterr, -EBADMSG, "Redis gave an answer that does not fit the question");
}

int sl_reply_of_cluster_node(struct failure *reterr)
{
    return failure_set(reterr, -EREMOTE,
                       "this Redis is a node of a cluster; its URL begins with redis+cluster:// "
                       "or rediss+cluster://");
}

int sl_reply_check_array(const struct redisReply *reply, size_t count, struct failure *reterr)
{
    int r = sl_reply_check(reply, reterr);

    if (r < 0)
        return r;
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements < count)
        return sl_reply_unexpected(reterr);
    return 0;
}

struct sl_slice sl_reply_at(const struct redisReply *reply, size_t i)
{
    const struct redisReply *element = i < reply->elements ? reply->element[i] : NULL;

    if (!element || element->type != REDIS_REPLY_STRING)
        return SL_SLICE_NONE;
    return text_of(element);
}

int sl_reply_read_id(const struct redisReply *reply, size_t i, uint64_t *ret_id,
                     struct failure *reterr)
{
    return sl_id_parse(sl_reply_at(reply, i), ret_id) < 0 ? sl_reply_unexpected(reterr) : 0;
}

int sl_reply_read_flag(const struct redisReply *reply, size_t i, bool *ret_flag,
                       struct failure *reterr)
{
    const struct redisReply *element = i < reply->elements ? reply->element[i] : NULL;

    if (!element || element->type != REDIS_REPLY_INTEGER ||
        (element->integer != 0 && element->integer != 1))
        return sl_reply_unexpected(reterr);
    *ret_flag = element->integer == 1;
    return 0;
}

int sl_reply_read_number(const struct redisReply *reply, size_t i, uint64_t *ret_number,
                         struct failure *reterr)
{
    struct sl_slice text = sl_reply_at(reply, i);

    if (sl_slice_is(text, "0")) {
        *ret_number = 0;
        return 0;
    }
    return sl_reply_read_id(reply, i, ret_number, reterr);
}

int sl_reply_read_count(const struct redisReply *reply, size_t i, uint64_t *ret_count,
                        struct failure *reterr)
{
    const struct redisReply *element = i < reply->elements ? reply->element[i] : NULL;

    if (!element || element->type != REDIS_REPLY_INTEGER || element->integer < 0)
        return sl_reply_unexpected(reterr);
    *ret_count = (uint64_t)element->integer;
    return 0;
}

int sl_reply_read_row(const struct redisReply *reply, size_t i, size_t count,
                      const struct redisReply **ret_row, struct failure *reterr)
{
    const struct redisReply *row = i < reply->elements ? reply->element[i] : NULL;
    int r;

    if (!row)
        return sl_reply_unexpected(reterr);
    r = sl_reply_check_array(row, count, reterr);
    if (r == 0)
        *ret_row = row;
    return r;
}
