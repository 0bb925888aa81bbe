/* event_keys.c - the keys of an event: everything that a filter which matches it may be filed
 * under.
 *
 * Tokens and pairs of adjacent tokens, hashtags and other names, users by their relation to the
 * event, hosts with all their parent domains and the first segment of the path, the place, and
 * cells of the map. The number of keys depends only on the event: a few hundred for a post. A key
 * that no filter has costs the index one test. */
#include "filters/index_keys.h"

#include "filters/ascii.h"
#include "filters/verbatim.h"

uint64_t sl_key_of_url(const struct sl_index_keys *index, uint64_t host_hash, struct sl_slice path)
{
    const char *end = memchr(path.data + 1, '/', path.size - 1);
    size_t size = end ? (size_t)(end - path.data) : path.size;
    uint64_t path_hash = sl_word_hash(&index->word_key, path.data, size);

    return sl_key_of_hash(index, SL_KEY_HOST_AND_PATH,
                          sl_word_hash_pair(&index->word_key, host_hash, path_hash));
}

static void push(struct buffer *keys, uint64_t key)
{
    buffer_append(keys, &key, sizeof(key));
}

/* Pairs with a barrier are never looked up by a filter: its hash is 0. */
static void add_tokens(const struct sl_index_keys *index, const struct sl_token_list *tokens,
                       struct buffer *keys)
{
    const struct sl_token *items = tokens->items;
    uint64_t *key;

    key = (uint64_t *)(void *)buffer_reserve(keys, 2 * tokens->count * sizeof(*key));
    if (!key || tokens->count == 0)
        return;
    for (size_t i = 0; i < tokens->count; i++)
        *key++ = items[i].hash;
    for (size_t i = 1; i < tokens->count; i++)
        *key++ = sl_word_hash_pair(&index->word_key, items[i - 1].hash, items[i].hash);
    keys->size += (2 * tokens->count - 1) * sizeof(*key);
}

static void add_names(const struct sl_index_keys *index, enum sl_key_kind kind,
                      const struct sl_name_list *names, struct buffer *keys)
{
    for (size_t i = 0; i < names->count; i++)
        push(keys, sl_key_of_hash(index, kind, names->items[i].hash));
}

static void add_name(const struct sl_index_keys *index, enum sl_key_kind kind,
                     const struct sl_name *name, struct buffer *keys)
{
    if (name->size > 0)
        push(keys, sl_key_of_hash(index, kind, name->hash));
}

static void add_user(const struct sl_index_keys *index, enum sl_key_kind kind,
                     enum sl_key_kind any_kind, struct sl_slice id, struct buffer *keys)
{
    uint64_t hash;

    if (!id.data)
        return;
    hash = sl_word_hash(&index->word_key, id.data, id.size);
    push(keys, sl_key_of_hash(index, kind, hash));
    push(keys, sl_key_of_hash(index, any_kind, hash));
}

/* Adds the host and each of its parent domains. */
static void add_url(const struct sl_index_keys *index, const struct sl_words *words,
                    const struct sl_url *url, struct buffer *keys)
{
    struct sl_slice domain = sl_words_name(words, &url->host);
    const char *dot;

    while (domain.size > 0) {
        uint64_t hash = sl_word_hash(&index->word_key, domain.data, domain.size);

        push(keys, sl_key_of_hash(index, SL_KEY_HOST, hash));
        if (url->path.size > 0)
            push(keys, sl_key_of_url(index, hash, url->path));
        dot = memchr(domain.data, '.', domain.size);
        if (!dot)
            return;
        domain = sl_slice_from(domain, (size_t)(dot - domain.data) + 1);
    }
}

static void add_verbatim(const struct sl_index_keys *index, const struct sl_words *words,
                         struct buffer *keys)
{
    struct sl_stretches stretches = {.words = words};
    struct sl_link_words link_words = {.words = words};
    struct sl_slice written, bare;

    while (sl_stretches_next(&stretches, &written, &bare)) {
        push(keys, sl_key_of_text(index, SL_KEY_VERBATIM, written));
        if (bare.size != written.size)
            push(keys, sl_key_of_text(index, SL_KEY_VERBATIM, bare));
    }
    while (sl_link_words_next(&link_words, &written))
        push(keys, sl_key_of_text(index, SL_KEY_LINK_WORD, written));
}

static void add_place(const struct sl_index_keys *index, const struct sl_token_list *place,
                      struct buffer *keys)
{
    uint64_t hash = 0;

    if (place->count == 0)
        return;
    for (size_t i = 0; i < place->count; i++)
        hash = sl_word_hash_pair(&index->word_key, hash, place->items[i].hash);
    push(keys, sl_key_of_hash(index, SL_KEY_PLACE, hash));
}

/* Adds the first subtag. Ranges begin with at most eight letters. */
static void add_language(const struct sl_index_keys *index, struct sl_slice lang,
                         struct buffer *keys)
{
    char lower[8];
    size_t size = 0;

    if (lang.size == 0)
        lang = SL_SLICE("und");
    while (size < lang.size && lang.data[size] != '-') {
        if (size == sizeof(lower))
            return;
        lower[size] = sl_ascii_lower(lang.data[size]);
        size++;
    }
    push(keys, sl_key_of_text(index, SL_KEY_LANGUAGE, sl_slice(lower, size)));
}

static void add_country(const struct sl_index_keys *index, struct sl_slice country,
                        struct buffer *keys)
{
    char upper[2];

    if (country.size != sizeof(upper))
        return;
    for (size_t i = 0; i < sizeof(upper); i++)
        upper[i] = sl_ascii_upper(country.data[i]);
    push(keys, sl_key_of_text(index, SL_KEY_COUNTRY, sl_slice(upper, sizeof(upper))));
}

/* Both ends of the map are the same meridian: a shape that reaches one end also looks up the
 * other. */
static void add_shape(const struct sl_box_grid *grid, struct sl_box shape, struct buffer *cells)
{
    if (shape.west > shape.east) {
        add_shape(grid, (struct sl_box){shape.west, shape.south, 180.0, shape.north}, cells);
        shape.west = -180.0;
        sl_box_grid_find(grid, &shape, cells);
        return;
    }
    sl_box_grid_find(grid, &shape, cells);
    if (shape.west == -180.0)
        sl_box_grid_find(grid, &(struct sl_box){180.0, shape.south, 180.0, shape.north}, cells);
    if (shape.east == 180.0)
        sl_box_grid_find(grid, &(struct sl_box){-180.0, shape.south, -180.0, shape.north}, cells);
}

static void add_location(const struct sl_index_keys *index, const struct sl_event_view *event,
                         struct buffer *keys, struct buffer *cells)
{
    struct sl_box shape;

    if (event->has_point)
        shape = sl_box_of_point(event->point);
    else if (event->has_box)
        shape = event->box;
    else
        return;
    add_shape(&index->grid, shape, cells);
    if (shape.north == 90.0)
        push(keys, sl_key_of_pole(index, SL_NORTH_POLE));
    if (shape.south == -90.0)
        push(keys, sl_key_of_pole(index, SL_SOUTH_POLE));
}

void sl_event_keys(const struct sl_index_keys *index, const struct sl_event_view *event,
                   const struct sl_words *words, struct buffer *keys, struct buffer *cells)
{
    push(keys, sl_key_of_type(index, event->type));
    if (!sl_event_is_post(event)) {
        add_user(index, SL_KEY_FOLLOW_FROM, SL_KEY_FOLLOW_USER, event->user, keys);
        add_user(index, SL_KEY_FOLLOW_TO, SL_KEY_FOLLOW_USER, event->target, keys);
        return;
    }
    add_tokens(index, &words->tokens, keys);
    add_names(index, SL_KEY_HASHTAG, &words->hashtags, keys);
    add_names(index, SL_KEY_MENTION, &words->mentions, keys);
    add_names(index, SL_KEY_CASHTAG, &words->cashtags, keys);
    add_user(index, SL_KEY_AUTHOR, SL_KEY_USER, event->user, keys);
    add_user(index, SL_KEY_REPLY_TO, SL_KEY_USER, event->reply_to.user, keys);
    add_user(index, SL_KEY_REPOST_OF, SL_KEY_USER, event->repost_of.user, keys);
    add_name(index, SL_KEY_AUTHOR_LOGIN, &words->login, keys);
    add_name(index, SL_KEY_REPLY_TO_LOGIN, &words->reply_to_login, keys);
    add_name(index, SL_KEY_REPOST_OF_LOGIN, &words->repost_of_login, keys);
    for (size_t i = 0; i < words->urls.count; i++)
        add_url(index, words, &words->urls.items[i], keys);
    if (index->verbatim_filters > 0)
        add_verbatim(index, words, keys);
    add_place(index, &words->place, keys);
    add_language(index, event->lang, keys);
    add_country(index, event->country, keys);
    add_location(index, event, keys, cells);
}
