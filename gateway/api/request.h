/* gateway/api/request.h - internal to the API: a request being processed, and its steps.
 *
 * A step reads the reply to the call before it (the first step has none) and either sends the
 * next call (api_send()), or answers (api_answer()), or refuses; it returns what that function
 * returns. */
#pragma once

#include <hiredis/hiredis.h>
#include <jansson.h>

#include "base/buffer.h"
#include "base/deadline_list.h"
#include "gateway/api/api.h"
#include "gateway/api/list.h"
#include "src/cache/cached_rows.h"
#include "src/call/call.h"
#include "src/call/read.h"
#include "src/call/shard_calls.h"
#include "src/model/database.h"
#include "src/model/login.h"
#include "src/social/included.h"
#include "src/social/users.h"

enum { API_REQUEST_ID_SIZE = 129, API_IDS_MAX = 200 };

enum api_outcome { API_WAITS, API_ANSWERED }; /* or a negative errno: refused */

/* `reply` may be NULL: Redis did not answer; the parsers of src handle that. */
typedef int (*api_step_fn)(struct api_request *request, const redisReply *reply);

/* Reads the reply to call `part` of a set. 0, or the result of a refusal. */
typedef int (*api_part_fn)(struct api_request *request, size_t part, const redisReply *reply);

enum api_flag {
    API_TAKES_BODY = 1 << 0,   /* a JSON object */
    API_NEEDS_CALLER = 1 << 1, /* the token's `sub` must be a user of this database */
    API_TAKES_PAGE = 1 << 2,   /* `before` and `limit` */
    API_TAKES_AFTER = 1 << 3,  /* `after` as well */
    API_TAKES_IDS = 1 << 4,    /* `ids`, which is required */
    API_TAKES_WITH = 1 << 5,   /* `with`, a user, which is required */
    API_SHOWS_POSTS = 1 << 6,  /* `include` of comments, likes and viewer */
    API_SHOWS_USERS = 1 << 7   /* `include` of viewer */
};

struct api_route;

struct api_post_list; /* defined in post_list.c */
struct api_included;  /* defined in included.c */

struct api_request {
    struct api *api;
    const struct api_route *route;
    api_step_fn begin;      /* the first step of the operation */
    api_answer_fn answered; /* NULL: answered, or nobody waits for the answer */
    void *owner;
    struct list_node node;    /* in api->requests */
    struct deadline deadline; /* in the API's list, while the owner waits for the answer */
    uint64_t began_ns, began_wall_ms;

    /* what was requested */
    char subject[TOKEN_SUBJECT_SIZE]; /* of the token */
    uint64_t holder;                  /* hash by which limits are counted; 0: not known yet */
    struct api_act act;
    uint64_t caller;         /* the token's subject; SL_READER_NOBODY: not a user of this
                                database */
    bool acts;               /* the caller acts, or is what is asked for */
    bool caller_is_checked;  /* whether the caller is a user was checked */
    struct sl_user_ref user; /* {user} */
    uint64_t post;           /* {post} */
    uint64_t revocation;     /* {revocation} */
    struct sl_user_ref with;
    struct sl_included_wish include;
    bool includes_viewer;
    uint64_t *ids; /* up to API_IDS_MAX, without duplicates */
    size_t ids_count;
    struct sl_page page;
    uint64_t after;             /* 0: none */
    bool after_last_read;       /* begin where the caller has read to */
    struct sl_slice request_id; /* from Idempotency-Key; absent: none */
    json_t *body;

    /* the state of processing */
    struct sl_call call;         /* the next call */
    struct sl_shard_calls calls; /* or several calls at once */
    size_t parts_left;           /* of these, not answered yet */
    api_part_fn part;
    api_step_fn next;
    struct sl_archive_page archived; /* the last result of the archive */
    struct sl_cache_item *known;     /* what the cache was asked for last, and what it knew */
    size_t known_count;
    struct sl_cache_item *kept; /* to be stored by the cache; the values are owned */
    size_t kept_count, kept_room;
    void *state;                     /* of the operation */
    void (*free_state)(void *state); /* NULL: mem_free() is used */
    size_t index;                    /* of what `state` waits for */
    uint64_t id;                     /* of what was written */
    int status;                      /* of the answer */
    struct buffer headers, json;
    const struct api_post_list *post_list; /* which list of a post; NULL: none */
    struct api_list list;
    struct api_included *included; /* NULL: not read yet, or not requested */
    void (*free_included)(struct api_included *included);
    struct http_refusal refusal;

    char login[SL_LOGIN_SIZE], with_login[SL_LOGIN_SIZE];
    char request_id_room[API_REQUEST_ID_SIZE];
};

/* The meta that the builders need. */
struct sl_meta api_meta(const struct api_request *request);

/* Sends request->call, which a builder filled; `r` and `failure` are its results. */
int api_send(struct api_request *request, int r, const struct failure *failure, api_step_fn next);
/* Sends several calls at once, and takes their memory. `part` is called with each reply, `next`
 * without one when all succeeded. */
int api_send_many(struct api_request *request, struct sl_call *calls, size_t count,
                  api_part_fn part, api_step_fn next);
/* The same for request->calls, which a builder filled. */
int api_send_all(struct api_request *request, int r, const struct failure *failure,
                 api_part_fn part, api_step_fn next);
/* The same for the only call of request->calls. */
int api_send_only(struct api_request *request, int r, const struct failure *failure,
                  api_step_fn next);

/* Called with user `item` of a set; NULL: there is none, as *failure says. 0, or the result of a
 * refusal. */
typedef int (*api_user_fn)(struct api_request *request, uint32_t item,
                           const struct sl_user_row *row, const struct failure *failure);

/* Calls a function for each user in the reply to call `part` of a set built by sl_users_calls(). 0,
 * or the result of a refusal. */
int api_each_user(struct api_request *request, const struct sl_shard_calls *calls, size_t part,
                  const redisReply *reply, api_user_fn each);

/* For a reply about request->post, which Redis may lack and the archive have: if so, `ask_again` is
 * the next step, with the result of the archive, possibly empty, in request->archived. Otherwise
 * `next`. */
int api_try_archive(struct api_request *request, const redisReply *reply, api_step_fn next,
                    api_step_fn ask_again);
/* Refuses: neither has the post. */
int api_no_post(struct api_request *request);

/* Whether there is an archive. The functions below require one. They fill request->archived with
 * those of `posts` that it has, or with posts of a user before an id (0: from the newest). `next`
 * gets no reply. */
bool api_has_archive(const struct api_request *request);
int api_find_archived(struct api_request *request, const uint64_t *posts, size_t count,
                      api_step_fn next);
int api_list_archived(struct api_request *request, uint64_t user, uint64_t before, size_t limit,
                      api_step_fn next);

/* Whether there is a cache, so that rows may lack what it has. */
bool api_wants_bare(const struct api_request *request);
/* Asks the cache; `next` gets no reply, but request->known: these items in this order, those that
 * are known with their value. Without a cache, or if it does not answer, nothing is known. */
int api_ask_cache(struct api_request *request, enum sl_cache_kind kind, const uint64_t *ids,
                  size_t count, api_step_fn next);
/* Stores a row in the cache, if it is suitable. */
void api_keep_post(struct api_request *request, const struct sl_post_row *row,
                   enum sl_cached_source source);
void api_keep_user(struct api_request *request, const struct sl_user_row *row);
/* Counts that the cache had a post that Redis does not show. */
void api_note_stale(struct api_request *request);
/* Removes a deleted post from the cache. */
void api_forget_post(struct api_request *request, uint64_t post);

/* Answers with request->json (204: without a body). */
int api_answer(struct api_request *request, int status);
/* Answers with request->status if the caller is a user: for something that does not exist, which is
 * as good as done. */
int api_check_caller(struct api_request *request);
/* The same after a successful write. */
int api_answer_written(struct api_request *request, const redisReply *reply);

/* Refuses with an error of src, which a table maps to a status. */
int api_fail(struct api_request *request, int r, const struct failure *failure);
int api_fail_for_memory(struct api_request *request);
/* The same, and names the wrong member. */
int api_fail_member(struct api_request *request, int r, const struct failure *failure,
                    const char *member);
/* The same for one of many items: {"code":..,"message":..}. */
void api_error_json(struct buffer *json, int r, const struct failure *failure);
/* Refuses a parameter or member. */
int api_refuse(struct api_request *request, int status, const char *code, const char *param,
               const char *format, ...) __attribute__((format(printf, 5, 6)));

/* Marks the answer as that of an earlier identical request. */
void api_say_replayed(struct api_request *request);
/* Reads the reply to a write: its id, and whether it is a repetition. 0; negative: refused. */
int api_take_written(struct api_request *request, const redisReply *reply);

/* Parses {user}, as in a path: an id, a login, or @ and a login. 0; -EPROTO: invalid, see *refusal.
 * The login is a slice of `text`. */
int api_read_user(const struct sl_meta *meta, struct sl_slice text, struct sl_user_ref *ret_user,
                  struct http_refusal *refusal);

/* --- the first step of each operation --- */

#define ROUTE(name, method, path, scope, flags, begin)                                             \
    int begin(struct api_request *request, const redisReply *reply);
#include "gateway/metrics/api_routes.def"
