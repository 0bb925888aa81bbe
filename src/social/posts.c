/* posts.c - checks a post member by member and passes it to the script as names and values.
 *
 * Members that are objects or lists become JSON here (post_json.h), because scripts do not parse
 * numbers. References to posts in the author's shard are looked up by the script. For others the
 * caller must supply the author, or the builder fails with -EXDEV. Lengths and counts are checked
 * before anything is sent. */
#include "src/social/posts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include <hiredis/hiredis.h>

#include "base/buffer.h"
#include "src/call/read_build.h"
#include "src/call/reply_read.h"
#include "src/call/write_build.h"
#include "src/model/id.h"
#include "src/model/id_check.h"
#include "src/model/text.h"
#include "src/social/post_json.h"

enum { LANGUAGE_MAX = 3, SUBTAG_MAX = 8 };

/* Checks the form of a language tag (RFC 5646): subtags of 1 to 8 letters and digits, the first of
 * letters only. Registered first subtags have at most three letters; longer ones are names, and a
 * search for `en` would not find `english`. */
static int check_lang(struct sl_slice lang, struct failure *reterr)
{
    size_t subtag = 0; /* length of the current subtag */
    bool is_first = true;

    if (lang.size == 0 || lang.size > SL_POST_LANG_MAX)
        goto refuse;
    for (size_t i = 0; i < lang.size; i++) {
        char c = lang.data[i];
        bool is_letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');

        if (c == '-' && subtag > 0) {
            is_first = false;
            subtag = 0;
        } else if (++subtag > (is_first ? LANGUAGE_MAX : SUBTAG_MAX) ||
                   !(is_letter || (c >= '0' && c <= '9' && !is_first))) {
            goto refuse;
        }
    }
    if (subtag > 0)
        return 0;
refuse:
    return failure_set(reterr, -EINVAL,
                       "the language is not a BCP 47 tag such as en or zh-TW: a code, not a name");
}

static int check_plain_members(const struct sl_post *post, const struct sl_meta *meta,
                               struct failure *reterr)
{
    int r;

    r = sl_text_check(post->text, "the text", SL_POST_TEXT_MAX, reterr);
    if (r == 0 && post->lang.data)
        r = check_lang(post->lang, reterr);
    if (r == 0 && post->source.data)
        r = sl_text_check_line(post->source, "the source", SL_POST_SOURCE_MAX, reterr);
    if (r == 0 && post->audience.data)
        r = sl_audience_check(post->audience, meta, reterr);
    return r;
}

static void add_member(struct sl_call *call, const char *name, struct sl_slice value)
{
    sl_call_add_str(call, name);
    sl_call_add(call, value);
}

/* Adds the content of `json`, if any, and clears it. */
static void add_json_member(struct sl_call *call, const char *name, struct buffer *json)
{
    if (json->failed)
        call->failed = true;
    else if (json->size > 0)
        add_member(call, name, buffer_slice(json));
    buffer_clear(json);
}

/* Adds a reference whose author the script will look up. */
static int add_own_reference(struct sl_call *call, const char *name, struct sl_slice post,
                             struct failure *reterr)
{
    uint64_t id;

    if (sl_id_parse(post, &id) < 0)
        return failure_set(reterr, -EINVAL, "%s is not the id of a post", name);
    if (sl_id_shard(id) != call->shard)
        return failure_set(reterr, -EXDEV, "post %" PRIu64 " lives in another shard", id);
    add_member(call, name, post);
    return 0;
}

static int add_reference(struct sl_call *call, const char *name,
                         const struct sl_post_reference *reference, struct buffer *json,
                         struct failure *reterr)
{
    int r;

    if (!reference->post.data)
        return 0;
    if (!reference->user.data && !reference->is_restricted)
        return add_own_reference(call, name, reference->post, reterr);
    r = sl_post_json_reference(json, reference, name, reterr);
    add_json_member(call, name, json);
    return r;
}

/* Adds the post, of another shard, that this one replies to. */
static int add_parent(struct sl_call *call, const struct sl_meta *meta, struct sl_slice post,
                      struct failure *reterr)
{
    uint64_t id;

    if (sl_id_parse(post, &id) < 0 || sl_id_shard(id) >= meta->shards)
        return failure_set(reterr, -EINVAL, "reply_to is not the id of a post of this database");
    add_member(call, "parent", post);
    return 0;
}

static int add_references(struct sl_call *call, const struct sl_meta *meta,
                          const struct sl_post *post, struct buffer *json, struct failure *reterr)
{
    int r;

    if (post->repost_of.is_restricted)
        return failure_set(reterr, -EOPNOTSUPP, "post %.*s is not public: nobody can repost it",
                           SL_SLICE_ARG(post->repost_of.post));
    r = add_reference(call, "reply_to", &post->reply_to, json, reterr);
    if (r == 0 && post->is_comment && (post->reply_to.user.data || post->reply_to.is_restricted))
        r = add_parent(call, meta, post->reply_to.post, reterr);
    if (r == 0)
        r = add_reference(call, "repost_of", &post->repost_of, json, reterr);
    if (r == 0)
        r = add_reference(call, "quote_of", &post->quote_of, json, reterr);
    return r;
}

static bool has_place(const struct sl_post_place *place)
{
    return place->name.data || place->country.data || place->has_box;
}

static int add_json_members(struct sl_call *call, const struct sl_post *post, struct buffer *json,
                            struct failure *reterr)
{
    int r = 0;

    if (post->has_point)
        r = sl_post_json_point(json, post->lon, post->lat, reterr);
    add_json_member(call, "geo", json);
    if (r == 0 && has_place(&post->place))
        r = sl_post_json_place(json, &post->place, reterr);
    add_json_member(call, "place", json);
    if (r == 0 && post->url_count > 0)
        r = sl_post_json_urls(json, post->urls, post->url_count, reterr);
    add_json_member(call, "urls", json);
    if (r == 0 && post->media.data)
        r = sl_post_json_media(json, post->media, reterr);
    add_json_member(call, "media", json);
    return r;
}

int sl_post_call(struct sl_call *call, const struct sl_meta *meta, struct sl_slice request_id,
                 const struct sl_user_ref *author, const struct sl_post *post,
                 struct failure *reterr)
{
    struct buffer json = BUFFER_INIT;
    struct sl_write_user who;
    int r;

    r = check_plain_members(post, meta, reterr);
    if (r == 0)
        r = sl_write_user_init(&who, author, meta, reterr);
    if (r == 0)
        r = sl_write_begin(call, &sl_script_post, who.shard, meta, request_id, reterr);
    if (r < 0)
        return r;
    sl_call_add(call, who.slice);
    add_member(call, "text", post->text);
    if (post->lang.data)
        add_member(call, "lang", post->lang);
    if (post->source.data)
        add_member(call, "source", post->source);
    if (post->audience.data)
        add_member(call, "audience", post->audience);
    r = add_json_members(call, post, &json, reterr);
    if (r == 0)
        r = add_references(call, meta, post, &json, reterr);
    if (r == 0)
        r = sl_call_finish(call, reterr);
    buffer_done(&json);
    return r;
}

int sl_delete_archived_call(struct sl_call *call, const struct sl_meta *meta,
                            struct sl_slice request_id, const struct sl_user_ref *user,
                            uint64_t post, struct sl_slice json, struct failure *reterr)
{
    struct sl_write_user who;
    int r;

    r = sl_id_check(post, meta, reterr);
    if (r == 0)
        r = sl_write_user_init(&who, user, meta, reterr);
    if (r == 0)
        r = sl_write_begin(call, &sl_script_delete, sl_id_shard(post), meta, request_id, reterr);
    if (r < 0)
        return r;
    if (user->id != 0 || who.shard == sl_id_shard(post))
        sl_call_add(call, who.slice);
    else
        sl_call_add_str(call, "-");
    sl_call_add_id(call, post);
    if (json.data)
        sl_call_add(call, json);
    return sl_call_finish(call, reterr);
}

int sl_delete_call(struct sl_call *call, const struct sl_meta *meta, struct sl_slice request_id,
                   const struct sl_user_ref *user, uint64_t post, struct failure *reterr)
{
    return sl_delete_archived_call(call, meta, request_id, user, post, SL_SLICE_NONE, reterr);
}

int sl_post_author_call(struct sl_call *call, const struct sl_meta *meta, uint64_t reader,
                        uint64_t post, struct failure *reterr)
{
    return sl_read_post_build(call, &sl_script_find_author, meta, reader, post, reterr);
}

int sl_post_author_reply(const struct redisReply *reply, struct sl_post_reference *reference,
                         struct failure *reterr)
{
    int r = sl_reply_check_array(reply, 0, reterr);

    if (r < 0)
        return r;
    reference->is_restricted = reply->elements == 0;
    if (reference->is_restricted)
        return 0;
    if (!sl_reply_at(reply, 0).data || !sl_reply_at(reply, 1).data)
        return sl_reply_unexpected(reterr);
    reference->user = sl_reply_at(reply, 0);
    reference->login = sl_reply_at(reply, 1);
    return 0;
}
