/* gateway/api/list.h - internal to the API: a page of users or posts, {"items":[...],"next":"..."}.
 *
 * The shard that has the list answers with its rows; items in other shards are then read in
 * parallel. `next` is the position of the last row, and is present whenever there is a row: only
 * the page after the end is empty, and has none. A page whose items no longer exist is skipped.
 * After the end of a list in Redis, the archive is read. With a cache, rows are bare and completed
 * by the cache; those that it lacks are read like items of other shards. */
#pragma once

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

struct api_request;
struct sl_post_row;

/* The content of a bare row. */
struct api_list_bare {
    uint64_t author;    /* for a post */
    uint64_t counts[3]; /* likes, comments; followers, following, posts */
    uint64_t version;   /* for a user */
    size_t login_at, login_size, name_at, name_size; /* in api_list.texts; a user has no login */
};

struct api_list_row {
    uint64_t id;
    size_t offset, size; /* of its JSON; 0: not known (yet), or not visible */
    bool is_bare;        /* the cache may have the rest */
    struct api_list_bare bare;
};

struct api_list {
    struct api_list_row *rows;
    size_t count;
    size_t *absent; /* indices of the rows to be read from other shards */
    size_t absent_count;
    uint64_t next;      /* position of the last row; 0: nothing follows */
    bool tells_missing; /* the items were requested by their ids */
    bool only_liked;    /* do not show posts that the caller does not like */
    struct buffer json, texts;
    int (*then)(struct api_request *request, const redisReply *reply); /* called when no row is
                                                                          missing */
};

void api_list_done(struct api_list *list);

/* Returns row `i` of a page assembled elsewhere: posts, newest first, complete, bare or by id. */
typedef const struct sl_post_row *(*api_list_row_fn)(const void *context, size_t i);
int api_list_answer_posts(struct api_request *request, const void *context, size_t count,
                          api_list_row_fn row_at);

/* Answers with users by their ids, which exist, in this order; `next` as above. */
int api_list_answer_users(struct api_request *request, const uint64_t *ids, size_t count,
                          uint64_t next);

/* The same for posts. */
int api_list_answer_page(struct api_request *request, const uint64_t *ids, size_t count,
                         uint64_t next);
/* The same for those of the posts that the caller likes. */
int api_list_answer_liked(struct api_request *request, const uint64_t *ids, size_t count,
                          uint64_t next);

/* Answers with the items of request->ids, in this order, {"items":[...],"missing":["ID",...]}:
 * `missing` lists those that do not exist or that the reader may not see. */
int api_list_asked_users(struct api_request *request);
int api_list_asked_posts(struct api_request *request);

/* Steps that take the reply to a builder of a list of users, or of posts. */
int api_list_on_users(struct api_request *request, const redisReply *reply);
int api_list_on_posts(struct api_request *request, const redisReply *reply);
int api_list_on_profile(struct api_request *request, const redisReply *reply);
