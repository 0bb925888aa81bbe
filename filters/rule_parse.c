/* rule_parse.c - parses rules by recursive descent, from left to right.
 *
 *     rule := and ("OR" and)*
 *     and  := item (["AND"] item)*
 *     item := ["-"] ("(" rule ")" | atom)
 *     atom := '"' text '"' ["~" digit] | operator ":" operand | word
 *
 * There is no lookahead, so that the leftmost of several errors is reported; only what concerns the
 * whole rule is checked at the end. Conditions are appended as they are parsed, and joined when
 * their group ends. */
#include "filters/parse.h"

#include <errno.h>

#include "filters/ascii.h"
#include "filters/rule_operator.h"
#include "filters/scan.h"

/* In characters; without the points of polygons, and with them. */
enum { RULE_MAX_LENGTH = 1024, RULE_MAX_WHOLE_LENGTH = 4096 };
enum { RULE_MAX_DEPTH = 16 };

struct reader {
    struct sl_parse *parse;
    struct sl_slice rest;
    bool allows_wide;
    unsigned depth, atoms;
    bool negated;                          /* the current item */
    bool has_alternatives;                 /* an OR outside of all parentheses */
    const char *sample, *misplaced_sample; /* position of the last one; NULL: there is none */
    const char *excess;                    /* the first atom beyond the limit */
    const char *broad; /* the first alternative outside of all parentheses that has no anchor */
};

/* The operand that follows the name of an operator. */
struct operand {
    struct sl_slice text; /* trimmed */
    bool bracketed;
};

static int refuse(struct reader *reader, enum sl_filter_fault fault)
{
    reader->parse->position.at = reader->rest.data;
    return sl_parse_refuse(reader->parse, fault);
}

/* Refuses something at another position than the current one. `at` NULL: the rule as a whole. */
static int refuse_at(struct reader *reader, enum sl_filter_fault fault, const char *at)
{
    reader->parse->position.at = at;
    return sl_parse_refuse(reader->parse, fault);
}

static void skip(struct reader *reader, size_t size)
{
    reader->rest = sl_slice_from(reader->rest, size);
}

static void skip_space(struct reader *reader)
{
    size_t size;

    while ((size = sl_scan_space(reader->rest)) > 0)
        skip(reader, size);
}

static bool next_is(const struct reader *reader, char c)
{
    return reader->rest.size > 0 && reader->rest.data[0] == c;
}

/* The next bare word: up to white space, a parenthesis or a quote. */
static struct sl_slice next_word(const struct reader *reader)
{
    struct sl_slice rest = reader->rest;
    size_t size = 0;

    while (size < rest.size && rest.data[size] != '(' && rest.data[size] != ')' &&
           rest.data[size] != '"' && sl_scan_space(sl_slice_from(rest, size)) == 0)
        size++;
    return sl_slice(rest.data, size);
}

static bool next_word_is(const struct reader *reader, const char *word)
{
    return sl_slice_is(next_word(reader), word);
}

/* --- items -------------------------------------------------------------------------------- */

/* The length of [A-Za-z_]+ before a ':' at the start of `word`; 0: not an operator. */
static size_t operator_name_size(struct sl_slice word)
{
    size_t size = 0;

    while (size < word.size) {
        char c = sl_ascii_lower(word.data[size]);

        if ((c < 'a' || c > 'z') && c != '_')
            break;
        size++;
    }
    return size < word.size && word.data[size] == ':' ? size : 0;
}

/* Takes the text between the current sign and `closing`. */
static int take_enclosed(struct reader *reader, char closing, enum sl_filter_fault unclosed,
                         struct sl_slice *ret_text)
{
    const char *start = reader->rest.data + 1;
    const char *end = memchr(start, closing, reader->rest.size - 1);

    if (!end)
        return refuse(reader, unclosed);
    *ret_text = sl_slice(start, (size_t)(end - start));
    skip(reader, ret_text->size + 2);
    return 0;
}

static int take_operand(struct reader *reader, struct operand *ret_operand)
{
    int r = 0;

    ret_operand->bracketed = next_is(reader, '[');
    if (ret_operand->bracketed) {
        r = take_enclosed(reader, ']', SL_FAULT_UNCLOSED_BRACKET, &ret_operand->text);
    } else if (next_is(reader, '"')) {
        r = take_enclosed(reader, '"', SL_FAULT_UNCLOSED_QUOTE, &ret_operand->text);
    } else {
        ret_operand->text = next_word(reader);
        skip(reader, ret_operand->text.size);
    }
    if (r == 0)
        ret_operand->text = sl_scan_trim(ret_operand->text);
    return r;
}

static void note_sample(struct reader *reader, const char *at)
{
    reader->sample = at;
    if (reader->negated || reader->depth > 0)
        reader->misplaced_sample = at;
}

static int refuse_operator(struct reader *reader, struct sl_slice name)
{
    const char *meant = sl_rule_operator_meant(name);
    int r;

    reader->parse->position.item = sl_slice(name.data, name.size + 1);
    r = refuse_at(reader, SL_FAULT_UNKNOWN_OPERATOR, name.data);
    if (meant && reader->parse->reterr)
        sl_filter_error_add(reader->parse->reterr, "; did you mean %s:?", meant);
    return r;
}

static int read_operator(struct reader *reader, struct sl_slice name, bool *ret_anchor)
{
    const struct sl_rule_operator *found;
    struct operand operand;
    const char *start;
    int r;

    skip(reader, name.size + 1);
    start = reader->rest.data;
    r = take_operand(reader, &operand);
    if (r < 0)
        return r;
    found = sl_rule_operator_find(name);
    if (!found)
        return refuse_operator(reader, name);
    if (operand.text.size == 0)
        return refuse_at(reader, SL_FAULT_EMPTY_OPERAND, start);
    if (operand.bracketed != found->is_bracketed)
        return refuse_at(reader, SL_FAULT_BAD_OPERAND, start);
    if (found->is_sample)
        note_sample(reader, name.data);
    *ret_anchor = found->is_anchor || (found->is_wide && reader->allows_wide);
    reader->parse->position.at = start;
    return found->read(reader->parse, operand.text);
}

/* Adds a warning for an operator of another language, or one in lower case, between two words. */
static void look_at_word(struct reader *reader, struct sl_slice word)
{
    bool is_between = word.data > reader->parse->position.value.data &&
                      sl_scan_trim(reader->rest).size > word.size;

    if (is_between &&
        (sl_ascii_is(word, "or") || sl_ascii_is(word, "and") || sl_slice_is(word, "NOT")))
        sl_parse_warn(reader->parse, SL_WARNING_OPERATOR_IN_RULE);
}

/* Parses a `near` atom: the number after the quotes, and the text in them. */
static int read_near(struct reader *reader, struct sl_slice text)
{
    size_t mark = reader->parse->builder.bytes.size;
    struct sl_slice sign = next_word(reader);
    int r = sl_parse_near(reader->parse, text);

    if (r < 0)
        return r;
    if (sign.size != 2 || sign.data[1] < '0' || sign.data[1] > '0' + SL_NEAR_MAX_BETWEEN)
        return refuse(reader, SL_FAULT_NEAR_BETWEEN);
    skip(reader, sign.size);
    sl_condition_close_near(&reader->parse->builder, (unsigned)(sign.data[1] - '0'), mark);
    return 0;
}

static int read_phrase(struct reader *reader)
{
    struct sl_slice phrase;
    int r = take_enclosed(reader, '"', SL_FAULT_UNCLOSED_QUOTE, &phrase);

    if (r < 0)
        return r;
    if (next_is(reader, '~'))
        return read_near(reader, phrase);
    return sl_parse_keyword(reader->parse, SL_CONDITION_KEYWORD, phrase);
}

static int read_atom(struct reader *reader, bool *ret_anchor)
{
    struct sl_slice word;
    size_t name_size;

    if (++reader->atoms == SL_RULE_MAX_ATOMS + 1)
        reader->excess = reader->rest.data;
    reader->parse->position.at = reader->rest.data;
    *ret_anchor = true;
    if (next_is(reader, '"'))
        return read_phrase(reader);
    word = next_word(reader);
    name_size = operator_name_size(word);
    if (name_size > 0)
        return read_operator(reader, sl_slice(word.data, name_size), ret_anchor);
    look_at_word(reader, word);
    skip(reader, word.size);
    return sl_parse_term(reader->parse, word);
}

static int read_rule(struct reader *reader, bool *ret_anchor);

static int refuse_unclosed(struct reader *reader, const char *opening)
{
    struct sl_slice rule = reader->parse->position.value;
    int r = refuse(reader, SL_FAULT_UNCLOSED_GROUP);

    if (reader->parse->reterr)
        sl_filter_error_add(reader->parse->reterr, "; it was opened at character %zu",
                            sl_scan_length(sl_slice(rule.data, (size_t)(opening - rule.data))) + 1);
    return r;
}

static int read_group(struct reader *reader, bool *ret_anchor)
{
    const char *opening = reader->rest.data;
    bool negated = reader->negated;
    int r;

    if (reader->depth == RULE_MAX_DEPTH)
        return refuse(reader, SL_FAULT_TOO_DEEP);
    skip(reader, 1);
    reader->depth++;
    r = read_rule(reader, ret_anchor);
    if (r < 0)
        return r;
    if (!next_is(reader, ')'))
        return refuse_unclosed(reader, opening);
    skip(reader, 1);
    reader->depth--;
    reader->negated = negated;
    return 0;
}

static void note_piece(const struct reader *reader, const char *start, struct sl_slice *pieces,
                       size_t *count)
{
    struct sl_slice piece = sl_slice(start, (size_t)(reader->rest.data - start));

    if (reader->depth == 0 && *count < SL_RULE_MAX_ATOMS)
        pieces[(*count)++] = sl_scan_trim(piece);
}

static int read_item(struct reader *reader, bool *ret_anchor)
{
    struct sl_rule_pieces *pieces = reader->parse->pieces;
    size_t mark = reader->parse->builder.bytes.size;
    const char *start;
    int r;

    skip_space(reader);
    start = reader->rest.data;
    reader->negated = next_is(reader, '-');
    if (reader->negated)
        skip(reader, 1);
    if (next_is(reader, '(')) {
        r = read_group(reader, ret_anchor);
    } else if (next_is(reader, '"')) {
        r = read_atom(reader, ret_anchor);
    } else if (next_word_is(reader, "OR") || next_word_is(reader, "AND")) {
        r = refuse(reader, SL_FAULT_MISSING_TERM_BEFORE);
    } else if (next_word(reader).size == 0) {
        r = refuse(reader, SL_FAULT_MISSING_TERM);
    } else if (reader->negated && next_is(reader, '-')) {
        r = refuse(reader, SL_FAULT_NEGATED_TWICE);
    } else {
        r = read_atom(reader, ret_anchor);
    }
    if (r == 0 && reader->negated) {
        sl_condition_close(&reader->parse->builder, SL_CONDITION_NOT, mark);
        *ret_anchor = false;
    }
    if (r == 0 && pieces)
        note_piece(reader, start, pieces->items, &pieces->item_count);
    return r;
}

/* Takes the word `word` if it is next. */
static bool take_word(struct reader *reader, const char *word)
{
    if (!next_word_is(reader, word))
        return false;
    skip(reader, strlen(word));
    return true;
}

/* Whether an AND ends here: at the end of the rule, of a group, or of an alternative. */
static bool at_end_of_and(struct reader *reader)
{
    skip_space(reader);
    return reader->rest.size == 0 || next_is(reader, ')') || next_word_is(reader, "OR");
}

static int read_and(struct reader *reader, bool *ret_anchor)
{
    size_t mark = reader->parse->builder.bytes.size;
    bool anchor = false;
    int r;

    *ret_anchor = false;
    do {
        r = read_item(reader, &anchor);
        if (r < 0)
            return r;
        *ret_anchor = *ret_anchor || anchor;
    } while (!at_end_of_and(reader) && (take_word(reader, "AND"), true));
    sl_condition_close(&reader->parse->builder, SL_CONDITION_ALL, mark);
    return 0;
}

static int read_alternative(struct reader *reader, bool *ret_anchor)
{
    struct sl_rule_pieces *pieces = reader->parse->pieces;
    const char *start;
    int r;

    skip_space(reader);
    start = reader->rest.data;
    r = read_and(reader, ret_anchor);
    if (r == 0 && pieces)
        note_piece(reader, start, pieces->alternatives, &pieces->alternative_count);
    if (r == 0 && !*ret_anchor && reader->depth == 0 && !reader->broad)
        reader->broad = start;
    return r;
}

/* Parses up to the end, or to a parenthesis that does not belong to this group. */
static int read_rule(struct reader *reader, bool *ret_anchor)
{
    size_t mark = reader->parse->builder.bytes.size;
    bool anchor = false;
    int r;

    r = read_alternative(reader, ret_anchor);
    while (r == 0 && take_word(reader, "OR")) {
        reader->has_alternatives |= reader->depth == 0;
        r = read_alternative(reader, &anchor);
        *ret_anchor = *ret_anchor && anchor;
    }
    if (r < 0)
        return r;
    sl_condition_close(&reader->parse->builder, SL_CONDITION_ANY, mark);
    return 0;
}

/* The length of the text between `polygon:[` and the next `]`, for all polygons. */
static size_t length_of_points(struct sl_slice rule)
{
    static const struct sl_slice name = {"polygon:[", 9};
    size_t length = 0;

    while (rule.size > name.size) {
        const char *end;

        if (!sl_ascii_equal(sl_slice(rule.data, name.size), name)) {
            rule = sl_slice_from(rule, 1);
            continue;
        }
        rule = sl_slice_from(rule, name.size);
        end = memchr(rule.data, ']', rule.size);
        if (!end)
            break;
        length += sl_scan_length(sl_slice(rule.data, (size_t)(end - rule.data)));
        rule = sl_slice_from(rule, (size_t)(end - rule.data));
    }
    return length;
}

/* The maximum length of this rule in characters. */
static size_t max_length(struct sl_slice rule)
{
    size_t max = RULE_MAX_LENGTH + length_of_points(rule);

    return max < RULE_MAX_WHOLE_LENGTH ? max : RULE_MAX_WHOLE_LENGTH;
}

static bool is_too_long(struct sl_slice rule)
{
    size_t length = sl_scan_length(rule);

    return length > RULE_MAX_LENGTH && length > max_length(rule);
}

int sl_parse_rule(struct sl_parse *parse, struct sl_slice rule, bool allows_wide)
{
    struct reader reader = {.parse = parse, .rest = rule, .allows_wide = allows_wide};
    bool anchor;
    int r;

    parse->position = (struct sl_filter_position){.param = "rule", .value = rule, .is_rule = true};
    if (sl_scan_trim(rule).size == 0)
        return sl_parse_refuse(parse, SL_FAULT_EMPTY_RULE);
    if (is_too_long(rule))
        return refuse_at(&reader, SL_FAULT_RULE_TOO_LONG,
                         rule.data + sl_scan_first(rule, max_length(rule)).size);
    r = read_rule(&reader, &anchor);
    if (r < 0)
        return r;
    if (reader.rest.size > 0) /* an unmatched closing parenthesis */
        return refuse(&reader, SL_FAULT_UNOPENED_GROUP);
    if (reader.excess)
        return refuse_at(&reader, SL_FAULT_TOO_MANY_ATOMS, reader.excess);
    if (reader.misplaced_sample)
        return refuse_at(&reader, SL_FAULT_SAMPLE_PLACEMENT, reader.misplaced_sample);
    if (reader.sample && reader.has_alternatives)
        return refuse_at(&reader, SL_FAULT_SAMPLE_PLACEMENT, reader.sample);
    if (!anchor)
        return refuse_at(&reader, SL_FAULT_RULE_TOO_BROAD,
                         reader.has_alternatives ? reader.broad : NULL);
    return 0;
}

int sl_parse_rule_pieces(struct sl_slice rule, struct sl_rule_pieces *ret_pieces)
{
    struct sl_parse parse = {
        .builder = SL_CONDITION_BUILDER_INIT,
        .normal = BUFFER_INIT,
        .tokens = SL_TOKEN_LIST_INIT,
        .pieces = ret_pieces,
    };
    int r;

    ret_pieces->alternative_count = ret_pieces->item_count = 0;
    r = sl_parse_rule(&parse, rule, true);
    sl_condition_builder_done(&parse.builder);
    buffer_done(&parse.normal);
    sl_token_list_done(&parse.tokens);
    return r;
}
