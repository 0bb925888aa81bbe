/* filter_parse.c - parses the members of a filter, in the order of the table of errors.
 *
 * Each member adds its conditions to the builder, or is refused with the error that comes first in
 * the table. The numbers of phrases, users and boxes are checked before any of them is compiled, so
 * a filter that is too large costs no more than reading it. */
#include "filters/filter.h"

#include <errno.h>

#include "base/alloc.h"
#include "filters/filter_private.h"
#include "filters/parse.h"
#include "filters/sample.h"
#include "filters/scan.h"
#include "filters/verbatim.h"

enum {
    PHRASE_MAX_LENGTH = 60,
    TYPES_DEFAULT = 1 << SL_EVENT_POST | 1 << SL_EVENT_DELETE,
};

static void begin_member(struct sl_parse *parse, const char *param, struct sl_slice value)
{
    parse->position = (struct sl_filter_position){.param = param, .value = value};
}

/* --- track -------------------------------------------------------------------------------- */

static int check_phrases(struct sl_parse *parse, struct sl_slice track, uint32_t max)
{
    struct sl_slice rest, phrase;
    uint32_t count = 0;

    for (rest = track; sl_scan_item(&rest, &phrase);)
        count += phrase.size > 0;
    if (count == 0)
        return sl_parse_refuse(parse, SL_FAULT_EMPTY_TRACK);
    if (count > max)
        return sl_parse_refuse(parse, SL_FAULT_TOO_MANY_PHRASES);
    parse->sizes.track = count;
    for (rest = track; sl_scan_item(&rest, &phrase);) {
        if (phrase.size > PHRASE_MAX_LENGTH && sl_scan_length(phrase) > PHRASE_MAX_LENGTH) {
            parse->position.item = phrase;
            return sl_parse_refuse(parse, SL_FAULT_PHRASE_TOO_LONG);
        }
    }
    return 0;
}

/* Operators of rules, which are ordinary words in track. */
static bool is_operator(struct sl_slice term)
{
    return sl_slice_is(term, "OR") || sl_slice_is(term, "AND") || sl_slice_is(term, "NOT");
}

static int parse_track(struct sl_parse *parse, struct sl_slice track, uint32_t max)
{
    struct sl_slice phrase, term;
    size_t mark;
    int r;

    r = check_phrases(parse, track, max);
    if (r < 0)
        return r;
    while (sl_scan_item(&track, &phrase)) {
        if (phrase.size == 0)
            continue;
        mark = parse->builder.bytes.size;
        while (sl_scan_word(&phrase, &term)) {
            parse->position.item = term;
            if (is_operator(term))
                sl_parse_warn(parse, SL_WARNING_OPERATOR_IN_TRACK);
            r = sl_parse_term(parse, term);
            if (r < 0)
                return r;
        }
        sl_condition_close(&parse->builder, SL_CONDITION_ALL, mark);
    }
    return 0;
}

/* --- follow ------------------------------------------------------------------------------- */

static int parse_user(struct sl_parse *parse, struct sl_slice item, struct buffer *ids)
{
    struct sl_user_name name;
    int r = sl_parse_user(parse, item, SL_FAULT_BAD_FOLLOW, &name);

    if (r < 0)
        return r;
    if (name.is_id)
        buffer_append(ids, &name.id, sizeof(name.id));
    if (name.is_login) {
        sl_condition_add(&parse->builder, SL_CONDITION_AUTHOR_LOGIN, name.login.data,
                         name.login.size);
        sl_condition_add(&parse->builder, SL_CONDITION_MENTION, name.login.data, name.login.size);
    }
    return 0;
}

static int parse_follow(struct sl_parse *parse, struct sl_slice follow, bool authors_only,
                        uint32_t max)
{
    struct buffer ids = BUFFER_INIT; /* of struct sl_slice */
    struct sl_slice rest, item;
    uint32_t count = 0;
    int r = 0;

    begin_member(parse, "follow", follow);
    for (rest = follow; sl_scan_item(&rest, &item);)
        count += item.size > 0;
    if (count == 0)
        return sl_parse_refuse(parse, SL_FAULT_EMPTY_FOLLOW);
    if (count > max)
        return sl_parse_refuse(parse, SL_FAULT_TOO_MANY_USERS);
    parse->sizes.follow = count;

    for (rest = follow; r == 0 && sl_scan_item(&rest, &item);) {
        parse->position.item = item;
        if (item.size > 0 && authors_only)
            sl_condition_add(&parse->builder, SL_CONDITION_AUTHOR, item.data, item.size);
        else if (item.size > 0)
            r = parse_user(parse, item, &ids);
    }
    if (r == 0 && ids.failed)
        r = -ENOMEM;
    if (r == 0 && ids.size > 0)
        sl_condition_add_users(&parse->builder, (struct sl_slice *)(void *)ids.data,
                               ids.size / sizeof(struct sl_slice));
    buffer_done(&ids);
    return r;
}

/* --- locations ---------------------------------------------------------------------------- */

static int parse_locations(struct sl_parse *parse, struct sl_slice locations, uint32_t max)
{
    struct sl_slice rest, item, numbers[4];
    size_t count = 0;
    int r;

    begin_member(parse, "locations", locations);
    for (rest = locations; sl_scan_item(&rest, &item);)
        count++;
    if (count % 4 != 0)
        return sl_parse_refuse(parse, SL_FAULT_BAD_LOCATIONS);
    if (count / 4 > max)
        return sl_parse_refuse(parse, SL_FAULT_TOO_MANY_BOXES);
    parse->sizes.boxes = (uint32_t)(count / 4);
    for (rest = locations; count > 0; count -= 4) {
        for (size_t i = 0; i < 4; i++)
            sl_scan_item(&rest, &numbers[i]);
        r = sl_parse_box(parse, numbers);
        if (r < 0)
            return r;
    }
    return 0;
}

/* --- restrictors -------------------------------------------------------------------------- */

static int parse_languages(struct sl_parse *parse, struct sl_slice languages)
{
    struct sl_slice item;
    size_t mark = parse->builder.bytes.size;
    int r;

    begin_member(parse, "language", languages);
    while (sl_scan_item(&languages, &item)) {
        parse->position.item = item;
        r = sl_parse_language(parse, item);
        if (r < 0)
            return r;
    }
    sl_condition_close(&parse->builder, SL_CONDITION_ANY, mark);
    return 0;
}

static int parse_types(struct sl_parse *parse, struct sl_slice types, unsigned *ret_types)
{
    static const char *const names[] = {
        [SL_EVENT_POST] = "post",     [SL_EVENT_DELETE] = "delete",
        [SL_EVENT_FOLLOW] = "follow", [SL_EVENT_UNFOLLOW] = "unfollow",
        [SL_EVENT_USER] = "user",
    };
    const size_t count = sizeof(names) / sizeof(names[0]);
    struct sl_slice item;
    size_t type;

    begin_member(parse, "types", types);
    *ret_types = 0;
    while (sl_scan_item(&types, &item)) {
        for (type = 0; type < count && !sl_slice_is(item, names[type]);)
            type++;
        parse->position.item = item;
        if (type == count)
            return sl_parse_refuse(parse, SL_FAULT_BAD_TYPES);
        *ret_types |= 1u << type;
    }
    return 0;
}

static int parse_restrictors(struct sl_parse *parse, const struct sl_filter_text *text,
                             struct sl_filter_view *view, unsigned char *chosen)
{
    int r = 0;

    if (text->language.data)
        r = parse_languages(parse, text->language);
    if (r < 0)
        return r;
    begin_member(parse, "sample", text->sample);
    if (text->sample.data && sl_parse_sample(sl_scan_trim(text->sample), &view->sample_ppm) < 0)
        return sl_parse_refuse(parse, SL_FAULT_BAD_SAMPLE);
    begin_member(parse, "partition", text->partition);
    if (text->partition.data &&
        sl_parse_partition(sl_scan_trim(text->partition), chosen, &view->parts) < 0)
        return sl_parse_refuse(parse, SL_FAULT_BAD_PARTITION);
    if (text->types.data)
        r = parse_types(parse, text->types, &view->types);
    return r;
}

/* --- the filter -------------------------------------------------------------------------- */

static int parse_selectors(struct sl_parse *parse, const struct sl_filter_text *text,
                           const struct sl_filter_limits *limits)
{
    int r = 0;

    if (text->track.data) {
        begin_member(parse, "track", text->track);
        r = text->track_is_verbatim ? sl_parse_verbatim_track(parse, text->track, limits->track)
                                    : parse_track(parse, text->track, limits->track);
    }
    if (r == 0 && text->follow.data)
        r = parse_follow(parse, text->follow, text->authors_only, limits->follow);
    if (r == 0 && text->locations.data)
        r = parse_locations(parse, text->locations, limits->boxes);
    if (r == 0 && text->rule.data)
        r = sl_parse_rule(parse, text->rule, limits->allows_wide);
    return r;
}

static unsigned kinds_of(const struct sl_filter_text *text)
{
    unsigned kinds = 0;

    if (text->firehose)
        kinds |= SL_FILTER_FIREHOSE;
    if (text->sample.data || text->partition.data)
        kinds |= SL_FILTER_SAMPLE;
    if (text->track.data || text->follow.data || text->locations.data || text->rule.data)
        kinds |= SL_FILTER_SELECTIVE;
    return kinds;
}

static struct sl_filter *filter_make(struct sl_parse *parse, const struct sl_filter_view *view,
                                     unsigned kinds)
{
    struct buffer *key = &parse->normal;
    struct sl_filter *filter;

    buffer_clear(key);
    sl_filter_write_head(view, key);
    buffer_append_slice(key, view->condition);
    if (key->failed || parse->builder.bytes.failed)
        return NULL;
    filter = mem_alloc(sizeof(*filter) + key->size);
    if (!filter)
        return NULL;
    filter->refs = 1;
    filter->sizes = parse->sizes;
    filter->kinds = (uint8_t)kinds;
    filter->key_size = (uint32_t)key->size;
    memcpy(filter->key, key->data, key->size);
    return filter;
}

static int parse_filter(struct sl_parse *parse, const struct sl_filter_text *text,
                        const struct sl_filter_limits *limits, struct sl_filter **ret_filter)
{
    unsigned char chosen[SL_PARTITION_BYTES];
    struct sl_filter_view view = {
        .types = TYPES_DEFAULT, .sample_ppm = SL_SAMPLE_ALL, .parts = 1, .chosen = chosen};
    const struct buffer *conditions = &parse->builder.bytes;
    unsigned kinds = kinds_of(text);
    size_t selectors;
    int r;

    r = parse_selectors(parse, text, limits);
    if (r < 0)
        return r;
    if (!(kinds & SL_FILTER_SELECTIVE) || text->firehose)
        sl_condition_add(&parse->builder, SL_CONDITION_ANYTHING, "", 0);
    sl_condition_close(&parse->builder, SL_CONDITION_ANY, 0);
    selectors = conditions->size;

    r = parse_restrictors(parse, text, &view, chosen);
    if (r < 0)
        return r;
    if (kinds == 0) {
        begin_member(parse, NULL, SL_SLICE_NONE);
        return sl_parse_refuse(parse, SL_FAULT_NO_SELECTOR);
    }
    view.condition = sl_slice(conditions->data, selectors);
    view.languages = sl_slice_from(buffer_slice(conditions), selectors);
    *ret_filter = filter_make(parse, &view, kinds);
    if (!*ret_filter)
        return -ENOMEM;
    (*ret_filter)->has_verbatim = text->track.data && text->track_is_verbatim;
    return 0;
}

int sl_filter_new_warned(const struct sl_filter_text *text, const struct sl_filter_limits *limits,
                         struct sl_filter **ret_filter, struct sl_filter_error *reterr,
                         struct sl_filter_warnings *ret_warnings)
{
    struct sl_parse parse = {
        .builder = SL_CONDITION_BUILDER_INIT,
        .normal = BUFFER_INIT,
        .tokens = SL_TOKEN_LIST_INIT,
        .reterr = reterr,
        .warnings = ret_warnings,
    };
    int r;

    if (ret_warnings)
        ret_warnings->count = ret_warnings->login_count = 0;
    r = parse_filter(&parse, text, limits, ret_filter);
    sl_condition_builder_done(&parse.builder);
    buffer_done(&parse.normal);
    sl_token_list_done(&parse.tokens);
    return r;
}

int sl_filter_new(const struct sl_filter_text *text, const struct sl_filter_limits *limits,
                  struct sl_filter **ret_filter, struct sl_filter_error *reterr)
{
    return sl_filter_new_warned(text, limits, ret_filter, reterr, NULL);
}
