/* rule_operator.c - the table of operators: name, function that reads the operand, where it is
 * allowed.
 *
 * An anchor is selective enough for the index. A bracketed operand has several values in [ ]. Each
 * function adds one condition to the builder, or refuses the operand with the error of its kind.
 * rule_parse.c limits the length, conditions and depth of the whole rule. */
#include "filters/rule_operator.h"

#include <errno.h>

#include "base/nearest.h"
#include "filters/ascii.h"
#include "filters/box.h"
#include "filters/sample.h"
#include "filters/scan.h"

static int read_user(struct sl_parse *parse, struct sl_slice operand, enum sl_condition_kind id,
                     enum sl_condition_kind login)
{
    size_t mark = parse->builder.bytes.size;
    struct sl_user_name name;
    int r = sl_parse_user(parse, operand, SL_FAULT_BAD_USER, &name);

    if (r < 0)
        return r;
    if (name.is_id)
        sl_condition_add(&parse->builder, id, name.id.data, name.id.size);
    if (name.is_login)
        sl_condition_add(&parse->builder, login, name.login.data, name.login.size);
    sl_condition_close(&parse->builder, SL_CONDITION_ANY, mark);
    return 0;
}

static int read_from(struct sl_parse *parse, struct sl_slice operand)
{
    return read_user(parse, operand, SL_CONDITION_AUTHOR, SL_CONDITION_AUTHOR_LOGIN);
}

static int read_to(struct sl_parse *parse, struct sl_slice operand)
{
    return read_user(parse, operand, SL_CONDITION_REPLY_TO, SL_CONDITION_REPLY_TO_LOGIN);
}

static int read_repost_of(struct sl_parse *parse, struct sl_slice operand)
{
    return read_user(parse, operand, SL_CONDITION_REPOST_OF, SL_CONDITION_REPOST_OF_LOGIN);
}

static int read_url(struct sl_parse *parse, struct sl_slice operand)
{
    struct buffer *host = &parse->normal;
    struct sl_slice path;
    int r;

    buffer_clear(host);
    r = sl_parse_url_operand(operand, host, &path);
    if (r == -EINVAL)
        return sl_parse_refuse(parse, SL_FAULT_BAD_URL);
    if (r == 0)
        sl_condition_add_url(&parse->builder, buffer_slice(host), path);
    return r;
}

static int read_place(struct sl_parse *parse, struct sl_slice operand)
{
    return sl_parse_keyword(parse, SL_CONDITION_PLACE, operand);
}

/* Splits at white space and commas into at most `max` parts. Returns the number of parts. */
static size_t split_numbers(struct sl_slice operand, struct sl_slice *parts, size_t max)
{
    struct sl_slice rest, word, part;
    size_t count = 0;

    while (sl_scan_word(&operand, &word)) {
        for (rest = word; sl_scan_item(&rest, &part);) {
            if (part.size == 0)
                continue;
            if (count < max)
                parts[count] = part;
            count++;
        }
    }
    return count;
}

static int read_bounding_box(struct sl_parse *parse, struct sl_slice operand)
{
    struct sl_slice numbers[4];

    if (split_numbers(operand, numbers, 4) != 4)
        return sl_parse_refuse(parse, SL_FAULT_BAD_BOX);
    return sl_parse_box(parse, numbers);
}

static int read_point_radius(struct sl_parse *parse, struct sl_slice operand)
{
    struct sl_slice numbers[3];
    struct sl_circle circle;
    int r;

    if (split_numbers(operand, numbers, 3) != 3)
        return sl_parse_refuse(parse, SL_FAULT_BAD_RADIUS);
    r = sl_parse_number(parse, numbers[0], &circle.centre.lon);
    if (r == 0)
        r = sl_parse_number(parse, numbers[1], &circle.centre.lat);
    if (r < 0)
        return r;
    sl_parse_at(parse, numbers[0]);
    if (!sl_point_is_valid(&circle.centre))
        return sl_parse_refuse(parse, SL_FAULT_BAD_RADIUS);
    sl_parse_at(parse, numbers[2]);
    r = sl_parse_radius(numbers[2], &circle.radius_km);
    if (r == -EINVAL)
        return sl_parse_refuse(parse, SL_FAULT_BAD_RADIUS);
    if (r == 0)
        sl_condition_add(&parse->builder, SL_CONDITION_CIRCLE, &circle, sizeof(circle));
    return r;
}

static int read_lang(struct sl_parse *parse, struct sl_slice operand)
{
    return sl_parse_language(parse, operand);
}

static int read_country(struct sl_parse *parse, struct sl_slice operand)
{
    char code[2];

    if (operand.size != sizeof(code))
        return sl_parse_refuse(parse, SL_FAULT_BAD_COUNTRY);
    for (size_t i = 0; i < sizeof(code); i++) {
        code[i] = sl_ascii_lower(operand.data[i]);
        if (code[i] < 'a' || code[i] > 'z')
            return sl_parse_refuse(parse, SL_FAULT_BAD_COUNTRY);
        code[i] = (char)(code[i] - 'a' + 'A');
    }
    sl_condition_add(&parse->builder, SL_CONDITION_COUNTRY, code, sizeof(code));
    return 0;
}

struct trait_name {
    const char *name;
    enum sl_condition_trait trait;
};

static int read_trait(struct sl_parse *parse, struct sl_slice operand,
                      const struct trait_name *names, enum sl_filter_fault fault)
{
    for (; names->name; names++) {
        char trait = (char)names->trait;

        if (!sl_ascii_is(operand, names->name))
            continue;
        sl_condition_add(&parse->builder, SL_CONDITION_TRAIT, &trait, 1);
        return 0;
    }
    return sl_parse_refuse(parse, fault);
}

static int read_has(struct sl_parse *parse, struct sl_slice operand)
{
    static const struct trait_name names[] = {
        {"hashtags", SL_TRAIT_HASHTAGS},
        {"mentions", SL_TRAIT_MENTIONS},
        {"cashtags", SL_TRAIT_CASHTAGS},
        {"links", SL_TRAIT_LINKS},
        {"media", SL_TRAIT_MEDIA},
        {"geo", SL_TRAIT_GEO},
        {NULL, 0},
    };

    return read_trait(parse, operand, names, SL_FAULT_BAD_HAS);
}

static int read_is(struct sl_parse *parse, struct sl_slice operand)
{
    static const struct trait_name names[] = {
        {"reply", SL_TRAIT_REPLY},
        {"repost", SL_TRAIT_REPOST},
        {"quote", SL_TRAIT_QUOTE},
        {NULL, 0},
    };

    return read_trait(parse, operand, names, SL_FAULT_BAD_IS);
}

static int read_sample(struct sl_parse *parse, struct sl_slice operand)
{
    uint32_t ppm;

    if (sl_parse_sample(operand, &ppm) < 0)
        return sl_parse_refuse(parse, SL_FAULT_BAD_SAMPLE);
    sl_condition_add(&parse->builder, SL_CONDITION_SAMPLE, &ppm, sizeof(ppm));
    return 0;
}

static const struct sl_rule_operator operators[] = {
    {"from", .is_anchor = true, .read = read_from},
    {"to", .is_anchor = true, .read = read_to},
    {"repost_of", .is_anchor = true, .read = read_repost_of},
    {"retweets_of", .is_anchor = true, .read = read_repost_of},
    {"url", .is_anchor = true, .read = read_url},
    {"place", .is_anchor = true, .read = read_place},
    {"bounding_box", .is_bracketed = true, .is_anchor = true, .read = read_bounding_box},
    {"point_radius", .is_bracketed = true, .is_anchor = true, .read = read_point_radius},
    {"polygon", .is_bracketed = true, .is_anchor = true, .read = sl_parse_polygon},
    {"lang", .is_wide = true, .read = read_lang},
    {"country", .is_wide = true, .read = read_country},
    {"has", .read = read_has},
    {"is", .read = read_is},
    {"sample", .is_sample = true, .read = read_sample},
};

const struct sl_rule_operator *sl_rule_operator_find(struct sl_slice name)
{
    for (size_t i = 0; i < sizeof(operators) / sizeof(operators[0]); i++) {
        if (sl_ascii_is(name, operators[i].name))
            return &operators[i];
    }
    return NULL;
}

const char *sl_rule_operator_meant(struct sl_slice name)
{
    char lower[NEAREST_WORD_MAX + 1] = "";
    struct nearest search = {.text = lower};

    for (size_t i = 0; name.size <= NEAREST_WORD_MAX && i < name.size; i++)
        lower[i] = sl_ascii_lower(name.data[i]);
    for (size_t i = 0; i < sizeof(operators) / sizeof(operators[0]); i++)
        nearest_see(&search, operators[i].name);
    return search.best;
}
