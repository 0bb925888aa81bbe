/* shard_copy.c - XRANGE at the source, XADD with the same ids at the target, both after ASKING.
 *
 * An interrupted copy is continued after its last entry. Its entries must be in the source, too,
 * except those that the source has trimmed from its beginning since; if its last entry is not, the
 * copy is outdated and begun again. At the end lengths and first and last ids are compared. What
 * XADD does not copy (the number of entries ever added, the last id and the last deleted id) is set
 * by XSETID. */
#include "cli/shard_copy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "src/call/reply_read.h"
#include "src/redis/redis_connection.h"

enum { PAGE = 1000, ID_SIZE = 48 };

/* ---- properties of a log ---- */

struct log_info {
    bool exists;
    uint64_t length, groups, added;
    char first[ID_SIZE], last[ID_SIZE]; /* ids of entries; empty: there are none */
    char given[ID_SIZE], deleted[ID_SIZE];
};

static void take_id(const redisReply *reply, char *room)
{
    if (reply->type == REDIS_REPLY_ARRAY && reply->elements > 0)
        reply = reply->element[0];
    snprintf(room, ID_SIZE, "%s", reply->type == REDIS_REPLY_STRING ? reply->str : "");
}

static void take_field(struct log_info *info, const char *name, const redisReply *value)
{
    const uint64_t number = value->type == REDIS_REPLY_INTEGER ? (uint64_t)value->integer : 0;

    if (strcmp(name, "length") == 0)
        info->length = number;
    else if (strcmp(name, "groups") == 0)
        info->groups = number;
    else if (strcmp(name, "entries-added") == 0)
        info->added = number;
    else if (strcmp(name, "first-entry") == 0)
        take_id(value, info->first);
    else if (strcmp(name, "last-entry") == 0)
        take_id(value, info->last);
    else if (strcmp(name, "last-generated-id") == 0)
        take_id(value, info->given);
    else if (strcmp(name, "max-deleted-entry-id") == 0)
        take_id(value, info->deleted);
}

static int look_at(const struct shard_copy *copy, struct shard_node *node,
                   struct log_info *ret_info, struct failure *reterr)
{
    const char *words[] = {"XINFO", "STREAM", copy->key};
    struct log_info info = {.exists = false};
    redisReply *reply = NULL;
    int r;

    r = shard_node_has(copy->nodes, node, node == copy->to, copy->key, &info.exists, reterr);
    if (r == 0 && info.exists)
        r = shard_node_ask_as(copy->nodes, node, node == copy->to, 3, words, NULL, &reply, reterr);
    if (r == 0 && info.exists && reply->type != REDIS_REPLY_ARRAY)
        r = sl_reply_unexpected(reterr);
    for (size_t i = 0; r == 0 && info.exists && i + 1 < reply->elements; i += 2) {
        if (reply->element[i]->type == REDIS_REPLY_STRING)
            take_field(&info, reply->element[i]->str, reply->element[i + 1]);
    }
    freeReplyObject(reply);
    if (r == 0)
        *ret_info = info;
    return r;
}

/* ---- pages ---- */

static int read_page(struct shard_copy *copy, const char *after, redisReply **ret_page,
                     struct failure *reterr)
{
    char from[ID_SIZE + 1], count[12];
    redisReply *page = NULL;
    int r;

    snprintf(from, sizeof(from), "%s%s", after[0] ? "(" : "-", after);
    snprintf(count, sizeof(count), "%d", PAGE);
    r = shard_node_ask(copy->nodes, copy->from, 6,
                       (const char *[]){"XRANGE", copy->key, from, "+", "COUNT", count}, NULL,
                       &page, reterr);
    if (r == 0)
        r = sl_reply_check_array(page, 0, reterr);
    for (size_t i = 0; r == 0 && i < page->elements; i++) {
        const redisReply *entry = page->element[i];

        if (entry->type != REDIS_REPLY_ARRAY || entry->elements != 2 ||
            entry->element[0]->type != REDIS_REPLY_STRING ||
            entry->element[1]->type != REDIS_REPLY_ARRAY || entry->element[1]->elements == 0)
            r = sl_reply_unexpected(reterr);
    }
    if (r < 0)
        freeReplyObject(page);
    else
        *ret_page = page;
    return r;
}

/* Sends ASKING, XADD key id field value ... */
static int append_entry(const struct shard_copy *copy, const redisReply *entry,
                        struct failure *reterr)
{
    const redisReply *fields = entry->element[1];
    const size_t argc = 3 + fields->elements;
    const char **argv = malloc(argc * sizeof(*argv));
    size_t *argvlen = malloc(argc * sizeof(*argvlen));
    int r = argv && argvlen ? 0 : failure_set(reterr, -ENOMEM, "out of memory");

    if (r == 0) {
        argv[0] = "XADD";
        argv[1] = copy->key;
        argv[2] = entry->element[0]->str;
        for (size_t i = 0; i < argc; i++) {
            if (i >= 3)
                argv[i] = fields->element[i - 3]->str;
            argvlen[i] = i < 3 ? strlen(argv[i]) : fields->element[i - 3]->len;
        }
        r = sl_redis_connection_append(copy->to->connection, 1, (const char *[]){"ASKING"}, NULL,
                                       reterr);
    }
    if (r == 0)
        r = sl_redis_connection_append(copy->to->connection, (int)argc, argv, argvlen, reterr);
    free(argv);
    free(argvlen);
    return r;
}

/* Reads all replies; returns the first error. */
static int read_replies(const struct shard_copy *copy, size_t count, struct failure *reterr)
{
    struct failure why;
    int r = 0;

    for (size_t i = 0; i < count; i++) {
        redisReply *reply = NULL;
        int broken = sl_redis_connection_read(copy->to->connection, &reply, &why);

        if (broken < 0)
            return failure_set(reterr, broken, "%s: %s", copy->to->name, why.text);
        if (r == 0 && sl_reply_check(reply, &why) < 0)
            r = failure_set(reterr, sl_reply_check(reply, NULL), "%s: %s", copy->to->name,
                            why.text);
        freeReplyObject(reply);
    }
    return r;
}

static int write_page(struct shard_copy *copy, const redisReply *page, struct failure *reterr)
{
    int r = shard_node_connect(copy->nodes, copy->to, reterr), broken;

    for (size_t i = 0; r == 0 && i < page->elements; i++)
        r = append_entry(copy, page->element[i], reterr);
    if (r == 0)
        r = read_replies(copy, 2 * page->elements, reterr);
    broken = r == -EIO || r == -ENOMEM;
    if (broken) /* the rest of its replies is unknown */
        shard_node_disconnect(copy->to);
    return r;
}

/* Copies the page after `after`, and advances that to its end. */
static int copy_page(struct shard_copy *copy, char after[static ID_SIZE], size_t *ret_count,
                     struct failure *reterr)
{
    redisReply *page = NULL;
    int r = read_page(copy, after, &page, reterr);

    if (r == 0 && page->elements > 0)
        r = write_page(copy, page, reterr);
    if (r == 0) {
        *ret_count = page->elements;
        if (page->elements > 0)
            take_id(page->element[page->elements - 1], after);
        *copy->entries += page->elements;
        copy->tell(copy->context);
    }
    freeReplyObject(page);
    return r;
}

static int copy_behind(struct shard_copy *copy, char after[static ID_SIZE], uint64_t most,
                       struct failure *reterr)
{
    size_t count = 0;
    uint64_t copied = 0;
    int r;

    do {
        r = copy_page(copy, after, &count, reterr);
        copied += count;
    } while (r == 0 && count == PAGE && copied < most);
    return r;
}

/* ---- the state of a copy ---- */

static int drop_copy(struct shard_copy *copy, struct failure *reterr)
{
    redisReply *reply = NULL;
    int r = shard_node_ask_as(copy->nodes, copy->to, true, 2, (const char *[]){"UNLINK", copy->key},
                              NULL, &reply, reterr);

    freeReplyObject(reply);
    *copy->entries = 0;
    return r;
}

/* Whether the entry is in the log. */
static int find_entry(struct shard_copy *copy, const char *id, bool *ret_is_there,
                      struct failure *reterr)
{
    redisReply *reply = NULL;
    int r;

    r = shard_node_ask(copy->nodes, copy->from, 4, (const char *[]){"XRANGE", copy->key, id, id},
                       NULL, &reply, reterr);
    if (r == 0)
        r = sl_reply_check_array(reply, 0, reterr);
    if (r == 0)
        *ret_is_there = reply->elements > 0;
    freeReplyObject(reply);
    return r;
}

/* `after`: the last entry of the copy, empty if there is no usable copy. */
static int find_place(struct shard_copy *copy, const struct log_info *source,
                      char after[static ID_SIZE], struct failure *reterr)
{
    struct log_info info;
    bool is_there = true;
    int r = look_at(copy, copy->to, &info, reterr);

    if (r == 0 && info.exists && info.last[0])
        r = find_entry(copy, info.last, &is_there, reterr);
    if (r == 0 && info.exists && (!is_there || !info.last[0])) {
        r = drop_copy(copy, reterr);
        info = (struct log_info){.exists = false};
    }
    if (r == 0) {
        memcpy(after, info.last, ID_SIZE);
        *copy->entries = info.length;
        *copy->all = source->length;
    }
    return r;
}

static int look_at_source(struct shard_copy *copy, struct log_info *ret_info,
                          struct failure *reterr)
{
    int r = look_at(copy, copy->from, ret_info, reterr);

    if (r == 0 && ret_info->groups > 0)
        return failure_set(reterr, -EINVAL,
                           "%s has consumer groups, which Sluice does not use and a copy would "
                           "lose; remove them first (XGROUP DESTROY)",
                           copy->key);
    return r;
}

int shard_copy_check(struct shard_copy *copy, struct failure *reterr)
{
    struct log_info source;

    return look_at_source(copy, &source, reterr);
}

int shard_copy_ahead(struct shard_copy *copy, struct failure *reterr)
{
    struct log_info source;
    char after[ID_SIZE];
    int r = look_at_source(copy, &source, reterr);

    if (r < 0 || source.length == 0)
        return r;
    r = find_place(copy, &source, after, reterr);
    return r == 0 ? copy_behind(copy, after, source.length, reterr) : r;
}

/* ---- completing ---- */

/* Trims what the source has trimmed, and sets what XADD did not copy. */
static int complete(struct shard_copy *copy, const struct log_info *source, struct failure *reterr)
{
    char added[24];
    redisReply *reply = NULL;
    int r;

    snprintf(added, sizeof(added), "%llu", (unsigned long long)source->added);
    r = shard_node_ask_as(copy->nodes, copy->to, true, 4,
                          (const char *[]){"XTRIM", copy->key, "MINID", source->first}, NULL,
                          &reply, reterr);
    freeReplyObject(reply);
    if (r < 0)
        return r;
    reply = NULL;
    r = shard_node_ask_as(copy->nodes, copy->to, true, 7,
                          (const char *[]){"XSETID", copy->key, source->given, "ENTRIESADDED",
                                           added, "MAXDELETEDID",
                                           source->deleted[0] ? source->deleted : "0-0"},
                          NULL, &reply, reterr);
    freeReplyObject(reply);
    return r;
}

static int copy_rest(struct shard_copy *copy, const struct log_info *source, bool *ret_is_same,
                     struct failure *reterr)
{
    struct log_info info = {.exists = false};
    char after[ID_SIZE];
    int r = find_place(copy, source, after, reterr);

    if (r == 0)
        r = copy_behind(copy, after, UINT64_MAX, reterr);
    if (r == 0)
        r = complete(copy, source, reterr);
    if (r == 0)
        r = look_at(copy, copy->to, &info, reterr);
    *ret_is_same = info.length == source->length && strcmp(info.first, source->first) == 0 &&
                   strcmp(info.last, source->last) == 0 && strcmp(info.given, source->given) == 0;
    return r;
}

int shard_copy_finish(struct shard_copy *copy, struct failure *reterr)
{
    struct log_info source;
    bool is_same = false;
    int r = look_at_source(copy, &source, reterr);

    if (r < 0 || source.length == 0) /* an empty log is moved like other keys */
        return r;
    r = copy_rest(copy, &source, &is_same, reterr);
    if (r == 0 && !is_same) { /* outdated, though its last entry was the same */
        r = drop_copy(copy, reterr);
        if (r == 0)
            r = copy_rest(copy, &source, &is_same, reterr);
    }
    if (r == 0 && !is_same)
        r = failure_set(reterr, -EIO, "%s: the copy of %s differs; somebody writes to it",
                        copy->to->name, copy->key);
    if (r == 0)
        r = shard_node_wait(copy->nodes, copy->to, reterr);
    return r == 0 ? SHARD_NODE_DO(copy->nodes, copy->from, reterr, "UNLINK", copy->key) : r;
}
