/* parse.c - terms, users, boxes and languages: what several members of a filter are made of.
 *
 * A text is brought to its normal form first, as the words of events are, and then told apart: a
 * hashtag, a mention, a cashtag, or words. The buffers for that are the parse's and are used again
 * for each piece. All return 0, a refusal that has been written down, or -ENOMEM. */
#include "filters/parse.h"

#include <errno.h>

#include "filters/ascii.h"
#include "filters/box.h"

/* Adds the tokens of the piece in parse->normal. */
static int add_tokens(struct sl_parse *parse, enum sl_condition_kind kind)
{
    struct sl_slice normal = buffer_slice(&parse->normal);
    int r;

    parse->tokens.count = 0;
    r = sl_tokenise(normal, NULL, &parse->tokens);
    if (r < 0)
        return r;
    if (parse->tokens.count == 0)
        return sl_parse_refuse(parse, SL_FAULT_EMPTY_KEYWORD);
    sl_condition_add_tokens(&parse->builder, kind, normal, &parse->tokens);
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

    r = normalise(parse, term);
    if (r < 0)
        return r;
    entity = sl_entity_of(buffer_slice(&parse->normal), &name);
    if (entity == SL_ENTITY_NONE)
        return add_tokens(parse, SL_CONDITION_KEYWORD);
    sl_condition_add(&parse->builder, kinds[entity], name.data, name.size);
    return 0;
}

int sl_parse_login(struct sl_parse *parse, struct sl_slice text, enum sl_login_sign sign,
                   enum sl_filter_fault fault, const enum sl_condition_kind *kinds, size_t count)
{
    struct sl_slice login;
    int r;

    r = normalise(parse, text);
    if (r < 0)
        return r;
    login = buffer_slice(&parse->normal);
    if (login.size > 0 && login.data[0] == '@')
        login = sl_slice_from(login, 1);
    else if (sign == SL_LOGIN_WITH_SIGN)
        return sl_parse_refuse(parse, fault);
    if (!sl_is_login(login))
        return sl_parse_refuse(parse, fault);
    for (size_t i = 0; i < count; i++)
        sl_condition_add(&parse->builder, kinds[i], login.data, login.size);
    return 0;
}

int sl_parse_number(struct sl_parse *parse, struct sl_slice text, double *ret_number)
{
    int r = sl_parse_degrees(text, ret_number);

    return r == -EINVAL ? sl_parse_refuse(parse, SL_FAULT_BAD_NUMBER) : r;
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
        return sl_parse_refuse(parse, SL_FAULT_BAD_BOX);
    sl_condition_add(&parse->builder, SL_CONDITION_BOX, &box, sizeof(box));
    return 0;
}

static bool is_lower_letter(char c)
{
    return c >= 'a' && c <= 'z';
}

/* [a-z]{2,8}(-[a-z0-9]{1,8})* */
static bool is_language_range(struct sl_slice range)
{
    size_t subtag = 0; /* length so far */
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

int sl_parse_language(struct sl_parse *parse, struct sl_slice range)
{
    if (!is_language_range(range))
        return sl_parse_refuse(parse, SL_FAULT_BAD_LANGUAGE);
    buffer_clear(&parse->normal);
    for (size_t i = 0; i < range.size; i++)
        buffer_append_char(&parse->normal, sl_ascii_lower(range.data[i]));
    if (parse->normal.failed)
        return -ENOMEM;
    sl_condition_add(&parse->builder, SL_CONDITION_LANGUAGE, parse->normal.data,
                     parse->normal.size);
    return 0;
}
