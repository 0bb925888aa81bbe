/* twitter2_fields.c - a table of names for each of these parameters.
 *
 * The tables are from X's own description of its API. A name stands for bits, or none; so a request
 * is one number, and clients with equal numbers share the rendered events. */
#include "gateway/dialects/twitter2_fields.h"

#include <errno.h>

#include "base/buffer.h"

struct name {
    const char *name;
    uint64_t options; /* 0: X has it, we do not */
};

#define BIT(option) (UINT64_C(1) << TWITTER2_##option)

static const struct name expansions[] = {
    {"article.cover_media", 0},
    {"article.media_entities", 0},
    {"attachments.media_keys", BIT(WITH_MEDIA) | BIT(ATTACHMENTS)},
    {"attachments.media_source_tweet", 0},
    {"attachments.poll_ids", 0},
    {"author_id", BIT(WITH_AUTHOR) | BIT(AUTHOR_ID)},
    {"edit_history_tweet_ids", 0},
    {"entities.mentions.username", BIT(WITH_MENTIONED) | BIT(ENTITIES)},
    {"entities.note.mentions.username", 0},
    {"geo.place_id", BIT(WITH_PLACE) | BIT(GEO)},
    {"in_reply_to_user_id", BIT(WITH_REPLIED_TO) | BIT(IN_REPLY_TO_USER_ID)},
    {"referenced_tweets.id", BIT(REFERENCED_TWEETS)},
    {"referenced_tweets.id.attachments.media_keys", BIT(REFERENCED_TWEETS)},
    {"referenced_tweets.id.author_id", BIT(WITH_REFERENCED_AUTHORS) | BIT(REFERENCED_TWEETS)},
};

static const struct name media_fields[] = {
    {"alt_text", BIT(MEDIA_ALT_TEXT)},
    {"duration_ms", BIT(MEDIA_DURATION_MS)},
    {"height", BIT(MEDIA_HEIGHT)},
    {"media_key", 0}, /* always included, like `type` */
    {"non_public_metrics", 0},
    {"organic_metrics", 0},
    {"preview_image_url", BIT(MEDIA_PREVIEW_IMAGE_URL)},
    {"promoted_metrics", 0},
    {"public_metrics", 0},
    {"type", 0},
    {"url", BIT(MEDIA_URL)},
    {"variants", BIT(MEDIA_VARIANTS)},
    {"width", BIT(MEDIA_WIDTH)},
};

static const struct name place_fields[] = {
    {"contained_within", 0},
    {"country", BIT(PLACE_COUNTRY)},
    {"country_code", BIT(PLACE_COUNTRY_CODE)},
    {"full_name", 0}, /* always included, like `id` */
    {"geo", BIT(PLACE_GEO)},
    {"id", 0},
    {"name", BIT(PLACE_NAME)},
    {"place_type", BIT(PLACE_TYPE)},
};

static const struct name poll_fields[] = {
    {"duration_minutes", 0}, {"end_datetime", 0}, {"id", 0}, {"options", 0}, {"voting_status", 0},
};

static const struct name tweet_fields[] = {
    {"article", 0},
    {"attachments", BIT(ATTACHMENTS)},
    {"author_id", BIT(AUTHOR_ID)},
    {"card_uri", 0},
    {"community_id", 0},
    {"context_annotations", 0},
    {"conversation_id", BIT(CONVERSATION_ID)},
    {"created_at", BIT(CREATED_AT)},
    {"display_text_range", BIT(DISPLAY_TEXT_RANGE)},
    {"edit_controls", BIT(EDIT_CONTROLS)},
    {"edit_history_tweet_ids", 0}, /* always included, like `id` and `text` */
    {"entities", BIT(ENTITIES)},
    {"geo", BIT(GEO)},
    {"id", 0},
    {"in_reply_to_user_id", BIT(IN_REPLY_TO_USER_ID)},
    {"lang", BIT(LANG)},
    {"matched_media_notes", 0},
    {"media_metadata", 0},
    {"non_public_metrics", 0},
    {"note_request_suggestions", 0},
    {"note_tweet", 0},
    {"organic_metrics", 0},
    {"paid_partnership", 0},
    {"possibly_sensitive", 0},
    {"promoted_metrics", 0},
    {"public_metrics", BIT(PUBLIC_METRICS)},
    {"referenced_tweets", BIT(REFERENCED_TWEETS)},
    {"reply_settings", BIT(REPLY_SETTINGS)},
    {"scopes", 0},
    {"source", BIT(SOURCE)},
    {"suggested_source_links", 0},
    {"suggested_source_links_with_counts", 0},
    {"text", 0},
    {"withheld", 0},
};

static const struct name user_fields[] = {
    {"affiliation", 0},
    {"confirmed_email", 0},
    {"connection_status", 0},
    {"created_at", 0},
    {"description", 0},
    {"entities", 0},
    {"id", 0}, /* always included, like `name` and `username` */
    {"is_identity_verified", 0},
    {"location", 0},
    {"most_recent_tweet_id", 0},
    {"name", 0},
    {"parody", 0},
    {"pinned_tweet_id", 0},
    {"profile_banner_url", 0},
    {"profile_image_url", 0},
    {"protected", BIT(USER_PROTECTED)},
    {"public_metrics", 0},
    {"receives_your_dm", 0},
    {"subscription", 0},
    {"subscription_type", 0},
    {"url", 0},
    {"username", 0},
    {"verified", BIT(USER_VERIFIED)},
    {"verified_followers_count", 0},
    {"verified_type", BIT(USER_VERIFIED_TYPE)},
    {"withheld", 0},
};

#define NAMES(of) of, sizeof(of) / sizeof(of[0])

static const struct {
    const char *parameter;
    const struct name *names;
    size_t count;
} lists[TWITTER2_LISTS] = {
    [TWITTER2_LIST_EXPANSIONS] = {"expansions", NAMES(expansions)},
    [TWITTER2_LIST_MEDIA_FIELDS] = {"media.fields", NAMES(media_fields)},
    [TWITTER2_LIST_PLACE_FIELDS] = {"place.fields", NAMES(place_fields)},
    [TWITTER2_LIST_POLL_FIELDS] = {"poll.fields", NAMES(poll_fields)},
    [TWITTER2_LIST_TWEET_FIELDS] = {"tweet.fields", NAMES(tweet_fields)},
    [TWITTER2_LIST_USER_FIELDS] = {"user.fields", NAMES(user_fields)},
};

const char *twitter2_list_name(enum twitter2_list list)
{
    return lists[list].parameter;
}

static const struct name *find_name(enum twitter2_list list, struct sl_slice text)
{
    for (size_t i = 0; i < lists[list].count; i++) {
        if (sl_slice_is(text, lists[list].names[i].name))
            return &lists[list].names[i];
    }
    return NULL;
}

static int refuse_name(enum twitter2_list list, struct sl_slice text, struct http_refusal *refusal)
{
    struct buffer known = BUFFER_INIT;
    int r;

    for (size_t i = 0; i < lists[list].count; i++)
        buffer_append_format(&known, "%s%s", i ? "," : "", lists[list].names[i].name);
    r = http_refuse(refusal, 400, "bad_fields", lists[list].parameter,
                    "The `%s` query parameter value [%.*s] is not one of [%.*s]",
                    lists[list].parameter, text.size < 80 ? (int)text.size : 80, text.data,
                    SL_SLICE_ARG(buffer_slice(&known)));
    buffer_done(&known);
    return r;
}

int twitter2_fields_read(const struct sl_slice given[static TWITTER2_LISTS], uint64_t *ret_options,
                         struct http_refusal *refusal)
{
    uint64_t options = 0;

    for (enum twitter2_list list = 0; list < TWITTER2_LISTS; list++) {
        struct sl_slice rest = given[list];
        bool is_empty = rest.data && rest.size == 0;

        while (rest.size > 0 || is_empty) {
            struct sl_slice text = http_next_element(&rest, ',');
            const struct name *name = find_name(list, text);

            if (!name)
                return refuse_name(list, text, refusal);
            options |= name->options;
        }
    }
    *ret_options = options;
    return 0;
}
