/* gateway/api/list.h - inside the API: a page of users or posts, {"items":[...],"next":"..."}.
 *
 * The shard that has the list answers with its rows; those that live in other shards are asked for
 * then, all at once. `next` is the position of the last row and there whenever a row is: only the
 * page past the end is empty, and has none. A page whose rows are all gone is read over. Where
 * Redis ends, the archive is read on. */
#pragma once

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

struct api_request;

struct api_list_row {
    uint64_t id;
    size_t offset, size; /* of its JSON; 0: not known (yet), or there is nothing to be seen */
};

struct api_list {
    struct api_list_row *rows;
    size_t count;
    size_t *absent; /* places of the rows that other shards are asked for */
    size_t absent_count;
    uint64_t next; /* position of the last row */
    struct buffer json;
};

void api_list_done(struct api_list *list);

/* Steps: the reply is that to a builder of a list of users, or of posts. */
int api_list_on_users(struct api_request *request, const redisReply *reply);
int api_list_on_posts(struct api_request *request, const redisReply *reply);
int api_list_on_profile(struct api_request *request, const redisReply *reply);
