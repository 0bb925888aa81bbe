/* words.c - parses the text of an event.
 *
 * The raw text is split at its URLs. Each part is normalised into `bytes` and tokenised while it is
 * in the cache. All memory is reused for the next event. */
#include "filters/words_private.h"

#include <errno.h>

#include "base/alloc.h"
#include "filters/list.h"
#include "filters/urls.h"

struct sl_words *sl_words_new(uint64_t seed)
{
    struct sl_words *words = mem_zalloc(sizeof(*words));

    if (!words)
        return NULL;
    words->map = mem_zalloc(sizeof(*words->map));
    if (!words->map) {
        mem_free(words);
        return NULL;
    }
    words->key = sl_word_key_new(seed);
    words->bytes = BUFFER_INIT;
    words->bytes.limit = SL_WORDS_MAX;
    return words;
}

void sl_words_free(struct sl_words *words)
{
    if (!words)
        return;
    sl_token_map_done(words->map);
    mem_free(words->map);
    buffer_done(&words->bytes);
    sl_token_list_done(&words->tokens);
    sl_token_list_done(&words->place);
    mem_free(words->hashtags.items);
    mem_free(words->mentions.items);
    mem_free(words->cashtags.items);
    mem_free(words->urls.items);
    mem_free(words);
}

static void forget(struct sl_words *words)
{
    buffer_clear(&words->bytes);
    words->text_size = 0;
    words->tokens.count = 0;
    words->hashtags.count = 0;
    words->mentions.count = 0;
    words->cashtags.count = 0;
    words->urls.count = 0;
    words->place.count = 0;
    words->login = (struct sl_name){0};
    words->reply_to_login = (struct sl_name){0};
    words->repost_of_login = (struct sl_name){0};
}

/* A name of what has been appended to `bytes` since its size was `offset`. */
static struct sl_name name_from(const struct sl_words *words, size_t offset)
{
    size_t size = words->bytes.size - offset;

    return (struct sl_name){
        .hash = sl_word_hash(&words->key, words->bytes.data + offset, size),
        .offset = (uint32_t)offset,
        .size = (uint32_t)size,
    };
}

static int add_url(struct sl_words *words, const struct sl_url_span *span)
{
    struct sl_url_list *urls = &words->urls;
    size_t offset = words->bytes.size;
    struct sl_url *items;

    items = sl_list_grow(urls->items, urls->count, &urls->capacity, 1, sizeof(*items));
    if (!items)
        return -ENOMEM;
    urls->items = items;
    if (sl_url_append_host(span->host, &words->bytes) < 0)
        return -ENOMEM;
    items[urls->count++] = (struct sl_url){name_from(words, offset), span->path};
    return 0;
}

/* Reads one part of the text, with a barrier between its tokens and those before. */
static int read_piece(struct sl_words *words, struct sl_slice piece)
{
    struct sl_token_list *tokens = &words->tokens;
    size_t offset = words->bytes.size;
    bool barrier = tokens->count > 0;
    int r;

    r = sl_normalise(piece, &words->bytes);
    if (r < 0)
        return r;
    if (barrier) {
        struct sl_token *items;

        items = sl_list_grow(tokens->items, tokens->count, &tokens->capacity, 1, sizeof(*items));
        if (!items)
            return -ENOMEM;
        tokens->items = items;
        items[tokens->count++] = (struct sl_token){0};
    }
    r = sl_words_read_piece(words, offset);
    if (r < 0)
        return r;
    if (barrier && tokens->items[tokens->count - 1].size == 0)
        tokens->count--; /* nothing followed the barrier */
    return 0;
}

static int read_text(struct sl_words *words, struct sl_slice text)
{
    struct sl_url_span url;
    size_t at = 0;
    int r;

    if (text.size == 0)
        return 0;
    while (sl_url_find(text, at, &url)) {
        r = read_piece(words, sl_slice(text.data + at, url.start - at));
        if (r < 0)
            return r;
        r = add_url(words, &url);
        if (r < 0)
            return r;
        at = url.end;
    }
    return read_piece(words, sl_slice(text.data + at, text.size - at));
}

static int read_name(struct sl_words *words, struct sl_slice text, struct sl_name *ret_name)
{
    size_t offset = words->bytes.size;
    int r;

    r = sl_normalise(text, &words->bytes);
    if (r == 0 && words->bytes.size > offset)
        *ret_name = name_from(words, offset);
    return r;
}

static int read_place(struct sl_words *words, struct sl_slice place)
{
    size_t offset = words->bytes.size;
    int r;

    r = sl_normalise(place, &words->bytes);
    if (r < 0 || words->bytes.size == offset)
        return r;
    r = sl_tokenise(sl_slice(words->bytes.data + offset, words->bytes.size - offset), &words->key,
                    &words->place);
    for (size_t i = 0; i < words->place.count; i++)
        words->place.items[i].offset += (uint32_t)offset;
    return r;
}

static int read_urls(struct sl_words *words, const struct sl_event_view *event)
{
    for (size_t i = 0; i < event->url_count; i++) {
        struct sl_url_span url;
        int r;

        if (!sl_url_find(event->urls[i], 0, &url) || url.start != 0)
            continue;
        r = add_url(words, &url);
        if (r < 0)
            return r;
    }
    return 0;
}

int sl_words_read(struct sl_words *words, const struct sl_event_view *event)
{
    int r;

    forget(words);
    r = read_text(words, event->text);
    words->text_size = (uint32_t)words->bytes.size;
    if (r == 0)
        r = sl_token_map_expect(words->map, words->tokens.count);
    if (r == 0)
        r = read_urls(words, event);
    if (r == 0)
        r = read_place(words, event->place);
    if (r == 0)
        r = read_name(words, event->login, &words->login);
    if (r == 0)
        r = read_name(words, event->reply_to.login, &words->reply_to_login);
    if (r == 0)
        r = read_name(words, event->repost_of.login, &words->repost_of_login);
    if (r < 0)
        forget(words);
    return r;
}
