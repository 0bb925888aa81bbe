/* cached_rows.c - the format of cached values, and the arguments that tell Redis which values
 * exist.
 *
 * A post: 'a' (read from the archive) or 'r', the author's id, a space, and the part of the post's
 * JSON that follows the author: ,"text":"...",...,"audience":"public"}. A user: login, signup and
 * version, each followed by a space, and the profile. */
#include "src/cache/cached_rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "src/call/read_build.h"
#include "src/call/shard_calls_build.h"
#include "src/call/write_build.h"
#include "src/model/id.h"
#include "src/model/id_check.h"
#include "src/social/row_json.h"

struct post_value {
    char source; /* 'a' or 'r' */
    uint64_t author;
    struct sl_slice rest;
};

static bool read_post_value(struct sl_slice value, struct post_value *ret_value)
{
    const char *space = value.size > 2 ? memchr(value.data, ' ', value.size) : NULL;

    if (!space || (value.data[0] != 'a' && value.data[0] != 'r') ||
        sl_id_parse(sl_slice(value.data + 1, (size_t)(space - value.data) - 1),
                    &ret_value->author) < 0)
        return false;
    ret_value->source = value.data[0];
    ret_value->rest = sl_slice_from(value, (size_t)(space - value.data) + 1);
    return ret_value->rest.size > 1 && ret_value->rest.data[ret_value->rest.size - 1] == '}';
}

struct user_value {
    struct sl_slice login, signup, profile;
    uint64_t version;
};

/* Removes the word before the next space. */
static bool take_word(struct sl_slice *rest, struct sl_slice *ret_word)
{
    const char *space = rest->size > 0 ? memchr(rest->data, ' ', rest->size) : NULL;

    if (!space)
        return false;
    *ret_word = sl_slice(rest->data, (size_t)(space - rest->data));
    *rest = sl_slice_from(*rest, ret_word->size + 1);
    return true;
}

static bool read_user_value(struct sl_slice value, struct user_value *ret_value)
{
    struct sl_slice version;

    if (!take_word(&value, &ret_value->login) || !take_word(&value, &ret_value->signup) ||
        !take_word(&value, &version))
        return false;
    ret_value->version = 0;
    ret_value->profile = value;
    return sl_slice_is(version, "0") || sl_id_parse(version, &ret_value->version) == 0;
}

/* ---- calls ---- */

/* ID, ID:AUTHOR or ID:AUTHOR:a, see read_posts.lua. */
static void add_asked(struct sl_call *call, const struct sl_cache_item *item)
{
    char room[2 * SL_ID_TEXT_SIZE + 4];
    struct post_value value;

    if (read_post_value(item->value, &value)) {
        snprintf(room, sizeof(room), "%" PRIu64 ":%" PRIu64 "%s", item->id, value.author,
                 value.source == 'a' ? ":a" : "");
        sl_call_add_str(call, room);
    } else {
        sl_call_add_id(call, item->id);
    }
}

static int add_post(struct sl_shard_calls *calls, const struct sl_meta *meta, uint64_t reader,
                    const struct sl_cache_item *item, struct failure *reterr)
{
    struct sl_call *call;
    bool is_new;
    int r;

    r = sl_id_check(item->id, meta, reterr);
    if (r < 0)
        return r;
    call = sl_shard_calls_next(calls, sl_id_shard(item->id), &is_new);
    if (is_new)
        sl_read_begin(call, &sl_script_read_posts, sl_id_shard(item->id), meta, reader);
    add_asked(call, item);
    return 0;
}

int sl_cached_posts_calls(struct sl_shard_calls *calls, const struct sl_meta *meta, uint64_t reader,
                          const struct sl_cache_item *items, size_t count, struct failure *reterr)
{
    int r;

    r = sl_read_check_reader(reader, meta, reterr);
    if (r == 0)
        r = sl_shard_calls_begin(calls, meta, count, reterr);
    for (size_t i = 0; r == 0 && i < count; i++)
        r = add_post(calls, meta, reader, &items[i], reterr);
    return sl_shard_calls_finish(calls, r, reterr);
}

static int add_user(struct sl_shard_calls *calls, const struct sl_meta *meta,
                    const struct sl_user_ref *user, const struct sl_cache_item *item,
                    struct failure *reterr)
{
    struct sl_write_user who;
    struct sl_call *call;
    char room[2 * SL_ID_TEXT_SIZE + 4];
    struct user_value value;
    bool is_new;
    int r;

    r = sl_write_user_init(&who, user, meta, reterr);
    if (r < 0)
        return r;
    call = sl_shard_calls_next(calls, who.shard, &is_new);
    if (is_new)
        sl_call_begin_repeatable(call, &sl_script_read_users, who.shard, meta->shards);
    if (user->id != 0 && read_user_value(item->value, &value)) {
        snprintf(room, sizeof(room), "+%" PRIu64 ":%" PRIu64, user->id, value.version);
        sl_call_add_str(call, room);
    } else {
        sl_call_add(call, who.slice);
    }
    return 0;
}

int sl_cached_users_calls(struct sl_shard_calls *calls, const struct sl_meta *meta,
                          const struct sl_user_ref *users, const struct sl_cache_item *items,
                          size_t count, struct failure *reterr)
{
    int r;

    r = sl_shard_calls_begin(calls, meta, count, reterr);
    for (size_t i = 0; r == 0 && i < count; i++)
        r = add_user(calls, meta, &users[i], &items[i], reterr);
    return sl_shard_calls_finish(calls, r, reterr);
}

/* ---- rows and values ---- */

bool sl_cached_post_json(struct buffer *json, const struct sl_post_row *row, struct sl_slice value)
{
    struct post_value read;

    if (row->json.data) {
        sl_post_row_json(json, row);
        return true;
    }
    if (row->author == 0 || !read_post_value(value, &read) || read.author != row->author)
        return false;
    buffer_append_format(json, "{\"id\":\"%" PRIu64 "\",\"user\":{\"id\":\"%" PRIu64 "\"", row->id,
                         row->author);
    buffer_append_str(json, ",\"login\":");
    buffer_append_json_string(json, row->login);
    buffer_append_str(json, ",\"name\":");
    buffer_append_json_string(json, row->name);
    buffer_append_str(json, "}");
    buffer_append(json, read.rest.data, read.rest.size - 1);
    buffer_append_format(json, ",\"likes\":%" PRIu64 ",\"comments\":%" PRIu64 "}", row->likes,
                         row->comments);
    return true;
}

bool sl_cached_user_fill(struct sl_user_row *row, struct sl_slice value)
{
    struct user_value read;

    if (row->user.login.data)
        return true;
    if (!row->user.name.data || !read_user_value(value, &read) || read.version != row->version)
        return false;
    row->user.login = read.login;
    row->signup = read.signup;
    row->profile = read.profile;
    return true;
}

/* ---- values to store ---- */

/* The size of the object at the beginning of `json`; 0 if it has no end. */
static size_t object_size(struct sl_slice json)
{
    bool is_text = false;
    unsigned depth = 0;

    for (size_t i = 0; i < json.size; i++) {
        char c = json.data[i];

        if (is_text && c == '\\')
            i++;
        else if (c == '"')
            is_text = !is_text;
        else if (!is_text && c == '{')
            depth++;
        else if (!is_text && c == '}' && --depth == 0)
            return i + 1;
    }
    return 0;
}

/* Skips `text` if `*json` begins with it. */
static bool take(struct sl_slice *json, struct sl_slice text)
{
    if (!sl_slice_starts_with(*json, text))
        return false;
    *json = sl_slice_from(*json, text.size);
    return true;
}

static struct sl_slice take_digits(struct sl_slice *json)
{
    struct sl_slice digits = sl_slice(json->data, 0);

    while (digits.size < json->size && digits.data[digits.size] >= '0' &&
           digits.data[digits.size] <= '9')
        digits.size++;
    *json = sl_slice_from(*json, digits.size);
    return digits;
}

/* The audience is the last member (POST_MEMBERS in common.lua), and quotes in texts are escaped, so
 * nothing else can end like this. */
static bool is_public(struct sl_slice rest)
{
    const struct sl_slice end = SL_SLICE(",\"audience\":\"public\"}");

    return rest.size >= end.size &&
           memcmp(rest.data + rest.size - end.size, end.data, end.size) == 0;
}

/* {"id":"ID","user":{"id":"AUTHOR",...},REST */
static bool split_post(struct sl_slice json, struct sl_slice *ret_author, struct sl_slice *ret_rest)
{
    struct sl_slice user;

    if (!take(&json, SL_SLICE("{\"id\":\"")))
        return false;
    take_digits(&json);
    if (!take(&json, SL_SLICE("\",\"user\":")))
        return false;
    user = json;
    if (!take(&json, SL_SLICE("{\"id\":\"")))
        return false;
    *ret_author = take_digits(&json);
    *ret_rest = sl_slice_from(user, object_size(user));
    return ret_author->size > 0 && ret_rest->size < user.size &&
           sl_slice_starts_with(*ret_rest, SL_SLICE(","));
}

bool sl_cached_post_value(struct buffer *value, const struct sl_post_row *row,
                          enum sl_cached_source source)
{
    struct sl_slice author, rest;

    if (!row->json.data || !split_post(row->json, &author, &rest) || !is_public(rest))
        return false;
    buffer_append_char(value, source == SL_CACHED_FROM_ARCHIVE ? 'a' : 'r');
    buffer_append_slice(value, author);
    buffer_append_char(value, ' ');
    buffer_append_slice(value, rest);
    return !value->failed;
}

bool sl_cached_user_value(struct buffer *value, const struct sl_user_row *row)
{
    if (!row->user.login.data || !row->signup.data)
        return false;
    buffer_append_slice(value, row->user.login);
    buffer_append_char(value, ' ');
    buffer_append_slice(value, row->signup);
    buffer_append_format(value, " %" PRIu64 " ", row->version);
    buffer_append_slice(value, row->profile);
    return !value->failed;
}
