/* filter_fault.c - a table of all errors, and the message that shows the position.
 *
 *     unknown operator 'colour:' at character 5: tea ^colour:red; to look for such a word, quote it
 *
 * The message is made only when something is refused; until then a parse keeps only pointers. */
#include "filters/filter_fault.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "filters/scan.h"

enum { SHOWN_CHARACTERS = 24 }; /* of an item, and of a rule on each side of the error */

/* What is wrong, and a hint unless that already says what would be right. */
static const struct {
    const char *code, *message, *hint;
    int status;
} faults[] = {
    [SL_FAULT_EMPTY_TRACK] = {"empty_track", "track has no phrase", NULL, 400},
    [SL_FAULT_TOO_MANY_PHRASES] = {"too_many_phrases", "too many track phrases", NULL, 413},
    [SL_FAULT_PHRASE_TOO_LONG] = {"phrase_too_long", "track phrase longer than 60 characters", NULL,
                                  413},
    [SL_FAULT_WILDCARD] = {"wildcard", "there are no wildcards and no fuzzy search",
                           "write each word, or quote the text in a rule", 400},
    [SL_FAULT_EMPTY_KEYWORD] = {"empty_keyword", "keyword has no letter, digit or emoji", NULL,
                                400},
    [SL_FAULT_EMPTY_FOLLOW] = {"empty_follow", "follow has no user", NULL, 400},
    [SL_FAULT_TOO_MANY_USERS] = {"too_many_users", "too many users", NULL, 413},
    [SL_FAULT_BAD_FOLLOW] = {"bad_follow", "follow item is neither an id nor a login", NULL, 400},
    [SL_FAULT_BAD_LOCATIONS] = {"bad_locations", "locations needs 4 numbers per box",
                                "west,south,east,north in degrees", 400},
    [SL_FAULT_TOO_MANY_BOXES] = {"too_many_boxes", "too many boxes", NULL, 413},
    [SL_FAULT_BAD_NUMBER] = {"bad_number", "not a decimal number", NULL, 400},
    [SL_FAULT_BAD_BOX] = {"bad_box", "box out of range, or its north is below its south",
                          "a box is west, south, east, north in degrees", 400},
    [SL_FAULT_EMPTY_RULE] = {"empty_rule", "rule is empty", NULL, 400},
    [SL_FAULT_RULE_TOO_LONG] = {"rule_too_long", "rule longer than 1024 characters",
                                "or than 4096 with the points of its polygons", 413},
    [SL_FAULT_MISSING_TERM] = {"syntax", "a term is missing",
                               "a word, a \"phrase\", an operator such as from:ada, or several "
                               "of these in ( ) is expected there",
                               400},
    [SL_FAULT_MISSING_TERM_BEFORE] =
        {"syntax", "a term is missing",
         "OR and AND need a term on both sides; to look for such a word, quote it", 400},
    [SL_FAULT_NEGATED_TWICE] = {"syntax", "- stands twice",
                                "one is enough, directly before the term", 400},
    [SL_FAULT_UNCLOSED_GROUP] = {"syntax", "closing parenthesis missing", NULL, 400},
    [SL_FAULT_UNOPENED_GROUP] = {"syntax", "there is no open parenthesis to close", NULL, 400},
    [SL_FAULT_UNCLOSED_QUOTE] = {"unclosed_quote", "closing quote missing", NULL, 400},
    [SL_FAULT_UNCLOSED_BRACKET] = {"unclosed_bracket", "closing bracket missing", NULL, 400},
    [SL_FAULT_UNKNOWN_OPERATOR] = {"unknown_operator", "unknown operator",
                                   "to look for such a word, quote it", 400},
    [SL_FAULT_EMPTY_OPERAND] = {"empty_operand", "operator has no operand",
                                "write it directly after the colon", 400},
    [SL_FAULT_NEAR_TERMS] = {"bad_proximity",
                             "~ needs two to eight words in the quotes, with white space between",
                             NULL, 400},
    [SL_FAULT_NEAR_WORDS] = {"bad_proximity", "~ needs at most 64 words in the quotes",
                             "each character of a script without spaces counts as one", 400},
    [SL_FAULT_NEAR_BETWEEN] = {"bad_proximity", "not a number from 0 to 6",
                               "it says how many other words may be between, as in "
                               "\"night train\"~3",
                               400},
    [SL_FAULT_BAD_OPERAND] =
        {"bad_operand", "brackets belong to bounding_box, point_radius and polygon, and only there",
         NULL, 400},
    [SL_FAULT_BAD_USER] = {"bad_user", "operand is not a user", NULL, 400},
    [SL_FAULT_BAD_URL] = {"bad_url", "not a host", NULL, 400},
    [SL_FAULT_BAD_HAS] = {"bad_has", "unknown has:",
                          "there are hashtags, mentions, cashtags, links, media, geo", 400},
    [SL_FAULT_BAD_IS] = {"bad_is", "unknown is:", "there are reply, repost, quote", 400},
    [SL_FAULT_BAD_COUNTRY] = {"bad_country", "not a country code", "two letters, as in FR", 400},
    [SL_FAULT_BAD_RADIUS] = {"bad_radius", "not a valid radius",
                             "as in [8.5 47.4 25km]: longitude, latitude, km or mi up to 500 km",
                             400},
    [SL_FAULT_POLYGON_POINTS] = {"bad_polygon", "polygon needs 3 to 100 points",
                                 "they are separated by commas: lon lat, lon lat", 400},
    [SL_FAULT_BAD_POINT] =
        {"bad_polygon", "not a point on the globe",
         "a point is longitude and latitude, in degrees, with white space between", 400},
    [SL_FAULT_POLYGON_FLAT] = {"bad_polygon", "the points of this polygon are all on one line",
                               NULL, 400},
    [SL_FAULT_POLYGON_ROUND] = {"bad_polygon", "polygon goes round a pole, or round the globe",
                                "to include a pole, add points at latitude 90 or -90 that go "
                                "there and back",
                                400},
    [SL_FAULT_TOO_DEEP] = {"too_deep", "too many nested parentheses", NULL, 413},
    [SL_FAULT_TOO_MANY_ATOMS] = {"too_many_atoms", "too many terms", NULL, 413},
    [SL_FAULT_SAMPLE_PLACEMENT] = {"sample_placement", "sample: must be a top-level AND operand",
                                   NULL, 400},
    [SL_FAULT_RULE_TOO_BROAD] =
        {"rule_too_broad", "rule needs at least one keyword, entity, user, url, place or area",
         "lang: and country: alone are enough for counts and with max_rate", 400},
    [SL_FAULT_BAD_LANGUAGE] = {"bad_language",
                               "malformed language range [a-z]{2,8}(-[a-z0-9]{1,8})*",
                               "as in en or zh-TW", 400},
    [SL_FAULT_BAD_SAMPLE] = {"bad_sample", "sample must be above 0 and at most 100", NULL, 400},
    [SL_FAULT_BAD_PARTITION] = {"bad_partition",
                                "partition must be k/n, or k,k/n for several of n parts", NULL,
                                400},
    [SL_FAULT_BAD_TYPES] = {"bad_types", "unknown event type",
                            "the types are post, delete, follow, unfollow, user", 400},
    [SL_FAULT_NO_SELECTOR] = {"no_selector", "filter selects nothing",
                              "it needs one of track, follow, locations, rule, firehose, sample, "
                              "partition",
                              400},
    [SL_WARNING_OPERATOR_IN_RULE] = {"operator_word", "looked for as a word",
                                     "the operators are OR, AND, and - for not", 0},
    [SL_WARNING_OPERATOR_IN_TRACK] = {"operator_word", "looked for as a word",
                                      "phrases of track are separated by commas", 0},
    [SL_WARNING_BOX_AT_SEA] = {"box_at_sea", "there is no land in this box",
                               "a box is west, south, east, north in degrees", 0},
    [SL_WARNING_UNKNOWN_LANGUAGE] = {"unknown_language", "not the code of a language", NULL, 0},
};

static bool is_continuation(char c)
{
    return ((unsigned char)c & 0xC0) == 0x80;
}

/* Removes a partial character at the end. */
static void cut_character(struct sl_filter_error *error)
{
    size_t size = strlen(error->message), at = size;

    while (at > 0 && is_continuation(error->message[at - 1]))
        at--;
    if (at > 0 && (unsigned char)error->message[at - 1] >= 0xC0)
        error->message[at - 1] = '\0';
    else
        error->message[size] = '\0';
}

void sl_filter_error_add(struct sl_filter_error *error, const char *format, ...)
{
    size_t used = strlen(error->message), room = sizeof(error->message) - used;
    va_list arguments;
    int size;

    va_start(arguments, format);
    size = vsnprintf(error->message + used, room, format, arguments);
    va_end(arguments);
    if (size >= 0 && (size_t)size >= room)
        cut_character(error);
}

static struct sl_slice last_characters(struct sl_slice text, size_t max)
{
    size_t size = 0;

    for (size_t count = 0; size < text.size && count < max; size++)
        count += !is_continuation(text.data[text.size - size - 1]);
    return sl_slice_from(text, text.size - size);
}

/* Appends text with white space and control characters as blanks. */
static void add_text(struct sl_filter_error *error, struct sl_slice text)
{
    size_t used = strlen(error->message);

    sl_filter_error_add(error, "%.*s", SL_SLICE_ARG(text));
    for (char *at = error->message + used; *at; at++) {
        if ((unsigned char)*at < ' ' || *at == 0x7F)
            *at = ' ';
    }
}

static void add_item(struct sl_filter_error *error, struct sl_slice item)
{
    struct sl_slice shown = sl_scan_first(item, SHOWN_CHARACTERS);

    sl_filter_error_add(error, " '");
    add_text(error, shown);
    sl_filter_error_add(error, shown.size < item.size ? "...'" : "'");
}

static void add_position(struct sl_filter_error *error, struct sl_slice rule, const char *at)
{
    struct sl_slice before = sl_slice(rule.data, (size_t)(at - rule.data));
    struct sl_slice behind = sl_slice_from(rule, before.size);
    struct sl_slice left = last_characters(before, SHOWN_CHARACTERS);
    struct sl_slice right = sl_scan_first(behind, SHOWN_CHARACTERS);

    if (behind.size > 0)
        sl_filter_error_add(error, " at character %zu: ", sl_scan_length(before) + 1);
    else
        sl_filter_error_add(error, " at the end: ");
    if (left.size < before.size)
        sl_filter_error_add(error, "...");
    add_text(error, left);
    sl_filter_error_add(error, "^");
    add_text(error, right);
    if (right.size < behind.size)
        sl_filter_error_add(error, "...");
}

/* The position of the error in its member, in characters from 1; 0: it has no position. */
static size_t place_of(const struct sl_filter_position *position)
{
    const char *at = position->is_rule ? position->at : position->item.data;

    if (!at)
        return position->is_rule ? 1 : 0;
    return sl_scan_length(sl_slice(position->value.data, (size_t)(at - position->value.data))) + 1;
}

static void describe(struct sl_filter_error *error, enum sl_filter_fault fault,
                     const struct sl_filter_position *position)
{
    error->code = faults[fault].code;
    error->param = position->param;
    error->status = faults[fault].status;
    error->place = place_of(position);
    error->message[0] = '\0';
    sl_filter_error_add(error, "%s", faults[fault].message);
    if (position->item.data)
        add_item(error, position->item);
    if (position->is_rule && position->at)
        add_position(error, position->value, position->at);
    if (faults[fault].hint)
        sl_filter_error_add(error, "; %s", faults[fault].hint);
}

int sl_filter_refuse(struct sl_filter_error *reterr, enum sl_filter_fault fault,
                     const struct sl_filter_position *position)
{
    if (reterr)
        describe(reterr, fault, position);
    return -EINVAL;
}

struct sl_filter_error *sl_filter_warn(struct sl_filter_warnings *warnings,
                                       enum sl_filter_fault fault,
                                       const struct sl_filter_position *position)
{
    struct sl_filter_error *warning = &warnings->list[warnings->count];

    for (size_t i = 0; i < warnings->count; i++) {
        if (strcmp(warnings->list[i].code, faults[fault].code) == 0)
            return NULL;
    }
    if (warnings->count == SL_FILTER_WARNINGS_MAX)
        return NULL;
    warnings->count++;
    describe(warning, fault, position);
    return warning;
}
