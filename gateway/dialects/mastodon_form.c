/* mastodon_form.c - parses the JSON of an event and builds a status.
 *
 * The text becomes HTML: links lead to their URLs; hashtags and mentions have the markup that
 * clients expect, but no link, because there are no pages of users here. */
#include "gateway/dialects/mastodon_form.h"

#include <errno.h>
#include <inttypes.h>

#include "gateway/dialects/event_json.h"
#include "gateway/dialects/text_marks.h"
#include "src/model/id.h"

/* --- HTML ------------------------------------------------------------------------------------ */

static void append_html(struct buffer *html, struct sl_slice text)
{
    for (size_t i = 0; i < text.size; i++) {
        switch (text.data[i]) {
        case '&':
            buffer_append_str(html, "&amp;");
            break;
        case '<':
            buffer_append_str(html, "&lt;");
            break;
        case '>':
            buffer_append_str(html, "&gt;");
            break;
        case '"':
            buffer_append_str(html, "&quot;");
            break;
        case '\n':
            buffer_append_str(html, "<br>");
            break;
        default:
            buffer_append_char(html, text.data[i]);
        }
    }
}

static void append_mark(struct buffer *html, struct sl_slice text, const struct text_mark *mark)
{
    struct sl_slice whole = sl_slice(text.data + mark->from, mark->to - mark->from);
    const char *class = mark->kind == TEXT_MARK_HASHTAG   ? "mention hashtag"
                        : mark->kind == TEXT_MARK_MENTION ? "u-url mention"
                                                          : NULL;

    if (mark->kind == TEXT_MARK_LINK) {
        buffer_append_str(html, "<a href=\"");
        append_html(html, whole);
        buffer_append_str(html, "\" rel=\"nofollow noopener\" target=\"_blank\">");
        append_html(html, whole);
        buffer_append_str(html, "</a>");
    } else if (class) {
        buffer_append_format(html, "<span class=\"%s\">", class);
        append_html(html, whole);
        buffer_append_str(html, "</span>");
    } else {
        append_html(html, whole);
    }
}

static json_t *content_of(struct sl_slice text)
{
    struct text_marks marks = {.text = text};
    struct buffer html = BUFFER_INIT;
    struct text_mark mark;
    size_t at = 0;
    json_t *json;

    buffer_append_str(&html, "<p>");
    while (text_marks_next(&marks, &mark)) {
        append_html(&html, sl_slice(text.data + at, mark.from - at));
        append_mark(&html, text, &mark);
        at = mark.to;
    }
    append_html(&html, sl_slice_from(text, at));
    buffer_append_str(&html, "</p>");
    json = html.failed ? NULL : json_stringn(html.data, html.size);
    buffer_done(&html);
    return json;
}

/* --- a status -------------------------------------------------------------------------------- */

/* The time of sign-up is known for ids that the social core has assigned. */
static json_t *signup_of(struct sl_slice user)
{
    uint64_t id;

    return event_json_time(sl_id_parse(user, &id) == 0 ? sl_id_time_ms(id) : SL_ID_EPOCH_MS);
}

json_t *mastodon_account(struct sl_slice id, struct sl_slice login, struct sl_slice name)
{
    struct sl_slice acct = login.data ? login : id;

    return json_pack(
        "{s:o,s:o,s:o,s:o,s:b,s:b,s:b,s:o,s:s,s:s,s:s,s:s,s:s,s:s,s:i,s:i,s:i,s:[],s:[]}", "id",
        event_json_or_null(id), "username", event_json_or_null(acct), "acct",
        event_json_or_null(acct), "display_name", event_json_or_null(name.data ? name : acct),
        "locked", 0, "bot", 0, "group", 0, "created_at", signup_of(id), "note", "", "url", "",
        "avatar", "", "avatar_static", "", "header", "", "header_static", "", "followers_count", 0,
        "following_count", 0, "statuses_count", 0, "emojis", "fields");
}

static json_t *tag_of(struct sl_slice name)
{
    return json_pack("{s:o,s:s}", "name", event_json_or_null(name), "url", "");
}

/* A text contains only logins. The id is known only for the author of the post being answered. */
static json_t *mention_of(struct sl_slice login, const json_t *reply)
{
    struct sl_slice user = event_json_text(reply, "user");
    bool is_answered = user.data && sl_slice_equal(login, event_json_text(reply, "login"));

    return json_pack("{s:o,s:o,s:o,s:s}", "id", event_json_or_null(is_answered ? user : login),
                     "username", event_json_or_null(login), "acct", event_json_or_null(login),
                     "url", "");
}

/* Adds each tag and each mention once. */
static void add_marks(struct sl_slice text, const json_t *reply, json_t *tags, json_t *mentions)
{
    struct text_marks marks = {.text = text};
    json_t *seen = json_object();
    struct text_mark mark;

    while (text_marks_next(&marks, &mark)) {
        struct sl_slice name = text_mark_name(text, &mark);

        if (json_object_getn(seen, text.data + mark.from, mark.to - mark.from))
            continue;
        json_object_setn_new(seen, text.data + mark.from, mark.to - mark.from, json_true());
        if (mark.kind == TEXT_MARK_HASHTAG)
            json_array_append_new(tags, tag_of(name));
        else if (mark.kind == TEXT_MARK_MENTION)
            json_array_append_new(mentions, mention_of(name, reply));
    }
    json_decref(seen);
}

static bool is_direct(const json_t *post)
{
    return sl_slice_starts_with(event_json_text(post, "audience"), SL_SLICE("only"));
}

static const char *visibility_of(const json_t *post)
{
    struct sl_slice audience = event_json_text(post, "audience");

    if (!audience.data || sl_slice_is(audience, "public"))
        return "public";
    return is_direct(post) ? "direct" : "private";
}

/* The kind of media is known only if the application has set `type`. */
static const char *media_type_of(const json_t *media)
{
    static const char *const types[] = {"image", "gifv", "video", "audio"};
    struct sl_slice type = event_json_text(media, "type");

    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (sl_slice_is(type, types[i]))
            return types[i];
    }
    return "unknown";
}

static json_t *attachments_of(const json_t *post)
{
    struct sl_slice id = event_json_text(post, "id");
    json_t *attachments = json_array();
    const json_t *media;
    size_t i;

    json_array_foreach(json_object_get(post, "media"), i, media)
    {
        struct sl_slice url = event_json_text(media, "url");

        json_array_append_new(
            attachments,
            json_pack("{s:o,s:s,s:o,s:o,s:n,s:{},s:o,s:n}", "id",
                      json_sprintf("%.*s-%zu", SL_SLICE_ARG(id), i), "type", media_type_of(media),
                      "url", event_json_or_null(url), "preview_url", event_json_or_null(url),
                      "remote_url", "meta", "description",
                      event_json_or_null(event_json_text(media, "description")), "blurhash"));
    }
    return attachments;
}

static json_t *status_of(const json_t *post);

/* Of a repeated post only its id and author are known, so the status has no content. */
static json_t *reblog_of(const json_t *reference)
{
    struct sl_slice id = event_json_text(reference, "post"),
                    user = event_json_text(reference, "user");
    json_t *post, *status;

    if (!id.data || !user.data)
        return json_null();
    post = json_pack("{s:o,s:{s:o,s:o}}", "id", event_json_or_null(id), "user", "id",
                     event_json_or_null(user), "login",
                     event_json_or_null(event_json_text(reference, "login")));
    status = post ? status_of(post) : NULL;
    json_decref(post);
    return status;
}

static json_t *status_of(const json_t *post)
{
    const json_t *user = json_object_get(post, "user"), *reply = json_object_get(post, "reply_to");
    struct sl_slice id = event_json_text(post, "id"), text = event_json_text(post, "text");
    json_t *tags = json_array(), *mentions = json_array();

    add_marks(text, reply, tags, mentions);
    return json_pack("{s:o,s:o,s:o,s:o,s:b,s:s,s:s,s:o,s:o,s:n,s:i,s:i,s:i,s:o,s:o,s:o,s:o,s:o,s:"
                     "o,s:[],s:n,s:n}",
                     "id", event_json_or_null(id), "created_at",
                     event_json_time(event_json_post_ms(post)), "in_reply_to_id",
                     event_json_or_null(event_json_text(reply, "post")), "in_reply_to_account_id",
                     event_json_or_null(event_json_text(reply, "user")), "sensitive", 0,
                     "spoiler_text", "", "visibility", visibility_of(post), "language",
                     event_json_or_null(event_json_text(post, "lang")), "uri",
                     json_sprintf("urn:sluice:post:%.*s", SL_SLICE_ARG(id)), "url", "replies_count",
                     0, "reblogs_count", 0, "favourites_count", 0, "content", content_of(text),
                     "reblog", reblog_of(json_object_get(post, "repost_of")), "account",
                     mastodon_account(event_json_text(user, "id"), event_json_text(user, "login"),
                                      event_json_text(user, "name")),
                     "media_attachments", attachments_of(post), "mentions", mentions, "tags", tags,
                     "emojis", "card", "poll");
}

/* --- events ---------------------------------------------------------------------------------- */

/* The name of the event in Mastodon; NULL: it is not sent. */
static const char *name_of(const struct event *event, const json_t *json, uint64_t options)
{
    const json_t *post = json_object_get(json, "post");
    bool is_post = event->kind == EVENT_POST;

    if (options & MASTODON_DIRECT)
        return is_post && is_direct(post) ? "conversation" : NULL;
    if (is_post && options & MASTODON_MEDIA_ONLY &&
        json_array_size(json_object_get(post, "media")) == 0)
        return NULL;
    return is_post ? "update" : "delete";
}

/* Of a conversation only one post for named users is known. */
static json_t *conversation_of(const json_t *post)
{
    json_t *status = status_of(post);

    return json_pack("{s:O,s:b,s:[O],s:o}", "id", json_object_get(status, "id"), "unread", 1,
                     "accounts", json_object_get(status, "account"), "last_status", status);
}

/* JSON, or the id of the deleted post. */
static int append_payload(const struct event *event, const json_t *json, uint64_t options,
                          struct buffer *text)
{
    const json_t *post = json_object_get(json, "post");
    json_t *payload;
    int r;

    if (event->kind == EVENT_DELETE) {
        buffer_append_slice(text, event_json_text(post, "id"));
        return 0;
    }
    payload = options & MASTODON_DIRECT ? conversation_of(post) : status_of(post);
    r = payload ? event_json_append(payload, 0, text) : -ENOMEM;
    json_decref(payload);
    return r;
}

static void append_block(const struct event *event, const char *name, struct sl_slice payload,
                         struct buffer *text)
{
    buffer_append_format(text, "event: %s\n", name);
    if (event->id)
        buffer_append_format(text, "id: %" PRIu64 "\n", event->id);
    buffer_append_str(text, "data: ");
    buffer_append_slice(text, payload);
    buffer_append_str(text, "\n\n");
}

static void append_object(const char *name, struct sl_slice payload, struct buffer *text)
{
    buffer_append_format(text, "{\"event\":\"%s\",\"payload\":", name);
    buffer_append_json_string(text, payload);
    buffer_append_char(text, '}');
}

static int append_event(const struct event *event, const json_t *json, uint64_t options,
                        struct buffer *text)
{
    const char *name = name_of(event, json, options);
    struct buffer payload = BUFFER_INIT;
    int r;

    if (!name)
        return 0;
    r = append_payload(event, json, options, &payload);
    if (r == 0 && options & MASTODON_ON_WEBSOCKET)
        append_object(name, buffer_slice(&payload), text);
    else if (r == 0)
        append_block(event, name, buffer_slice(&payload), text);
    if (payload.failed || text->failed)
        r = -ENOMEM;
    buffer_done(&payload);
    return r;
}

int mastodon_render(const struct event *event, uint64_t options, struct buffer *ret_text)
{
    json_t *json;
    int r;

    if ((event->kind != EVENT_POST && event->kind != EVENT_DELETE) || options & MASTODON_SILENT)
        return 0;
    json = event_json_read(event);
    if (!json)
        return -ENOMEM;
    r = append_event(event, json, options, ret_text);
    json_decref(json);
    return r;
}
