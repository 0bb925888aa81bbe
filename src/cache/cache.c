/* cache.c - chooses the server and the key of an item, and verifies the values that come back.
 *
 * Each item belongs to the server of highest weight (rendezvous hashing: Thaler, Ravishankar,
 * "Using name-based mappings to increase hit rates", 1998): adding or removing a server moves only
 * the items of that server. There is no substitute for a server that is down: its items are misses.
 *
 * Key: "sluice:1:<database, 16 hex>:post:<id>", where 1 is the version of the layout. Value: a
 * header of fixed size, then the value itself:
 *
 *     <mark, 16 hex> <wall clock when it was read, ms, 16 hex>\n
 *
 * The mark is a hash of the key and everything after the mark. The database tag in the key and the
 * secret of the mark are derived from the database's id, which they do not reveal. */
#include "src/cache/cache.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/hash.h"
#include "src/cache/cache_memcached.h"
#include "src/model/url_parts.h"

enum {
    PORT = 11211,
    KEY_SIZE = 64,
    MARK_SIZE = 16,
    HEAD_SIZE = MARK_SIZE + 1 + 16 + 1,
};

struct endpoint {
    char host[SL_URL_HOST_SIZE]; /* or the path of a socket */
    uint16_t port;               /* 0: a socket */
};

struct server {
    struct sl_memcached *connection;
    struct endpoint endpoint;
    char name[SL_URL_HOST_SIZE + 8]; /* HOST:PORT, or the path */
    struct hash_key weight_key;
    uint64_t rest_until_ms; /* monotonic; 0: the server works */
};

struct sl_cache {
    struct sl_cache_options options;
    struct hash_key mark_key;
    uint64_t tag; /* of the database, in keys */
    struct sl_cache_counts counts;
    size_t server_count;
    struct server servers[SL_CACHE_SERVERS_MAX];
};

/* Users before version 0.2, whose values had no version, were stored as `user`. */
static const char *const kind_names[] = {"post", "profile"};

/* ---- the URL ---- */

static int read_path(const char *path, struct endpoint *ret_endpoint, struct failure *reterr)
{
    const size_t max = sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1;

    if (!path[1])
        return failure_set(reterr, -EINVAL, "the cache's URL names no socket behind memcached://");
    if (strlen(path) > max)
        return failure_set(reterr, -EINVAL,
                           "the path of the cache's socket is longer than %zu bytes", max);
    snprintf(ret_endpoint->host, sizeof(ret_endpoint->host), "%s", path);
    ret_endpoint->port = 0;
    return 0;
}

static int read_url(const char *url, struct endpoint ret_endpoints[SL_CACHE_SERVERS_MAX],
                    size_t *ret_count, struct failure *reterr)
{
    const struct sl_slice scheme = SL_SLICE("memcached://");
    const char *at = url + scheme.size;
    size_t count = 0;
    int r = 0;

    if (!sl_slice_starts_with(sl_slice_str(url), scheme))
        return failure_set(reterr, -EINVAL,
                           "'%s' is not the URL of a cache: memcached://host[:port][,host...] or "
                           "memcached:///path/of/socket",
                           url);
    if (at[0] == '/') {
        r = read_path(at, &ret_endpoints[count++], reterr);
    } else {
        for (bool is_last = false; r == 0 && !is_last;) {
            size_t size = strcspn(at, ",");

            if (count == SL_CACHE_SERVERS_MAX)
                return failure_set(reterr, -EINVAL, "a cache has at most %d servers",
                                   SL_CACHE_SERVERS_MAX);
            ret_endpoints[count].port = PORT;
            r = sl_url_endpoint(sl_slice(at, size), "cache's", ret_endpoints[count].host,
                                &ret_endpoints[count].port, reterr);
            count++;
            is_last = at[size] == '\0';
            at += size + 1;
        }
    }
    if (r == 0)
        *ret_count = count;
    return r;
}

int sl_cache_check(const char *url, struct failure *reterr)
{
    struct endpoint endpoints[SL_CACHE_SERVERS_MAX];
    size_t count;

    return read_url(url, endpoints, &count, reterr);
}

/* ---- opening and closing ---- */

static int add_server(struct sl_cache *cache, const struct endpoint *endpoint)
{
    struct server *server = &cache->servers[cache->server_count];
    const struct hash_key name_key = {1, 0};

    server->endpoint = *endpoint;
    if (endpoint->port > 0)
        snprintf(server->name, sizeof(server->name), "%.*s:%u", SL_URL_HOST_SIZE - 1,
                 endpoint->host, endpoint->port);
    else
        snprintf(server->name, sizeof(server->name), "%.*s", SL_URL_HOST_SIZE - 1, endpoint->host);
    server->weight_key.k0 = hash_slice(name_key, sl_slice_str(server->name));
    server->connection =
        sl_memcached_new(server->endpoint.host, endpoint->port, cache->options.timeout_ms,
                         HEAD_SIZE + SL_CACHE_VALUE_MAX);
    if (!server->connection)
        return -ENOMEM;
    cache->server_count++;
    return 0;
}

int sl_cache_open(const char *url, const char *database_id, const struct sl_cache_options *options,
                  struct sl_cache **ret_cache, struct failure *reterr)
{
    const struct sl_slice id = sl_slice_str(database_id);
    struct endpoint endpoints[SL_CACHE_SERVERS_MAX];
    struct sl_cache *cache;
    size_t count;
    int r;

    r = read_url(url, endpoints, &count, reterr);
    if (r < 0)
        return r;
    cache = mem_zalloc(sizeof(*cache));
    if (!cache)
        return failure_set(reterr, -ENOMEM, "out of memory");
    cache->options = *options;
    if (options->ttl_ms == 0)
        cache->options.ttl_ms = SL_CACHE_TTL_MS;
    else if (options->ttl_ms > SL_CACHE_TTL_MAX_MS)
        cache->options.ttl_ms = SL_CACHE_TTL_MAX_MS;
    if (options->timeout_ms == 0)
        cache->options.timeout_ms = SL_CACHE_TIMEOUT_MS;
    if (options->rest_ms == 0)
        cache->options.rest_ms = SL_CACHE_REST_MS;
    cache->tag = hash_slice((struct hash_key){2, 0}, id);
    cache->mark_key.k0 = hash_slice((struct hash_key){3, 0}, id);
    cache->mark_key.k1 = hash_slice((struct hash_key){4, 0}, id);
    for (size_t i = 0; r == 0 && i < count; i++)
        r = add_server(cache, &endpoints[i]);
    if (r < 0) {
        sl_cache_close(cache);
        return failure_set(reterr, r, "out of memory");
    }
    *ret_cache = cache;
    return 0;
}

void sl_cache_close(struct sl_cache *cache)
{
    if (!cache)
        return;
    for (size_t i = 0; i < cache->server_count; i++)
        sl_memcached_free(cache->servers[i].connection);
    mem_free(cache);
}

const struct sl_cache_counts *sl_cache_counts(const struct sl_cache *cache)
{
    return &cache->counts;
}

/* ---- servers ---- */

static struct server *server_of(struct sl_cache *cache, const struct sl_cache_item *item)
{
    const uint64_t thing[2] = {item->kind, item->id};
    struct server *best = NULL;
    uint64_t best_weight = 0;

    for (size_t i = 0; i < cache->server_count; i++) {
        uint64_t weight = hash_bytes(cache->servers[i].weight_key, thing, sizeof(thing));

        if (!best || weight > best_weight) {
            best = &cache->servers[i];
            best_weight = weight;
        }
    }
    return best;
}

static bool is_resting(const struct server *server)
{
    return server->rest_until_ms > 0 && clock_monotonic_ms() < server->rest_until_ms;
}

bool sl_cache_is_away(const struct sl_cache *cache)
{
    for (size_t i = 0; i < cache->server_count; i++) {
        if (cache->servers[i].rest_until_ms == 0)
            return false;
    }
    return true;
}

/* Handles the result of an operation. */
static void judge_server(struct sl_cache *cache, struct server *server, int r,
                         const struct failure *failure)
{
    bool was_well = server->rest_until_ms == 0;

    if (r < 0)
        cache->counts.errors++;
    if (r == -ENOMEM)
        return; /* says nothing about the server */
    server->rest_until_ms = r == -EIO ? clock_monotonic_ms() + cache->options.rest_ms : 0;
    if (cache->options.tell && was_well != (r != -EIO))
        cache->options.tell(cache->options.context, server->name, r == -EIO ? failure->text : NULL);
}

/* ---- keys and values ---- */

static struct sl_slice print_key(const struct sl_cache *cache, const struct sl_cache_item *item,
                                 char room[static KEY_SIZE])
{
    int size = snprintf(room, KEY_SIZE, "sluice:1:%016" PRIx64 ":%s:%" PRIu64, cache->tag,
                        kind_names[item->kind], item->id);

    assert(size > 0 && size < KEY_SIZE);
    return sl_slice(room, (size_t)size);
}

/* The mark for what follows it. */
static void print_mark(const struct sl_cache *cache, struct sl_slice key, struct sl_slice behind,
                       char room[static MARK_SIZE + 1])
{
    const uint64_t both[2] = {hash_slice(cache->mark_key, key),
                              hash_slice(cache->mark_key, behind)};

    snprintf(room, MARK_SIZE + 1, "%016" PRIx64, hash_bytes(cache->mark_key, both, sizeof(both)));
}

static bool read_hex(const char *text, uint64_t *ret_number)
{
    uint64_t number = 0;

    for (int i = 0; i < 16; i++) {
        char c = text[i];
        int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;

        if (digit < 0)
            return false;
        number = number << 4 | (uint64_t)digit;
    }
    *ret_number = number;
    return true;
}

static bool is_too_old(const struct sl_cache *cache, uint64_t read_ms)
{
    uint64_t now_ms = clock_wall_ms();

    return now_ms > read_ms && now_ms - read_ms > cache->options.ttl_ms;
}

/* Whether `text` is a value that we stored and that is still valid. */
static bool open_value(const struct sl_cache *cache, struct sl_slice key, struct sl_slice text,
                       struct sl_slice *ret_value)
{
    uint64_t read_ms;
    char mark[MARK_SIZE + 1];

    if (text.size < HEAD_SIZE || text.size > HEAD_SIZE + SL_CACHE_VALUE_MAX)
        return false;
    print_mark(cache, key, sl_slice_from(text, MARK_SIZE), mark);
    if (memcmp(mark, text.data, MARK_SIZE) != 0 || text.data[MARK_SIZE] != ' ' ||
        !read_hex(text.data + MARK_SIZE + 1, &read_ms) || text.data[HEAD_SIZE - 1] != '\n')
        return false;
    if (is_too_old(cache, read_ms))
        return false;
    *ret_value = sl_slice_from(text, HEAD_SIZE);
    return true;
}

/* Appends the value in its stored form. Returns its size. */
static size_t close_value(const struct sl_cache *cache, struct sl_slice key, struct sl_slice value,
                          uint64_t read_ms, struct buffer *bytes)
{
    const size_t begin = bytes->size;
    char mark[MARK_SIZE + 1] = "                ";

    buffer_append(bytes, mark, MARK_SIZE);
    buffer_append_format(bytes, " %016" PRIx64 "\n", read_ms);
    buffer_append_slice(bytes, value);
    if (bytes->failed)
        return 0;
    print_mark(cache, key, sl_slice_from(buffer_slice(bytes), begin + MARK_SIZE), mark);
    memcpy(bytes->data + begin, mark, MARK_SIZE);
    return bytes->size - begin;
}

/* ---- requests ---- */

/* A request to one server about some of the items. */
struct question {
    struct sl_cache *cache;
    const struct sl_cache_item *items;
    struct sl_slice *keys, *texts;
    size_t *indices;         /* of the items in the request */
    char (*rooms)[KEY_SIZE]; /* buffers for the keys */
    size_t count;
};

static void question_done(struct question *question)
{
    mem_free(question->keys);
    mem_free(question->texts);
    mem_free(question->indices);
    mem_free(question->rooms);
}

/* Makes room for a request about up to `count` items. */
static bool question_init(struct question *question, struct sl_cache *cache,
                          const struct sl_cache_item *items, size_t count)
{
    *question = (struct question){
        .cache = cache,
        .items = items,
        .keys = mem_alloc(mem_array_size(count, sizeof(*question->keys))),
        .texts = mem_alloc(mem_array_size(count, sizeof(*question->texts))),
        .indices = mem_alloc(mem_array_size(count, sizeof(*question->indices))),
        .rooms = mem_alloc(mem_array_size(count, sizeof(*question->rooms))),
    };
    if (count > 0 && question->keys && question->texts && question->indices && question->rooms)
        return true;
    question_done(question);
    return false;
}

/* Fills the request with those items of `server` for which `is_meant` is true. false: there are
 * none. */
static bool question_for(struct question *question, const struct server *server, size_t count,
                         bool (*is_meant)(const struct sl_cache_item *item))
{
    struct sl_cache *cache = question->cache;

    question->count = 0;
    for (size_t i = 0; i < count; i++) {
        const struct sl_cache_item *item = &question->items[i];
        size_t at = question->count;

        if (server_of(cache, item) != server || !is_meant(item))
            continue;
        question->indices[at] = i;
        question->keys[at] = print_key(cache, item, question->rooms[at]);
        question->count++;
    }
    return question->count > 0;
}

static bool is_any(const struct sl_cache_item *item)
{
    (void)item;
    return true;
}

/* ---- get ---- */

struct search {
    struct question question;
    struct sl_cache_item *items;
};

static void on_found(void *context, struct sl_slice key, struct sl_slice text)
{
    struct search *search = context;
    const struct question *question = &search->question;
    struct sl_cache_counts *counts = &question->cache->counts;
    struct sl_slice value;
    char *copy;

    for (size_t i = 0; i < question->count; i++) {
        struct sl_cache_item *item = &search->items[question->indices[i]];

        if (item->value.data || !sl_slice_equal(key, question->keys[i]))
            continue;
        if (!open_value(question->cache, key, text, &value)) {
            counts->refused++;
            continue;
        }
        copy = mem_strndup(value.data, value.size);
        if (!copy)
            continue;
        item->value = sl_slice(copy, value.size);
        counts->hit_bytes += value.size;
    }
}

static void ask_server(struct search *search, struct server *server, size_t count)
{
    struct question *question = &search->question;
    struct failure failure = {""};
    int r;

    if (!question_for(question, server, count, is_any))
        return;
    if (is_resting(server)) {
        question->cache->counts.skipped += question->count;
        return;
    }
    r = sl_memcached_get(server->connection, question->keys, question->count, on_found, search,
                         &failure);
    judge_server(question->cache, server, r, &failure);
}

void sl_cache_get(struct sl_cache *cache, struct sl_cache_item *items, size_t count)
{
    struct search search = {.items = items};

    if (question_init(&search.question, cache, items, count)) {
        for (size_t i = 0; i < cache->server_count; i++)
            ask_server(&search, &cache->servers[i], count);
        question_done(&search.question);
    }
    for (size_t i = 0; i < count; i++) {
        if (items[i].value.data)
            cache->counts.hits++;
        else
            cache->counts.misses++;
    }
}

void sl_cache_items_done(struct sl_cache_item *items, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        mem_free((char *)items[i].value.data);
        items[i].value = SL_SLICE_NONE;
    }
}

/* ---- put and drop ---- */

static bool is_to_be_kept(const struct sl_cache_item *item)
{
    return item->value.data && item->value.size <= SL_CACHE_VALUE_MAX;
}

static void tell_server(struct question *question, struct server *server, uint64_t read_ms,
                        struct buffer *bytes)
{
    struct sl_cache *cache = question->cache;
    struct failure failure = {""};
    size_t stored = 0;
    int r;

    buffer_clear(bytes);
    for (size_t i = 0; i < question->count; i++) {
        question->texts[i].size = close_value(
            cache, question->keys[i], question->items[question->indices[i]].value, read_ms, bytes);
    }
    if (bytes->failed)
        return;
    for (size_t i = 0, at = 0; i < question->count; at += question->texts[i++].size)
        question->texts[i].data = bytes->data + at;
    r = sl_memcached_put(server->connection, question->keys, question->texts, question->count,
                         (uint32_t)(cache->options.ttl_ms / 1000 + 1), &stored, &failure);
    judge_server(cache, server, r, &failure);
    cache->counts.stored += stored;
    if (r < 0)
        return;
    cache->counts.stored_bytes += bytes->size;
    cache->counts.errors += question->count - stored;
}

void sl_cache_put(struct sl_cache *cache, const struct sl_cache_item *items, size_t count,
                  uint64_t read_ms)
{
    struct buffer bytes = BUFFER_INIT;
    struct question question;

    if (is_too_old(cache, read_ms) || !question_init(&question, cache, items, count))
        return;
    for (size_t i = 0; i < cache->server_count; i++) {
        struct server *server = &cache->servers[i];

        if (!is_resting(server) && question_for(&question, server, count, is_to_be_kept))
            tell_server(&question, server, read_ms, &bytes);
    }
    buffer_done(&bytes);
    question_done(&question);
}

void sl_cache_drop(struct sl_cache *cache, const struct sl_cache_item *items, size_t count)
{
    struct question question;

    if (!question_init(&question, cache, items, count))
        return;
    for (size_t i = 0; i < cache->server_count; i++) {
        struct server *server = &cache->servers[i];
        struct failure failure = {""};
        int r;

        if (is_resting(server) || !question_for(&question, server, count, is_any))
            continue;
        r = sl_memcached_drop(server->connection, question.keys, question.count, &failure);
        judge_server(cache, server, r, &failure);
        if (r == 0)
            cache->counts.dropped += question.count;
    }
    question_done(&question);
}
