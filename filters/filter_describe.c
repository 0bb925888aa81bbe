/* filter_describe.c - walks through the condition of a filter and describes each part.
 *
 * A table has the words around the operand of each kind; kinds whose operand is not text have a
 * function. A join within another is put in brackets. The walk stops when the description is long
 * enough, so even the largest filter costs no more than a screenful. The depth is limited by the
 * parser of rules. */
#include "filters/filter_describe.h"

#include <stdbool.h>
#include <string.h>

#include "base/utf8.h"
#include "filters/box.h"
#include "filters/polygon.h"
#include "filters/filter_private.h"
#include "filters/sample.h"

enum { USERS_SHOWN = 10, POINTS_SHOWN = 10 };

struct description {
    struct buffer *words;
    size_t end; /* limit of the description; nothing is begun beyond it */
};

static bool is_full(const struct description *description)
{
    return description->words->failed || description->words->size >= description->end;
}

static void say(struct description *description, const char *text)
{
    buffer_append_str(description->words, text);
}

static void describe(struct description *description, const struct sl_condition *condition);

/* --- joins --- */

static bool is_join(enum sl_condition_kind kind)
{
    return kind == SL_CONDITION_ALL || kind == SL_CONDITION_ANY || kind == SL_CONDITION_NEAR;
}

static void describe_part(struct description *description, const struct sl_condition *part)
{
    if (is_join(part->kind))
        say(description, "(");
    describe(description, part);
    if (is_join(part->kind))
        say(description, ")");
}

static void describe_parts(struct description *description, struct sl_slice rest, const char *join)
{
    struct sl_condition part;
    bool is_first = true;

    while (!is_full(description) && sl_condition_next(&rest, &part)) {
        if (!is_first)
            say(description, join);
        is_first = false;
        describe_part(description, &part);
    }
}

static void describe_not(struct description *description, struct sl_slice operand)
{
    struct sl_condition condition;

    sl_condition_next(&operand, &condition);
    say(description, "not ");
    describe_part(description, &condition);
}

/* --- operands that are not text --- */

/* Tokens with a gap are shown apart; tokens of a place have no gaps. */
static void describe_tokens(struct description *description, struct sl_slice rest, bool is_place)
{
    struct sl_condition_token token;
    bool is_first = true;

    say(description, is_place ? "a place named \"" : "\"");
    while (!is_full(description) && sl_condition_next_token(&rest, &token)) {
        if (!is_first && (token.gap || is_place))
            say(description, " ");
        is_first = false;
        buffer_append_slice(description->words, token.text);
    }
    say(description, "\"");
}

static void describe_users(struct description *description, struct sl_slice operand)
{
    uint32_t count = sl_condition_user_count(operand);
    uint32_t shown = count < USERS_SHOWN ? count : USERS_SHOWN;

    say(description, count == 1 ? "user " : "any of the users ");
    for (uint32_t i = 0; i < shown && !is_full(description); i++) {
        if (i > 0)
            say(description, ", ");
        buffer_append_slice(description->words, sl_condition_user(operand, i));
    }
    if (shown < count)
        buffer_append_format(description->words, " and %u more", count - shown);
    say(description, " (their posts, replies to and reposts of them)");
}

static void describe_url(struct description *description, struct sl_slice operand)
{
    struct sl_slice host, path;

    sl_condition_read_url(operand, &host, &path);
    say(description, "a link to ");
    buffer_append_slice(description->words, host);
    buffer_append_slice(description->words, path);
}

static void describe_box(struct description *description, struct sl_slice operand)
{
    struct sl_box box;

    memcpy(&box, operand.data, sizeof(box));
    buffer_append_format(description->words, "longitude %.7g to %.7g and latitude %.7g to %.7g",
                         box.west, box.east, box.south, box.north);
}

static void describe_circle(struct description *description, struct sl_slice operand)
{
    struct sl_circle circle;

    memcpy(&circle, operand.data, sizeof(circle));
    buffer_append_format(description->words, "within %.7g km of longitude %.7g, latitude %.7g",
                         circle.radius_km, circle.centre.lon, circle.centre.lat);
}

static void describe_near(struct description *description, struct sl_slice operand)
{
    unsigned between;

    describe_parts(description, sl_condition_near_terms(operand, &between), ", ");
    if (between == 0)
        say(description, " side by side in any order");
    else
        buffer_append_format(description->words,
                             " near each other, at most %u other word%s between", between,
                             between == 1 ? "" : "s");
}

static void describe_polygon(struct description *description, struct sl_slice operand)
{
    struct sl_polygon polygon = sl_polygon_read(operand);
    uint32_t shown = polygon.point_count < POINTS_SHOWN ? polygon.point_count : POINTS_SHOWN;

    say(description, "the polygon");
    for (uint32_t i = 0; i < shown && !is_full(description); i++) {
        struct sl_point point = sl_polygon_point(&polygon, i);

        buffer_append_format(description->words, "%s %.7g %.7g", i > 0 ? "," : "",
                             point.lon > 180 ? point.lon - 360 : point.lon, point.lat);
    }
    if (shown < polygon.point_count)
        buffer_append_format(description->words, " and %u more points",
                             polygon.point_count - shown);
}

static void describe_trait(struct description *description, struct sl_slice operand)
{
    static const char *const traits[] = {
        [SL_TRAIT_HASHTAGS] = "a hashtag",  [SL_TRAIT_MENTIONS] = "a mention",
        [SL_TRAIT_CASHTAGS] = "a cashtag",  [SL_TRAIT_LINKS] = "a link",
        [SL_TRAIT_MEDIA] = "media",         [SL_TRAIT_GEO] = "a point or place on the map",
        [SL_TRAIT_REPLY] = "being a reply", [SL_TRAIT_REPOST] = "being a repost",
        [SL_TRAIT_QUOTE] = "being a quote",
    };

    say(description, traits[(unsigned char)operand.data[0]]);
}

static void describe_share(struct description *description, uint32_t ppm)
{
    buffer_append_format(description->words, "%.7g %% of them",
                         (double)ppm / (SL_SAMPLE_ALL / 100));
}

static void describe_sample(struct description *description, struct sl_slice operand)
{
    uint32_t ppm;

    memcpy(&ppm, operand.data, sizeof(ppm));
    say(description, "being among ");
    describe_share(description, ppm);
}

/* --- one condition --- */

static void describe(struct description *description, const struct sl_condition *condition)
{
    static const char *const before[] = {
        [SL_CONDITION_HASHTAG] = "the hashtag #",
        [SL_CONDITION_MENTION] = "a mention of @",
        [SL_CONDITION_CASHTAG] = "the cashtag $",
        [SL_CONDITION_AUTHOR] = "the author's id ",
        [SL_CONDITION_REPLY_TO] = "a reply to user id ",
        [SL_CONDITION_REPOST_OF] = "a repost of user id ",
        [SL_CONDITION_AUTHOR_LOGIN] = "the author @",
        [SL_CONDITION_REPLY_TO_LOGIN] = "a reply to @",
        [SL_CONDITION_REPOST_OF_LOGIN] = "a repost of @",
        [SL_CONDITION_LANGUAGE] = "language ",
        [SL_CONDITION_COUNTRY] = "country ",
        [SL_CONDITION_SAMPLE] = NULL,
        [SL_CONDITION_VERBATIM] = "exactly ",
    };
    struct sl_slice operand = condition->operand;

    switch (condition->kind) {
    case SL_CONDITION_ANYTHING:
        say(description, "anything");
        break;
    case SL_CONDITION_ALL:
        describe_parts(description, operand, " and ");
        break;
    case SL_CONDITION_ANY:
        describe_parts(description, operand, " or ");
        break;
    case SL_CONDITION_NOT:
        describe_not(description, operand);
        break;
    case SL_CONDITION_WHOLE_WORD:
        say(description, "the whole word ");
        describe_tokens(description, operand, false);
        break;
    case SL_CONDITION_KEYWORD:
    case SL_CONDITION_PLACE:
        describe_tokens(description, operand, condition->kind == SL_CONDITION_PLACE);
        break;
    case SL_CONDITION_USERS:
        describe_users(description, operand);
        break;
    case SL_CONDITION_URL:
        describe_url(description, operand);
        break;
    case SL_CONDITION_BOX:
        describe_box(description, operand);
        break;
    case SL_CONDITION_CIRCLE:
        describe_circle(description, operand);
        break;
    case SL_CONDITION_NEAR:
        describe_near(description, operand);
        break;
    case SL_CONDITION_POLYGON:
        describe_polygon(description, operand);
        break;
    case SL_CONDITION_TRAIT:
        describe_trait(description, operand);
        break;
    case SL_CONDITION_SAMPLE:
        describe_sample(description, operand);
        break;
    default:
        say(description, before[condition->kind]);
        buffer_append_slice(description->words, operand);
        break;
    }
}

/* --- the filter --- */

void sl_filter_describe_types(unsigned types, struct buffer *words)
{
    static const char *const names[] = {
        [SL_EVENT_POST] = "posts",
        [SL_EVENT_DELETE] = "deletions",
        [SL_EVENT_FOLLOW] = "follows",
        [SL_EVENT_UNFOLLOW] = "unfollows",
        [SL_EVENT_USER] = "changes of users",
    };
    unsigned said = 0;

    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (!(types & 1u << i))
            continue;
        if (said)
            buffer_append_str(words, (types & ~said) == 1u << i ? " and " : ", ");
        buffer_append_str(words, names[i]);
        said |= 1u << i;
    }
}

static void describe_condition(struct description *description, struct sl_slice bytes)
{
    struct sl_condition condition;

    sl_condition_next(&bytes, &condition);
    if (condition.kind == SL_CONDITION_ANYTHING) {
        say(description, ", all");
        return;
    }
    say(description, " with ");
    describe(description, &condition);
}

static void describe_partition(struct description *description, const struct sl_filter_view *view)
{
    const char *before = "; part ";

    for (uint32_t part = 0; part < view->parts && !is_full(description); part++) {
        if (!(view->chosen[part / 8] & 1u << part % 8))
            continue;
        buffer_append_format(description->words, "%s%u", before, part + 1);
        before = ", ";
    }
    buffer_append_format(description->words, " of %u", view->parts);
}

static void describe_restrictors(struct description *description, const struct sl_filter_view *view)
{
    struct sl_slice languages = view->languages;
    struct sl_condition condition;

    if (sl_condition_next(&languages, &condition)) {
        say(description, "; only in ");
        describe(description, &condition);
    }
    if (view->sample_ppm < SL_SAMPLE_ALL) {
        say(description, "; ");
        describe_share(description, view->sample_ppm);
    }
    if (view->parts > 1)
        describe_partition(description, view);
}

void sl_filter_describe(const struct sl_filter *filter, size_t max_bytes, struct buffer *words)
{
    struct sl_filter_view view = sl_filter_view(filter);
    struct description description = {words, words->size + max_bytes};
    size_t begin = words->size;

    sl_filter_describe_types(view.types, words);
    describe_condition(&description, view.condition);
    describe_restrictors(&description, &view);
    if (words->failed || words->size <= description.end)
        return;
    words->size =
        begin + utf8_cut(sl_slice(words->data + begin, words->size - begin), max_bytes).size;
    say(&description, "...");
}
