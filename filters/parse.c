/* parse.c - parses terms, users, boxes and languages, which occur in several members of a filter.
 *
 * A text is normalised first, like the words of events, and then classified as a hashtag, mention,
 * cashtag or words. The buffers belong to the parse and are reused. All functions return 0;
 * -EINVAL, with the error recorded; or -ENOMEM. */
#include "filters/parse.h"

#include <errno.h>

#include "filters/ascii.h"
#include "filters/box.h"
#include "filters/land.h"
#include "filters/language.h"
#include "filters/scan.h"

enum { USER_ID_MAX_SIZE = 64 };

/* Tokenises the text in parse->normal. */
static int tokenise(struct sl_parse *parse)
{
    parse->tokens.count = 0;
    return sl_tokenise(buffer_slice(&parse->normal), NULL, &parse->tokens);
}

/* Adds a condition with these tokens. */
static int add_tokens(struct sl_parse *parse, enum sl_condition_kind kind)
{
    int r = tokenise(parse);

    if (r < 0)
        return r;
    if (parse->tokens.count == 0)
        return sl_parse_refuse(parse, SL_FAULT_EMPTY_KEYWORD);
    sl_condition_add_tokens(&parse->builder, kind, buffer_slice(&parse->normal), &parse->tokens);
    return 0;
}

static int normalise(struct sl_parse *parse, struct sl_slice text)
{
    buffer_clear(&parse->normal);
    return sl_normalise(text, &parse->normal);
}

int sl_parse_keyword(struct sl_parse *parse, enum sl_condition_kind kind, struct sl_slice text)
{
    int r = normalise(parse, text);

    return r < 0 ? r : add_tokens(parse, kind);
}

int sl_parse_near(struct sl_parse *parse, struct sl_slice text)
{
    struct sl_slice term;
    size_t count = 0, words = 0;
    int r;

    while (sl_scan_word(&text, &term)) {
        r = normalise(parse, term);
        if (r == 0)
            r = tokenise(parse);
        if (r < 0)
            return r;
        if (parse->tokens.count == 0)
            continue;
        words += parse->tokens.count;
        if (++count > SL_NEAR_MAX_TERMS || words > SL_NEAR_MAX_WORDS) {
            sl_parse_at(parse, term);
            return sl_parse_refuse(parse, count > SL_NEAR_MAX_TERMS ? SL_FAULT_NEAR_TERMS
                                                                    : SL_FAULT_NEAR_WORDS);
        }
        sl_condition_add_tokens(&parse->builder, SL_CONDITION_KEYWORD, buffer_slice(&parse->normal),
                                &parse->tokens);
    }
    if (count == 0)
        return sl_parse_refuse(parse, SL_FAULT_EMPTY_KEYWORD);
    return count > 1 ? 0 : sl_parse_refuse(parse, SL_FAULT_NEAR_TERMS);
}

/* ASCII letters and digits. */
static bool is_word_character(char c)
{
    return (c >= '0' && c <= '9') || (sl_ascii_lower(c) >= 'a' && sl_ascii_lower(c) <= 'z');
}

/* Refuses a word that consists of signs only. */
static int refuse_wildcard(struct sl_parse *parse, struct sl_slice term)
{
    size_t signs = 0;

    while (signs < term.size && (unsigned char)term.data[signs] < 0x80 &&
           !is_word_character(term.data[signs]))
        signs++;
    return sl_parse_refuse(parse, signs == term.size ? SL_FAULT_EMPTY_KEYWORD : SL_FAULT_WILDCARD);
}

int sl_parse_term(struct sl_parse *parse, struct sl_slice term)
{
    static const enum sl_condition_kind kinds[] = {
        [SL_ENTITY_HASHTAG] = SL_CONDITION_HASHTAG,
        [SL_ENTITY_MENTION] = SL_CONDITION_MENTION,
        [SL_ENTITY_CASHTAG] = SL_CONDITION_CASHTAG,
    };
    enum sl_entity_kind entity;
    struct sl_slice name;
    int r;

    /* The signs would be ignored, and the rest would only match as a whole word. */
    if (memchr(term.data, '*', term.size) || memchr(term.data, '~', term.size))
        return refuse_wildcard(parse, term);
    r = normalise(parse, term);
    if (r < 0)
        return r;
    entity = sl_entity_of(buffer_slice(&parse->normal), &name);
    if (entity == SL_ENTITY_NONE)
        return add_tokens(parse, SL_CONDITION_KEYWORD);
    sl_condition_add(&parse->builder, kinds[entity], name.data, name.size);
    return 0;
}

static bool is_digits(struct sl_slice text)
{
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
    }
    return text.size > 0;
}

static bool is_user_id(struct sl_slice text)
{
    if (text.size < 1 || text.size > USER_ID_MAX_SIZE)
        return false;
    for (size_t i = 0; i < text.size; i++) {
        char c = text.data[i];

        if (!is_word_character(c) && (c == '\0' || !strchr("_.:-", c)))
            return false;
    }
    return true;
}

static void note_login(struct sl_parse *parse, struct sl_slice login)
{
    struct sl_filter_warnings *warnings = parse->warnings;
    struct sl_filter_login *note = &warnings->logins[warnings->login_count];

    for (size_t i = 0; i < warnings->login_count; i++) {
        if (sl_slice_is(login, warnings->logins[i].text))
            return;
    }
    if (warnings->login_count == SL_FILTER_LOGINS_MAX || login.size > SL_FILTER_LOGIN_SIZE)
        return;
    memcpy(note->text, login.data, login.size);
    note->text[login.size] = '\0';
    note->param = parse->position.param;
    warnings->login_count++;
}

int sl_parse_user(struct sl_parse *parse, struct sl_slice text, enum sl_filter_fault fault,
                  struct sl_user_name *ret_name)
{
    struct sl_user_name name = {.is_id = is_user_id(text), .id = text};
    int r;

    if (is_digits(text)) {
        *ret_name = name;
        return name.is_id ? 0 : sl_parse_refuse(parse, fault);
    }
    r = normalise(parse, text);
    if (r < 0)
        return r;
    name.login = buffer_slice(&parse->normal);
    if (name.login.size > 0 && name.login.data[0] == '@')
        name.login = sl_slice_from(name.login, 1);
    name.is_login = sl_is_login(name.login);
    if (name.is_login && parse->warnings)
        note_login(parse, name.login);
    *ret_name = name;
    return name.is_id || name.is_login ? 0 : sl_parse_refuse(parse, fault);
}

void sl_parse_at(struct sl_parse *parse, struct sl_slice piece)
{
    if (parse->position.is_rule)
        parse->position.at = piece.data;
    else
        parse->position.item = piece;
}

int sl_parse_number(struct sl_parse *parse, struct sl_slice text, double *ret_number)
{
    int r = sl_parse_degrees(text, ret_number);

    sl_parse_at(parse, text);
    return r == -EINVAL ? sl_parse_refuse(parse, SL_FAULT_BAD_NUMBER) : r;
}

/* Swaps longitude and latitude, because many programs write the latitude first. false: the result
 * is not a valid box. */
static bool swap_box(const struct sl_box *box, struct sl_box *ret_swapped)
{
    *ret_swapped = (struct sl_box){box->south, box->west, box->north, box->east};
    return sl_box_is_valid(ret_swapped) && ret_swapped->west <= ret_swapped->east;
}

static void suggest_box(struct sl_filter_error *error, const struct sl_slice numbers[4])
{
    sl_filter_error_add(error, ": did you mean %.*s,%.*s,%.*s,%.*s?", SL_SLICE_ARG(numbers[1]),
                        SL_SLICE_ARG(numbers[0]), SL_SLICE_ARG(numbers[3]),
                        SL_SLICE_ARG(numbers[2]));
}

static void position_box(struct sl_parse *parse, const struct sl_slice numbers[4])
{
    const char *end = numbers[3].data + numbers[3].size;

    sl_parse_at(parse, sl_slice(numbers[0].data, (size_t)(end - numbers[0].data)));
}

static int refuse_box(struct sl_parse *parse, const struct sl_box *box,
                      const struct sl_slice numbers[4])
{
    struct sl_box swapped;
    int r;

    position_box(parse, numbers);
    r = sl_parse_refuse(parse, SL_FAULT_BAD_BOX);
    if (parse->reterr && swap_box(box, &swapped))
        suggest_box(parse->reterr, numbers);
    return r;
}

/* A box in the sea may be intended; if there would be land with latitude and longitude swapped, it
 * is more often a mistake, so this adds a warning. */
static void look_at_box(struct sl_parse *parse, const struct sl_box *box,
                        const struct sl_slice numbers[4])
{
    struct sl_filter_error *warning;
    struct sl_box swapped;

    if (!parse->warnings || sl_land_in(box) || !swap_box(box, &swapped) || !sl_land_in(&swapped))
        return;
    position_box(parse, numbers);
    warning = sl_parse_warn(parse, SL_WARNING_BOX_AT_SEA);
    if (warning)
        suggest_box(warning, numbers);
}

int sl_parse_box(struct sl_parse *parse, const struct sl_slice numbers[4])
{
    double edges[4];
    struct sl_box box;
    int r;

    for (size_t i = 0; i < 4; i++) {
        r = sl_parse_number(parse, numbers[i], &edges[i]);
        if (r < 0)
            return r;
    }
    box = (struct sl_box){edges[0], edges[1], edges[2], edges[3]};
    if (!sl_box_is_valid(&box))
        return refuse_box(parse, &box, numbers);
    look_at_box(parse, &box, numbers);
    sl_condition_add(&parse->builder, SL_CONDITION_BOX, &box, sizeof(box));
    return 0;
}

/* Parses "lon lat". */
static int parse_point(struct sl_parse *parse, struct sl_slice text, struct sl_point *ret_point)
{
    struct sl_slice rest = text, lon, lat;
    int r;

    sl_parse_at(parse, text);
    if (!sl_scan_word(&rest, &lon) || !sl_scan_word(&rest, &lat) || sl_scan_trim(rest).size > 0)
        return sl_parse_refuse(parse, SL_FAULT_BAD_POINT);
    r = sl_parse_number(parse, lon, &ret_point->lon);
    if (r == 0)
        r = sl_parse_number(parse, lat, &ret_point->lat);
    if (r < 0)
        return r;
    sl_parse_at(parse, text);
    return sl_point_is_valid(ret_point) ? 0 : sl_parse_refuse(parse, SL_FAULT_BAD_POINT);
}

/* The number of points, without the last one if it repeats the first. */
static size_t without_repetition(const struct sl_point *points, size_t count)
{
    const struct sl_point *last = &points[count - 1];

    return count > 1 && points[0].lon == last->lon && points[0].lat == last->lat ? count - 1
                                                                                 : count;
}

int sl_parse_polygon(struct sl_parse *parse, struct sl_slice text)
{
    struct sl_point points[SL_POLYGON_MAX_POINTS + 1];
    struct sl_slice rest, item;
    size_t count = 0;
    int r;

    sl_parse_at(parse, text);
    for (rest = text; sl_scan_item(&rest, &item);)
        count++;
    if (count < SL_POLYGON_MIN_POINTS || count > SL_POLYGON_MAX_POINTS + 1)
        return sl_parse_refuse(parse, SL_FAULT_POLYGON_POINTS);
    rest = text;
    for (size_t i = 0; i < count; i++) {
        sl_scan_item(&rest, &item);
        r = parse_point(parse, item, &points[i]);
        if (r < 0)
            return r;
    }
    sl_parse_at(parse, text);
    count = without_repetition(points, count);
    if (count < SL_POLYGON_MIN_POINTS || count > SL_POLYGON_MAX_POINTS)
        return sl_parse_refuse(parse, SL_FAULT_POLYGON_POINTS);
    switch (sl_polygon_unwind(points, count)) {
    case SL_POLYGON_FLAT:
        return sl_parse_refuse(parse, SL_FAULT_POLYGON_FLAT);
    case SL_POLYGON_ROUND:
        return sl_parse_refuse(parse, SL_FAULT_POLYGON_ROUND);
    case SL_POLYGON_GOOD:
        break;
    }
    sl_condition_add_polygon(&parse->builder, points, count);
    return 0;
}

static bool is_lower_letter(char c)
{
    return c >= 'a' && c <= 'z';
}

/* [a-z]{2,8}(-[a-z0-9]{1,8})* */
static bool is_language_range(struct sl_slice range)
{
    size_t subtag = 0; /* length of the current subtag */
    bool first = true;

    for (size_t i = 0; i < range.size; i++) {
        char c = sl_ascii_lower(range.data[i]);

        if (c == '-') {
            if (subtag < (first ? 2 : 1))
                return false;
            first = false;
            subtag = 0;
        } else if (is_lower_letter(c) || (!first && c >= '0' && c <= '9')) {
            if (++subtag > 8)
                return false;
        } else {
            return false;
        }
    }
    return subtag >= (first ? 2 : 1);
}

/* Adds a warning if `range`, which is valid and in lower case, is not the code of a language. */
static void look_at_language(struct sl_parse *parse, struct sl_slice range)
{
    const char *dash = memchr(range.data, '-', range.size);
    struct sl_slice subtag = sl_slice(range.data, dash ? (size_t)(dash - range.data) : range.size);
    struct sl_filter_error *warning;
    const char *meant;

    if (!parse->warnings || sl_language_is_known(subtag))
        return;
    warning = sl_parse_warn(parse, SL_WARNING_UNKNOWN_LANGUAGE);
    meant = sl_language_meant(subtag);
    if (warning && meant)
        sl_filter_error_add(warning, "; did you mean %s?", meant);
}

int sl_parse_language(struct sl_parse *parse, struct sl_slice range)
{
    if (!is_language_range(range))
        return sl_parse_refuse(parse, SL_FAULT_BAD_LANGUAGE);
    buffer_clear(&parse->normal);
    for (size_t i = 0; i < range.size; i++)
        buffer_append_char(&parse->normal, sl_ascii_lower(range.data[i]));
    if (parse->normal.failed)
        return -ENOMEM;
    look_at_language(parse, buffer_slice(&parse->normal));
    sl_condition_add(&parse->builder, SL_CONDITION_LANGUAGE, parse->normal.data,
                     parse->normal.size);
    return 0;
}
