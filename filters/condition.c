/* condition.c - reads conditions and says whether they are true.
 *
 * An atom is looked up in the few names, tokens or users that an event has; nothing is allocated,
 * and nothing is remembered. Lists of names compare hashes first and bytes then: a hash saves time
 * but never decides. */
#include "filters/condition.h"

#include <assert.h>

#include "filters/ascii.h"
#include "filters/box.h"
#include "filters/sample.h"

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

bool sl_condition_next_token(struct sl_slice *rest, struct sl_condition_token *ret_token)
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

/* Do the tokens of a keyword after its first stand from token `at` on? */
static bool keyword_goes_on(struct sl_slice rest, const struct sl_words *words, size_t at)
{
    struct sl_condition_token wanted;

    for (; sl_condition_next_token(&rest, &wanted); at++) {
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

    sl_condition_next_token(&operand, &first);
    hash = sl_word_hash(&words->key, first.text.data, first.text.size);
    at = sl_token_map_first(words->map, tokens->items, tokens->count, hash);
    for (; at < tokens->count; at = sl_token_map_next(words->map, tokens->count, at)) {
        if (tokens->items[at].hash == hash && is_token(words, &tokens->items[at], first.text) &&
            keyword_goes_on(operand, words, at + 1))
            return true;
    }
    return false;
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

static bool box_holds(struct sl_slice operand, const struct sl_event_view *event)
{
    struct sl_box box, shape;

    memcpy(&box, operand.data, sizeof(box));
    if (event->has_point)
        shape = sl_box_of_point(event->point);
    else if (event->has_box)
        shape = event->box;
    else
        return false;
    return sl_boxes_touch(&box, &shape);
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

/* Of who follows whom, only ids can be told. */
static bool holds_of_follow(const struct sl_condition *condition, const struct sl_event_view *event)
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
    if (event->type == SL_EVENT_FOLLOW || event->type == SL_EVENT_UNFOLLOW)
        return holds_of_follow(&condition, event);
    return holds_of_post(&condition, event, words);
}
