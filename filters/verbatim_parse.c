/* verbatim_parse.c - parses `track` by the rules of Twitter's Streaming API 1.1.
 *
 * Signs are special only at the start of a term. Only phrases that are empty or too long are
 * refused. */
#include <errno.h>
#include <strings.h>

#include "filters/scan.h"
#include "filters/verbatim.h"

/* Like sl_scan_item(), but a full-width comma is not a separator. */
static bool next_phrase(struct sl_slice *rest, struct sl_slice *ret_phrase)
{
    const char *comma;
    size_t size;

    if (!rest->data)
        return false;
    comma = memchr(rest->data, ',', rest->size);
    size = comma ? (size_t)(comma - rest->data) : rest->size;
    *ret_phrase = sl_scan_trim(sl_slice(rest->data, size));
    *rest = comma ? sl_slice_from(*rest, size + 1) : SL_SLICE_NONE;
    return true;
}

static int check_phrases(struct sl_parse *parse, struct sl_slice track, uint32_t max)
{
    struct sl_slice rest = track, phrase;
    uint32_t count = 0;

    while (next_phrase(&rest, &phrase)) {
        count += phrase.size > 0;
        parse->position.item = phrase;
        if (phrase.size > SL_VERBATIM_MAX)
            return sl_parse_refuse(parse, SL_FAULT_PHRASE_TOO_LONG);
    }
    parse->position.item = SL_SLICE_NONE;
    if (count == 0)
        return sl_parse_refuse(parse, SL_FAULT_EMPTY_TRACK);
    parse->sizes.track = count;
    return count > max ? sl_parse_refuse(parse, SL_FAULT_TOO_MANY_PHRASES) : 0;
}

/* Links are matched without their scheme. */
static struct sl_slice without_scheme(struct sl_slice term)
{
    static const char *const schemes[] = {"http://", "https://"};

    for (size_t i = 0; i < 2; i++) {
        size_t size = strlen(schemes[i]);

        if (term.size > size && strncasecmp(term.data, schemes[i], size) == 0)
            return sl_slice_from(term, size);
    }
    return term;
}

/* Whether the tokens are the whole text, without anything in between. */
static bool is_whole_word(struct sl_slice normal, const struct sl_token_list *tokens)
{
    size_t size = 0;

    for (size_t i = 0; i < tokens->count; i++)
        size += tokens->items[i].size;
    return size == normal.size;
}

static int parse_term(struct sl_parse *parse, struct sl_slice term)
{
    static const enum sl_condition_kind kinds[] = {
        [SL_ENTITY_HASHTAG] = SL_CONDITION_HASHTAG,
        [SL_ENTITY_MENTION] = SL_CONDITION_MENTION,
        [SL_ENTITY_CASHTAG] = SL_CONDITION_CASHTAG,
    };
    enum sl_entity_kind entity;
    struct sl_slice normal, name;
    int r;

    buffer_clear(&parse->normal);
    parse->tokens.count = 0;
    r = sl_normalise(without_scheme(term), &parse->normal);
    if (r == 0)
        r = sl_tokenise(buffer_slice(&parse->normal), NULL, &parse->tokens);
    if (r < 0)
        return r;
    normal = buffer_slice(&parse->normal);
    if (normal.size == 0)
        return sl_parse_refuse(parse, SL_FAULT_EMPTY_KEYWORD);
    entity = sl_entity_of(normal, &name);
    if (entity != SL_ENTITY_NONE)
        sl_condition_add(&parse->builder, kinds[entity], name.data, name.size);
    else if (is_whole_word(normal, &parse->tokens))
        sl_condition_add_tokens(&parse->builder, SL_CONDITION_WHOLE_WORD, normal, &parse->tokens);
    else
        sl_condition_add(&parse->builder, SL_CONDITION_VERBATIM, normal.data, normal.size);
    return 0;
}

int sl_parse_verbatim_track(struct sl_parse *parse, struct sl_slice track, uint32_t max)
{
    struct sl_slice phrase, term;
    size_t mark;
    int r = check_phrases(parse, track, max);

    while (r == 0 && next_phrase(&track, &phrase)) {
        if (phrase.size == 0)
            continue;
        mark = parse->builder.bytes.size;
        while (r == 0 && sl_scan_word(&phrase, &term)) {
            parse->position.item = term;
            r = parse_term(parse, term);
        }
        if (r == 0)
            sl_condition_close(&parse->builder, SL_CONDITION_ALL, mark);
    }
    return r;
}
