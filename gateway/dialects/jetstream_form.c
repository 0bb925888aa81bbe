/* jetstream_form.c - parses the JSON of an event and builds a commit with its record.
 *
 * Clients use the greatest `time_us` that they have read as a cursor. Therefore it is the position
 * that a client has reached with this event; while one shard is behind the others, that is the
 * position of this shard. */
#include "gateway/dialects/jetstream_form.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "base/clock.h"
#include "gateway/dialects/dag_cbor.h"
#include "gateway/dialects/event_json.h"
#include "gateway/dialects/jetstream_ids.h"
#include "gateway/dialects/text_marks.h"
#include "src/model/id.h"

/* An event that is in no log gets an earlier time, because a client that resumes there must not
 * miss logged events that arrive a little later. */
enum { UNLOGGED_BEFORE_MS = 2000 };

static const char *const names_of[JETSTREAM_COLLECTIONS] = {
    [JETSTREAM_POST] = "app.bsky.feed.post",
    [JETSTREAM_REPOST] = "app.bsky.feed.repost",
    [JETSTREAM_FOLLOW] = "app.bsky.graph.follow",
};

const char *jetstream_collection_name(enum jetstream_collection collection)
{
    return names_of[collection];
}

/* --- names ----------------------------------------------------------------------------------- */

/* Frees the buffer. */
static json_t *text_take(struct buffer *text)
{
    json_t *json = text->failed ? NULL : json_stringn(text->data ? text->data : "", text->size);

    buffer_done(text);
    return json;
}

static json_t *did_of(struct sl_slice user)
{
    struct buffer text = BUFFER_INIT;

    jetstream_append_did(user, &text);
    return text_take(&text);
}

static json_t *time_of(uint64_t ms)
{
    char text[CLOCK_RFC3339_SIZE];

    clock_format_rfc3339(ms, text);
    return json_string(text);
}

/* The time given by the author, or else the time of its id. */
static json_t *post_time_of(const struct event *event, const json_t *post)
{
    uint64_t ms;

    if (clock_parse_rfc3339(event_json_text(post, "created_at"), &ms) < 0)
        ms = sl_id_time_ms(event->view.sample_id);
    return time_of(ms);
}

/* A strong reference to another post. */
static json_t *reference_to(const json_t *reference)
{
    struct buffer uri = BUFFER_INIT;
    char cid[CID_TEXT_SIZE];

    buffer_append_str(&uri, "at://");
    jetstream_append_did(event_json_text(reference, "user"), &uri);
    buffer_append_format(&uri, "/%s/", names_of[JETSTREAM_POST]);
    buffer_append_slice(&uri, event_json_text(reference, "post"));
    cid_of(CID_RAW, buffer_slice(&uri), cid);
    return json_pack("{s:s,s:o}", "cid", cid, "uri", text_take(&uri));
}

/* A reply to a post that is not public does not contain that post's author. */
static bool is_reference(const json_t *reference)
{
    return event_json_text(reference, "post").data && event_json_text(reference, "user").data;
}

/* --- records --------------------------------------------------------------------------------- */

static json_t *feature_of(struct sl_slice text, const struct text_mark *mark)
{
    struct sl_slice name = text_mark_name(text, mark);

    if (mark->kind == TEXT_MARK_LINK)
        return json_pack("{s:s,s:s#}", "$type", "app.bsky.richtext.facet#link", "uri", name.data,
                         (int)name.size);
    return json_pack("{s:s,s:s#}", "$type", "app.bsky.richtext.facet#tag", "tag", name.data,
                     (int)name.size);
}

/* Facets for links and hashtags, by byte positions. A mention contains a login, not a DID, so it
 * has none. */
static json_t *facets_of(struct sl_slice text)
{
    struct text_marks marks = {.text = text};
    json_t *facets = json_array();
    struct text_mark mark;
    int r = facets ? 0 : -1;

    while (r == 0 && text_marks_next(&marks, &mark)) {
        if (mark.kind == TEXT_MARK_LINK || mark.kind == TEXT_MARK_HASHTAG)
            r = json_array_append_new(facets, json_pack("{s:[o],s:{s:I,s:I}}", "features",
                                                        feature_of(text, &mark), "index", "byteEnd",
                                                        (json_int_t)mark.to, "byteStart",
                                                        (json_int_t)mark.from));
    }
    if (r == 0)
        return facets;
    json_decref(facets);
    return NULL;
}

static int set_embed(json_t *record, const json_t *post)
{
    const json_t *quote = json_object_get(post, "quote_of");
    const json_t *other = is_reference(quote) ? quote : json_object_get(post, "repost_of");

    if (!is_reference(other))
        return 0;
    return json_object_set_new(
        record, "embed",
        json_pack("{s:s,s:o}", "$type", "app.bsky.embed.record", "record", reference_to(other)));
}

static int set_facets(json_t *record, struct sl_slice text)
{
    json_t *facets = facets_of(text);

    if (facets && json_array_size(facets) == 0) {
        json_decref(facets);
        return 0;
    }
    return json_object_set_new(record, "facets", facets);
}

/* Of a conversation only the post being answered is known. */
static int set_reply(json_t *record, const json_t *reply)
{
    if (!is_reference(reply))
        return 0;
    return json_object_set_new(
        record, "reply",
        json_pack("{s:o,s:o}", "parent", reference_to(reply), "root", reference_to(reply)));
}

static json_t *post_of(const struct event *event, const json_t *post)
{
    struct sl_slice text = event_json_text(post, "text"), lang = event_json_text(post, "lang");
    json_t *record = json_pack("{s:s,s:o}", "$type", names_of[JETSTREAM_POST], "createdAt",
                               post_time_of(event, post));
    int r = record ? set_embed(record, post) : -1;

    if (r == 0)
        r = set_facets(record, text);
    if (r == 0 && lang.size > 0 && !sl_slice_is(lang, "und"))
        r = json_object_set_new(record, "langs", json_pack("[s#]", lang.data, (int)lang.size));
    if (r == 0)
        r = set_reply(record, json_object_get(post, "reply_to"));
    if (r == 0)
        r = json_object_set_new(record, "text",
                                json_stringn(text.data ? text.data : "", text.size));
    if (r == 0)
        return record;
    json_decref(record);
    return NULL;
}

static json_t *record_of(enum jetstream_collection collection, const struct event *event,
                         const json_t *json)
{
    const json_t *post = json_object_get(json, "post");

    switch (collection) {
    case JETSTREAM_REPOST:
        return json_pack("{s:s,s:o,s:o}", "$type", names_of[collection], "createdAt",
                         post_time_of(event, post), "subject",
                         reference_to(json_object_get(post, "repost_of")));
    case JETSTREAM_FOLLOW:
        return json_pack("{s:s,s:o,s:o}", "$type", names_of[collection], "createdAt",
                         time_of(event->id ? sl_id_time_ms(event->id) : clock_wall_ms()), "subject",
                         did_of(event->view.target));
    default:
        return post_of(event, post);
    }
}

/* --- commits --------------------------------------------------------------------------------- */

/* The same for a post and its deletion. */
static enum jetstream_collection collection_of(const struct event *event)
{
    const struct sl_event_view *view = &event->view;

    if (event->kind == EVENT_FOLLOW || event->kind == EVENT_UNFOLLOW)
        return JETSTREAM_FOLLOW;
    return view->text.data && view->text.size == 0 && view->repost_of.has_post &&
                   view->repost_of.user.data
               ? JETSTREAM_REPOST
               : JETSTREAM_POST;
}

static json_t *key_of(enum jetstream_collection collection, const struct event *event)
{
    struct buffer text = BUFFER_INIT;

    if (collection == JETSTREAM_FOLLOW)
        jetstream_append_key(event->view.target, &text);
    else
        buffer_append_decimal(&text, event->view.sample_id);
    return text_take(&text);
}

static uint64_t position_of(const struct event *event)
{
    if (!event->id)
        return sl_id_first_at(clock_wall_ms() - UNLOGGED_BEFORE_MS);
    if (!event->cursor)
        return event->id;
    return event->cursor->group_count > 0 ? event->cursor->groups[0].low : event->cursor->id;
}

static int set_record(json_t *commit, enum jetstream_collection collection,
                      const struct event *event, const json_t *json)
{
    json_t *record = record_of(collection, event, json);
    struct buffer bytes = BUFFER_INIT;
    char cid[CID_TEXT_SIZE];
    int r = record ? dag_cbor_append(record, &bytes) : -ENOMEM;

    if (r == 0) {
        cid_of(CID_DAG_CBOR, buffer_slice(&bytes), cid);
        r = json_object_set(commit, "record", record) |
            json_object_set_new(commit, "cid", json_string(cid));
    }
    json_decref(record);
    buffer_done(&bytes);
    return r;
}

static json_t *commit_of(enum jetstream_collection collection, const struct event *event,
                         const json_t *json)
{
    bool is_created = event->kind == EVENT_POST || event->kind == EVENT_FOLLOW;
    char rev[JETSTREAM_TID_SIZE];
    json_t *commit;

    jetstream_tid(event->id ? event->id : event->view.sample_id, rev);
    commit =
        json_pack("{s:s,s:s,s:s,s:o}", "rev", rev, "operation", is_created ? "create" : "delete",
                  "collection", names_of[collection], "rkey", key_of(collection, event));
    if (commit && is_created && set_record(commit, collection, event, json) < 0) {
        json_decref(commit);
        return NULL;
    }
    return commit;
}

static int append_commit(enum jetstream_collection collection, const struct event *event,
                         uint32_t shards, struct buffer *text)
{
    json_t *json = event_json_read(event), *message = NULL;
    int r = -ENOMEM;

    if (json)
        message = json_pack("{s:o,s:I,s:s,s:o}", "did", did_of(event->view.user), "time_us",
                            (json_int_t)jetstream_time_us(position_of(event), shards), "kind",
                            "commit", "commit", commit_of(collection, event, json));
    if (message)
        r = event_json_append(message, 0, text);
    json_decref(json);
    json_decref(message);
    return r;
}

/* --- users ----------------------------------------------------------------------------------- */

static bool is_created(const json_t *json)
{
    return sl_slice_is(event_json_text(json, "change"), "created");
}

/* An event that does not list the changed members may have changed the login. */
static bool has_new_login(const json_t *json)
{
    const json_t *members = json_object_get(json, "members"), *name;
    size_t i;

    if (!json_is_array(members))
        return true;
    json_array_foreach(members, i, name)
    {
        if (json_is_string(name) && strcmp(json_string_value(name), "login") == 0)
            return true;
    }
    return false;
}

static json_t *handle_of(const json_t *user)
{
    struct buffer text = BUFFER_INIT;

    jetstream_append_handle(event_json_text(user, "login"), &text);
    return text_take(&text);
}

/* NULL: out of memory; null: no message. */
static json_t *body_of_user(const struct event *event, const json_t *json, bool is_account)
{
    const json_int_t sequence = (json_int_t)(event->id ? event->id : event->view.sample_id);
    uint64_t ms = event->id ? sl_id_time_ms(event->id) : clock_wall_ms();

    if (is_account)
        return is_created(json)
                   ? json_pack("{s:b,s:o,s:I,s:o}", "active", true, "did", did_of(event->view.user),
                               "seq", sequence, "time", time_of(ms))
                   : json_null();
    return is_created(json) || has_new_login(json)
               ? json_pack("{s:o,s:o,s:I,s:o}", "did", did_of(event->view.user), "handle",
                           handle_of(json_object_get(json, "user")), "seq", sequence, "time",
                           time_of(ms))
               : json_null();
}

/* With the first of two messages, a client has not reached the event's position yet. */
static int append_user(const struct event *event, bool is_account, uint32_t shards,
                       struct buffer *text)
{
    const char *kind = is_account ? "account" : "identity";
    json_t *json = event_json_read(event);
    json_t *body = json ? body_of_user(event, json, is_account) : NULL, *message;
    uint64_t position = position_of(event);
    int r = body ? 0 : -ENOMEM;

    if (body && !json_is_null(body)) {
        if (!is_account && is_created(json))
            position--;
        message =
            json_pack("{s:o,s:I,s:s,s:O}", "did", did_of(event->view.user), "time_us",
                      (json_int_t)jetstream_time_us(position, shards), "kind", kind, kind, body);
        r = message ? event_json_append(message, 0, text) : -ENOMEM;
        json_decref(message);
    }
    json_decref(json);
    json_decref(body);
    return r;
}

uint64_t jetstream_second(const struct event *event, uint64_t options)
{
    return event->kind == EVENT_USER ? options | JETSTREAM_ACCOUNT : 0;
}

/* --- events ---------------------------------------------------------------------------------- */

int jetstream_render(const struct event *event, uint64_t options, struct buffer *ret_text)
{
    uint32_t max_bytes = (uint32_t)(options >> 16), shards = options >> 8 & 0xff;
    size_t before = ret_text->size;
    int r = 0;

    if (!event_is_for_clients(event))
        return 0;
    if (event->kind == EVENT_USER)
        r = append_user(event, options & JETSTREAM_ACCOUNT, shards, ret_text);
    else if (options & 1u << collection_of(event))
        r = append_commit(collection_of(event), event, shards, ret_text);
    if (r == 0 && max_bytes > 0 && ret_text->size - before > max_bytes)
        ret_text->size = before;
    return r;
}
