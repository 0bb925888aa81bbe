/* twitter2_rule_text.c - translates item by item; what both languages share is copied byte for
 * byte.
 *
 * An item is a parenthesis, a quoted phrase, or a word up to white space, a parenthesis or a quote;
 * an operator includes the quote or bracket after its colon. Our own parser combines the items, and
 * refuses invalid combinations. */
#include "gateway/dialects/twitter2_rule_text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <strings.h>

#include "base/utf8.h"
#include "filters/scan.h"

enum { NAME_MAX_BYTES = 32, SHOWN_MAX_BYTES = 64 };

/* Names with the same meaning; `values`: if the operator accepts only certain words, X's and
 * ours. */
struct word_pair {
    const char *theirs, *ours;
};

static const struct word_pair has_values[] = {
    {"hashtags", "hashtags"},
    {"mentions", "mentions"},
    {"cashtags", "cashtags"},
    {"links", "links"},
    {"media", "media"},
    {"geo", "geo"},
    {NULL, NULL},
};

static const struct word_pair is_values[] = {
    {"retweet", "repost"}, {"reply", "reply"}, {"quote", "quote"}, {NULL, NULL}};

static const struct {
    const char *name, *ours;
    const struct word_pair *values;
} operators[] = {
    {"from", "from", NULL},
    {"to", "to", NULL},
    {"retweets_of", "repost_of", NULL},
    {"url", "url", NULL},
    {"lang", "lang", NULL},
    {"place", "place", NULL},
    {"place_country", "country", NULL},
    {"point_radius", "point_radius", NULL},
    {"bounding_box", "bounding_box", NULL},
    {"has", "has", has_values},
    {"is", "is", is_values},
    {"sample", "sample", NULL},
};

struct translation {
    struct sl_slice all, rest;
    struct buffer *out;
    char *detail;
};

static int refuse(struct translation *translation, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Adds the position of the next item to the message. */
static int refuse(struct translation *translation, const char *format, ...)
{
    size_t before = (size_t)(translation->rest.data - translation->all.data);
    char text[TWITTER2_DETAIL_SIZE - 32];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    snprintf(translation->detail, TWITTER2_DETAIL_SIZE, "%s (at position %zu)", text,
             sl_scan_length(sl_slice(translation->all.data, before)) + 1);
    return -EINVAL;
}

static bool next_is(const struct translation *translation, char c)
{
    return translation->rest.size > 0 && translation->rest.data[0] == c;
}

static void copy(struct translation *translation, size_t size)
{
    buffer_append(translation->out, translation->rest.data, size);
    translation->rest = sl_slice_from(translation->rest, size);
}

/* The text up to white space, a parenthesis or a quote. */
static struct sl_slice next_word(const struct translation *translation)
{
    struct sl_slice rest = translation->rest;
    size_t size = 0;

    while (size < rest.size && !memchr("()\"", rest.data[size], 3) &&
           sl_scan_space(sl_slice_from(rest, size)) == 0)
        size++;
    return sl_slice(rest.data, size);
}

/* In a phrase, an escaped quote separates words like white space. */
static int take_phrase(struct translation *translation)
{
    struct sl_slice rest = translation->rest;
    size_t end = 1;

    while (end < rest.size && rest.data[end] != '"')
        end += rest.data[end] == '\\' && end + 1 < rest.size ? 2 : 1;
    if (end >= rest.size)
        return refuse(translation, "The quote is not closed");
    buffer_append_char(translation->out, '"');
    for (size_t i = 1; i < end; i++) {
        bool is_escape = rest.data[i] == '\\' && i + 1 < end && rest.data[i + 1] == '"';

        buffer_append_char(translation->out, is_escape ? ' ' : rest.data[i]);
        i += is_escape;
    }
    buffer_append_char(translation->out, '"');
    translation->rest = sl_slice_from(rest, end + 1);
    if (next_is(translation, '~'))
        copy(translation, next_word(translation).size);
    return 0;
}

static int take_brackets(struct translation *translation)
{
    const char *end = memchr(translation->rest.data, ']', translation->rest.size);

    if (!end)
        return refuse(translation, "The bracket is not closed");
    copy(translation, (size_t)(end - translation->rest.data) + 1);
    return 0;
}

static bool is_word(struct sl_slice text, const char *word)
{
    return text.size == strlen(word) && strncasecmp(text.data, word, text.size) == 0;
}

/* The length of a name followed by a colon; 0: not an operator. */
static size_t name_size(struct sl_slice word)
{
    size_t size = 0;

    while (size < word.size && size <= NAME_MAX_BYTES &&
           ((word.data[size] >= 'a' && word.data[size] <= 'z') ||
            (word.data[size] >= 'A' && word.data[size] <= 'Z') || word.data[size] == '_'))
        size++;
    return size < word.size && word.data[size] == ':' ? size : 0;
}

static int take_value(struct translation *translation, struct sl_slice name,
                      const struct word_pair *values)
{
    struct sl_slice value = next_word(translation);

    for (; values->theirs; values++) {
        if (!is_word(value, values->theirs))
            continue;
        buffer_append_str(translation->out, values->ours);
        translation->rest = sl_slice_from(translation->rest, value.size);
        return 0;
    }
    return refuse(translation,
                  "Reference to invalid operator '%.*s:%.*s'. Operator is not available",
                  SL_SLICE_ARG(name), SL_SLICE_ARG(utf8_cut(value, SHOWN_MAX_BYTES)));
}

static int take_operator(struct translation *translation, struct sl_slice name)
{
    size_t i = 0;

    while (i < sizeof(operators) / sizeof(operators[0]) && !is_word(name, operators[i].name))
        i++;
    if (i == sizeof(operators) / sizeof(operators[0]))
        return refuse(translation,
                      "Reference to invalid operator '%.*s'. Operator is not available",
                      SL_SLICE_ARG(name));
    buffer_append_str(translation->out, operators[i].ours);
    buffer_append_char(translation->out, ':');
    translation->rest = sl_slice_from(translation->rest, name.size + 1);
    if (operators[i].values)
        return take_value(translation, name, operators[i].values);
    if (next_is(translation, '"'))
        return take_phrase(translation);
    if (next_is(translation, '['))
        return take_brackets(translation);
    if (next_word(translation).size == 0)
        return refuse(translation, "Nothing follows '%.*s:'", SL_SLICE_ARG(name));
    copy(translation, next_word(translation).size);
    return 0;
}

static int take_word(struct translation *translation)
{
    struct sl_slice word = next_word(translation);
    size_t size = name_size(word);

    if (size > 0)
        return take_operator(translation, sl_slice(word.data, size));
    if (is_word(word, "and"))
        return refuse(translation, "Ambiguous use of and as a keyword. Use a space to join two "
                                   "clauses, or \"and\" to find the word");
    if (is_word(word, "or") && !sl_slice_is(word, "OR"))
        return refuse(translation, "Ambiguous use of or as a keyword. Use OR to join two clauses, "
                                   "or \"or\" to find the word");
    copy(translation, word.size);
    return 0;
}

static int take_item(struct translation *translation)
{
    size_t space = sl_scan_space(translation->rest);

    if (space > 0 || next_is(translation, '(') || next_is(translation, ')')) {
        copy(translation, space > 0 ? space : 1);
        return 0;
    }
    if (next_is(translation, '-')) {
        copy(translation, 1);
        if (next_is(translation, '('))
            return refuse(translation, "A group cannot be negated. Negate each of its clauses");
        if (translation->rest.size == 0 || sl_scan_space(translation->rest) > 0)
            return refuse(translation, "Nothing follows the minus");
    }
    return next_is(translation, '"') ? take_phrase(translation) : take_word(translation);
}

int twitter2_rule_translate(struct sl_slice value, struct buffer *ret_rule,
                            char ret_detail[static TWITTER2_DETAIL_SIZE])
{
    struct translation translation = {value, value, ret_rule, ret_detail};
    size_t length = sl_scan_length(value);
    int r = 0;

    if (length > TWITTER2_RULE_MAX) {
        snprintf(ret_detail, TWITTER2_DETAIL_SIZE,
                 "A rule has at most %d characters, and this one %zu", TWITTER2_RULE_MAX, length);
        return -EINVAL;
    }
    while (r == 0 && translation.rest.size > 0)
        r = take_item(&translation);
    return r;
}

int twitter2_rule_filter(struct sl_slice value, const struct sl_filter_limits *limits,
                         struct sl_filter **ret_filter,
                         char ret_detail[static TWITTER2_DETAIL_SIZE])
{
    struct buffer rule = BUFFER_INIT;
    struct sl_filter_error error;
    int r = twitter2_rule_translate(value, &rule, ret_detail);

    if (r == 0 && rule.failed)
        r = -ENOMEM;
    if (r == 0) {
        const struct sl_filter_text text = {.rule = buffer_slice(&rule), .types = SL_SLICE("post")};

        r = sl_filter_new(&text, limits, ret_filter, &error);
        if (r == -EINVAL)
            snprintf(ret_detail, TWITTER2_DETAIL_SIZE, "%s", error.message);
    }
    buffer_done(&rule);
    return r;
}
