/* condition.c - decodes and evaluates conditions.
 *
 * An atom is looked up among the few names, tokens or users of an event. Nothing is allocated and
 * no state is kept. Lists of names compare hashes first and then bytes, so a hash saves time but
 * never decides. */
#include "filters/condition.h"

#include <assert.h>

#include "filters/ascii.h"
#include "filters/box.h"
#include "filters/sample.h"
#include "filters/verbatim.h"

static uint32_t take_varint(struct sl_slice *rest)
{
    uint32_t number = 0;
    unsigned shift = 0;
    unsigned char byte;

    do {
        byte = (unsigned char)rest->data[0];
        number |= (uint32_t)(byte & 0x7F) << shift;
        shift += 7;
        *rest = sl_slice_from(*rest, 1);
    } while (byte & 0x80);
    return number;
}

static struct sl_slice take_bytes(struct sl_slice *rest, size_t size)
{
    struct sl_slice bytes = sl_slice(rest->data, size);

    assert(size <= rest->size);
    *rest = sl_slice_from(*rest, size);
    return bytes;
}

bool sl_condition_next(struct sl_slice *rest, struct sl_condition *ret_condition)
{
    struct sl_slice start = *rest;

    if (rest->size == 0)
        return false;
    ret_condition->kind = (enum sl_condition_kind)take_bytes(rest, 1).data[0];
    ret_condition->operand = take_bytes(rest, take_varint(rest));
    ret_condition->whole = sl_slice(start.data, start.size - rest->size);
    return true;
}

/* Inlined, because it decodes the keywords of every candidate. */
static inline __attribute__((always_inline)) bool next_token(struct sl_slice *rest,
                                                             struct sl_condition_token *ret_token)
{
    uint32_t head;

    if (rest->size == 0)
        return false;
    head = take_varint(rest);
    ret_token->gap = head & 1;
    ret_token->text = take_bytes(rest, head >> 1);
    return true;
}

void sl_condition_read_url(struct sl_slice operand, struct sl_slice *ret_host,
                           struct sl_slice *ret_path)
{
    *ret_host = take_bytes(&operand, take_varint(&operand));
    *ret_path = operand;
}

bool sl_condition_next_token(struct sl_slice *rest, struct sl_condition_token *ret_token)
{
    return next_token(rest, ret_token);
}

struct sl_slice sl_condition_near_terms(struct sl_slice operand, unsigned *ret_between)
{
    *ret_between = (unsigned char)operand.data[operand.size - 1];
    return sl_slice(operand.data, operand.size - 1);
}

static uint32_t number_at(struct sl_slice bytes, size_t at)
{
    uint32_t number;

    memcpy(&number, bytes.data + at * sizeof(number), sizeof(number));
    return number;
}

uint32_t sl_condition_user_count(struct sl_slice operand)
{
    return number_at(operand, 0);
}

struct sl_slice sl_condition_user(struct sl_slice operand, uint32_t at)
{
    const char *bytes = operand.data + sizeof(uint32_t) * (1 + sl_condition_user_count(operand));
    uint32_t start = at > 0 ? number_at(operand, at) : 0;

    return sl_slice(bytes + start, number_at(operand, 1 + at) - start);
}

static bool users_have(struct sl_slice operand, struct sl_slice id)
{
    uint32_t low = 0, high = sl_condition_user_count(operand);

    if (!id.data)
        return false;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        struct sl_slice user = sl_condition_user(operand, middle);
        int order = memcmp(user.data, id.data, user.size < id.size ? user.size : id.size);

        if (order == 0)
            order = (user.size > id.size) - (user.size < id.size);
        if (order == 0)
            return true;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

static bool is_user(struct sl_slice id, struct sl_slice wanted)
{
    return id.data && sl_slice_equal(id, wanted);
}

static bool is_name(const struct sl_words *words, const struct sl_name *name,
                    struct sl_slice wanted)
{
    return name->size > 0 && sl_slice_equal(sl_words_name(words, name), wanted);
}

static bool names_have(const struct sl_words *words, const struct sl_name_list *names,
                       struct sl_slice wanted)
{
    for (size_t i = 0; i < names->count; i++) {
        if (is_name(words, &names->items[i], wanted))
            return true;
    }
    return false;
}

static bool is_token(const struct sl_words *words, const struct sl_token *token,
                     struct sl_slice wanted)
{
    return token->size == wanted.size && sl_slice_equal(sl_words_token(words, token), wanted);
}

/* Whether the tokens of a keyword after the first follow from token `at` on. */
static bool keyword_goes_on(struct sl_slice rest, const struct sl_words *words, size_t at)
{
    struct sl_condition_token wanted;

    for (; next_token(&rest, &wanted); at++) {
        const struct sl_token *token = &words->tokens.items[at];

        if (at == words->tokens.count || !is_token(words, token, wanted.text) ||
            (token->gap && !wanted.gap))
            return false;
    }
    return true;
}

static bool keyword_holds(struct sl_slice operand, const struct sl_words *words)
{
    const struct sl_token_list *tokens = &words->tokens;
    struct sl_condition_token first;
    uint64_t hash;
    size_t at;

    next_token(&operand, &first);
    hash = sl_word_hash(&words->key, first.text.data, first.text.size);
    at = sl_token_map_first(words->map, tokens->items, tokens->count, hash);
    for (; at < tokens->count; at = sl_token_map_next(words->map, tokens->count, at)) {
        if (tokens->items[at].hash == hash && is_token(words, &tokens->items[at], first.text) &&
            keyword_goes_on(operand, words, at + 1))
            return true;
    }
    return false;
}

/* A term of a `near` condition. */
struct near_term {
    struct sl_slice first, rest; /* the first of its tokens, and the encoded rest */
    uint64_t hash;               /* of the first token */
    size_t size;                 /* number of tokens */
    size_t at;                   /* its position, at or after the start that is being tested */
    bool is_repeated;            /* equal to the term before */
};

enum { NEAR_WINDOW = 128 };
static_assert(NEAR_WINDOW > SL_NEAR_MAX_WORDS + SL_NEAR_MAX_BETWEEN, "all terms fit in");

struct near {
    struct near_term terms[SL_NEAR_MAX_TERMS];
    unsigned count, between;
    size_t size;                         /* of all terms, in tokens */
    size_t read;                         /* tokens before this are in `standing` */
    unsigned char standing[NEAR_WINDOW]; /* results of near_terms_at() for the last tokens, as a
                                            ring */
};

static bool near_term_stands(const struct near_term *term, const struct sl_words *words, size_t at)
{
    return is_token(words, &words->tokens.items[at], term->first) &&
           keyword_goes_on(term->rest, words, at + 1);
}

/* The position, from `at` on, of a token with the hash of the term's first token; the number of
 * tokens if there is none. */
static size_t near_term_find(const struct near_term *term, const struct sl_words *words, size_t at)
{
    const struct sl_token_list *tokens = &words->tokens;

    while (at < tokens->count &&
           (tokens->items[at].hash != term->hash || !near_term_stands(term, words, at)))
        at = sl_token_map_next(words->map, tokens->count, at);
    return at;
}

/* false: the text has not enough occurrences of it. */
static bool near_add(struct near *near, const struct sl_condition *keyword,
                     const struct sl_words *words)
{
    const struct sl_token_list *tokens = &words->tokens;
    struct near_term *term = &near->terms[near->count];
    struct sl_condition_token token;
    struct sl_slice rest;

    *term = (struct near_term){.rest = keyword->operand};
    sl_condition_next_token(&term->rest, &token);
    term->first = token.text;
    term->hash = sl_word_hash(&words->key, term->first.data, term->first.size);
    for (rest = keyword->operand; sl_condition_next_token(&rest, &token);)
        term->size++;
    near->size += term->size;

    term->is_repeated = near->count > 0 && term->size == term[-1].size &&
                        sl_slice_equal(term->first, term[-1].first) &&
                        sl_slice_equal(term->rest, term[-1].rest);
    if (!term->is_repeated)
        term->at = sl_token_map_first(words->map, tokens->items, tokens->count, term->hash);
    else
        term->at = sl_token_map_next(words->map, tokens->count, term[-1].at);
    term->at = near_term_find(term, words, term->at);
    near->count++;
    return term->at < tokens->count;
}

/* Moves the position of each term that is at `start` to the next one that no equal term has. */
static void near_pass(struct near *near, const struct sl_words *words, size_t start)
{
    for (unsigned i = 0; i < near->count; i++) {
        struct near_term *term = &near->terms[i];
        size_t last = term->at;

        if (term->at != start)
            continue;
        for (unsigned j = i; j > 0 && near->terms[j].is_repeated; j--)
            last = near->terms[j - 1].at > last ? near->terms[j - 1].at : last;
        for (unsigned j = i + 1; j < near->count && near->terms[j].is_repeated; j++)
            last = near->terms[j].at > last ? near->terms[j].at : last;
        term->at =
            near_term_find(term, words, sl_token_map_next(words->map, words->tokens.count, last));
    }
}

/* The terms that are at token `at`, with a bit for each. */
static unsigned near_terms_at(const struct near *near, const struct sl_words *words, size_t at)
{
    unsigned terms = 0;

    if (at >= words->tokens.count)
        return 0;
    for (unsigned i = 0; i < near->count; i++) {
        if (near->terms[i].hash == words->tokens.items[at].hash &&
            near_term_stands(&near->terms[i], words, at))
            terms |= 1u << i;
    }
    return terms;
}

/* Extends `standing` up to token `end`. */
static void near_read(struct near *near, const struct sl_words *words, size_t end)
{
    for (; near->read < end; near->read++)
        near->standing[near->read % NEAR_WINDOW] =
            (unsigned char)near_terms_at(near, words, near->read);
}

/* Whether all terms can be placed one after the other from token `start` on, if each needs its own
 * words.
 *
 * The state is the set of terms already placed and the number of other words. For each set the
 * lowest number of other words is kept; sets only grow, so one pass over them is enough. */
static bool near_fits(struct near *near, const struct sl_words *words, size_t start)
{
    const unsigned all = (1u << near->count) - 1;
    unsigned char fewest[1 << SL_NEAR_MAX_TERMS], sizes[1 << SL_NEAR_MAX_TERMS] = {0};

    near->read = near->read > start ? near->read : start;
    near_read(near, words, start + near->size + near->between + 1);
    memset(fewest, SL_NEAR_MAX_BETWEEN + 1, all + 1);
    for (unsigned set = 0; set < all; set++) {
        unsigned between = set == 0 ? 0 : fewest[set], most = set == 0 ? 0 : near->between;

        if (set > 0)
            sizes[set] =
                (unsigned char)(sizes[set & (set - 1)] + near->terms[__builtin_ctz(set)].size);
        for (; between <= most; between++) {
            size_t at = start + sizes[set] + between;
            unsigned more = near->standing[at % NEAR_WINDOW] & ~set;

            for (; more != 0; more &= more - 1) {
                unsigned char *best = &fewest[set | (more & -more)];

                *best = between < *best ? (unsigned char)between : *best;
            }
        }
    }
    return fewest[all] <= near->between;
}

/* Goes through the positions of the terms, and checks how far the nearest of the others extend.
 * Only terms of several words can need the same word; then near_fits() decides. */
static bool near_holds(struct sl_slice operand, const struct sl_words *words)
{
    struct near near;
    struct sl_slice rest = sl_condition_near_terms(operand, &near.between);
    struct sl_condition keyword;

    near.count = 0;
    near.size = near.read = 0;
    while (sl_condition_next(&rest, &keyword)) {
        if (!near_add(&near, &keyword, words))
            return false;
    }
    for (;;) {
        size_t start = SIZE_MAX, end = 0;

        for (unsigned i = 0; i < near.count; i++) {
            const struct near_term *term = &near.terms[i];

            if (term->at == words->tokens.count)
                return false;
            start = term->at < start ? term->at : start;
            end = term->at + term->size > end ? term->at + term->size : end;
        }
        if (end - start <= near.size + near.between &&
            (near.size == near.count || near_fits(&near, words, start)))
            return true;
        near_pass(&near, words, start);
    }
}

static bool place_holds(struct sl_slice operand, const struct sl_words *words)
{
    struct sl_condition_token wanted;
    size_t at = 0;

    for (; sl_condition_next_token(&operand, &wanted); at++) {
        if (at == words->place.count || !is_token(words, &words->place.items[at], wanted.text))
            return false;
    }
    return at == words->place.count;
}

static bool host_is_within(struct sl_slice host, struct sl_slice domain)
{
    size_t before;

    if (host.size < domain.size)
        return false;
    before = host.size - domain.size;
    return sl_slice_equal(sl_slice_from(host, before), domain) &&
           (before == 0 || host.data[before - 1] == '.');
}

static bool path_is_below(struct sl_slice path, struct sl_slice top)
{
    return sl_slice_starts_with(path, top) && (path.size == top.size || path.data[top.size] == '/');
}

static bool url_holds(struct sl_slice operand, const struct sl_words *words)
{
    struct sl_slice host, path;

    sl_condition_read_url(operand, &host, &path);
    for (size_t i = 0; i < words->urls.count; i++) {
        const struct sl_url *url = &words->urls.items[i];

        if (host_is_within(sl_words_name(words, &url->host), host) &&
            path_is_below(url->path, path))
            return true;
    }
    return false;
}

/* false: the event has no place on the map. */
static bool shape_of(const struct sl_event_view *event, struct sl_box *ret_shape)
{
    if (event->has_point)
        *ret_shape = sl_box_of_point(event->point);
    else if (event->has_box)
        *ret_shape = event->box;
    return event->has_point || event->has_box;
}

static bool box_holds(struct sl_slice operand, const struct sl_event_view *event)
{
    struct sl_box box, shape;

    memcpy(&box, operand.data, sizeof(box));
    return shape_of(event, &shape) && sl_boxes_touch(&box, &shape);
}

static bool polygon_holds(struct sl_slice operand, const struct sl_event_view *event)
{
    struct sl_polygon polygon = sl_polygon_read(operand);
    struct sl_box shape;

    return shape_of(event, &shape) && sl_polygon_touches(&polygon, &shape);
}

static bool circle_holds(struct sl_slice operand, const struct sl_event_view *event)
{
    struct sl_circle circle;

    memcpy(&circle, operand.data, sizeof(circle));
    return event->has_point && sl_circle_has(&circle, event->point);
}

static bool language_holds(struct sl_slice range, const struct sl_event_view *event)
{
    struct sl_slice lang = event->lang.size > 0 ? event->lang : SL_SLICE("und");

    return lang.size >= range.size && sl_ascii_equal(sl_slice(lang.data, range.size), range) &&
           (lang.size == range.size || lang.data[range.size] == '-');
}

static bool trait_holds(enum sl_condition_trait trait, const struct sl_event_view *event,
                        const struct sl_words *words)
{
    switch (trait) {
    case SL_TRAIT_HASHTAGS:
        return words->hashtags.count > 0;
    case SL_TRAIT_MENTIONS:
        return words->mentions.count > 0;
    case SL_TRAIT_CASHTAGS:
        return words->cashtags.count > 0;
    case SL_TRAIT_LINKS:
        return words->urls.count > 0;
    case SL_TRAIT_MEDIA:
        return event->has_media;
    case SL_TRAIT_GEO:
        return event->has_point || event->has_box;
    case SL_TRAIT_REPLY:
        return event->reply_to.has_post;
    case SL_TRAIT_REPOST:
        return event->repost_of.has_post;
    case SL_TRAIT_QUOTE:
        return event->quote_of.has_post;
    }
    return false;
}

static bool all_hold(struct sl_slice rest, const struct sl_event_view *event,
                     const struct sl_words *words)
{
    struct sl_condition part;

    while (sl_condition_next(&rest, &part)) {
        if (!sl_condition_holds(part.whole, event, words))
            return false;
    }
    return true;
}

static bool any_holds(struct sl_slice rest, const struct sl_event_view *event,
                      const struct sl_words *words)
{
    struct sl_condition part;

    while (sl_condition_next(&rest, &part)) {
        if (sl_condition_holds(part.whole, event, words))
            return true;
    }
    return false;
}

/* Follows, unfollows and changes of users can only be matched by ids; the last have no `target`. */
static bool holds_of_users(const struct sl_condition *condition, const struct sl_event_view *event)
{
    switch (condition->kind) {
    case SL_CONDITION_USERS:
        return users_have(condition->operand, event->user) ||
               users_have(condition->operand, event->target);
    case SL_CONDITION_AUTHOR:
        return is_user(event->user, condition->operand);
    case SL_CONDITION_REPLY_TO:
        return is_user(event->target, condition->operand);
    default:
        return false;
    }
}

static bool holds_of_post(const struct sl_condition *condition, const struct sl_event_view *event,
                          const struct sl_words *words)
{
    struct sl_slice operand = condition->operand;

    switch (condition->kind) {
    case SL_CONDITION_KEYWORD:
        return keyword_holds(operand, words);
    case SL_CONDITION_HASHTAG:
        return names_have(words, &words->hashtags, operand);
    case SL_CONDITION_MENTION:
        return names_have(words, &words->mentions, operand);
    case SL_CONDITION_CASHTAG:
        return names_have(words, &words->cashtags, operand);
    case SL_CONDITION_USERS:
        return users_have(operand, event->user) || users_have(operand, event->reply_to.user) ||
               users_have(operand, event->repost_of.user);
    case SL_CONDITION_AUTHOR:
        return is_user(event->user, operand);
    case SL_CONDITION_REPLY_TO:
        return is_user(event->reply_to.user, operand);
    case SL_CONDITION_REPOST_OF:
        return is_user(event->repost_of.user, operand);
    case SL_CONDITION_AUTHOR_LOGIN:
        return is_name(words, &words->login, operand);
    case SL_CONDITION_REPLY_TO_LOGIN:
        return is_name(words, &words->reply_to_login, operand);
    case SL_CONDITION_REPOST_OF_LOGIN:
        return is_name(words, &words->repost_of_login, operand);
    case SL_CONDITION_URL:
        return url_holds(operand, words);
    case SL_CONDITION_PLACE:
        return place_holds(operand, words);
    case SL_CONDITION_BOX:
        return box_holds(operand, event);
    case SL_CONDITION_CIRCLE:
        return circle_holds(operand, event);
    case SL_CONDITION_LANGUAGE:
        return language_holds(operand, event);
    case SL_CONDITION_COUNTRY:
        return sl_ascii_equal(event->country, operand);
    case SL_CONDITION_TRAIT:
        return trait_holds((enum sl_condition_trait)operand.data[0], event, words);
    case SL_CONDITION_SAMPLE:
        return sl_sample_has(number_at(operand, 0), event->sample_id);
    case SL_CONDITION_NEAR:
        return near_holds(operand, words);
    case SL_CONDITION_POLYGON:
        return polygon_holds(operand, event);
    case SL_CONDITION_WHOLE_WORD:
        return sl_whole_word_holds(operand, words);
    case SL_CONDITION_VERBATIM:
        return sl_verbatim_holds(operand, words);
    case SL_CONDITION_ANYTHING:
    case SL_CONDITION_ALL:
    case SL_CONDITION_ANY:
    case SL_CONDITION_NOT:
        break;
    }
    return false;
}

bool sl_condition_holds(struct sl_slice bytes, const struct sl_event_view *event,
                        const struct sl_words *words)
{
    struct sl_condition condition;

    sl_condition_next(&bytes, &condition);
    switch (condition.kind) {
    case SL_CONDITION_ANYTHING:
        return true;
    case SL_CONDITION_ALL:
        return all_hold(condition.operand, event, words);
    case SL_CONDITION_ANY:
        return any_holds(condition.operand, event, words);
    case SL_CONDITION_NOT:
        return !sl_condition_holds(condition.operand, event, words);
    default:
        break;
    }
    if (event->type != SL_EVENT_POST && event->type != SL_EVENT_DELETE)
        return holds_of_users(&condition, event);
    return holds_of_post(&condition, event, words);
}
