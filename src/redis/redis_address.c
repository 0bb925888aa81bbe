/* redis_address.c - four schemes, a parser each, put together of parts (src/model/url_parts.h).
 *
 * The last @ ends the password, so that one with a bare @ in it is not taken for a host. All parts
 * have rooms of fixed size in the address; more hosts than it has room for are refused.
 * Printing leaves secrets out, and gives back what parses to the same address. */
#include "src/redis/redis_address.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "src/model/url_parts.h"

enum { REDIS_PORT = 6379, SENTINEL_PORT = 26379 };

static int parse_db(struct sl_slice text, uint32_t *ret_db, struct failure *reterr)
{
    if (sl_url_number(text, INT32_MAX, ret_db) < 0)
        return failure_set(reterr, -EINVAL, "the Redis database '%.*s' is not a number",
                           SL_SLICE_ARG(text));
    return 0;
}

/* user:password, or :password. */
static int parse_login(struct sl_slice text, struct sl_redis_login *login, struct failure *reterr)
{
    size_t colon = sl_url_index(text, ':');
    int r;

    if (colon == text.size || colon + 1 == text.size)
        return failure_set(reterr, -EINVAL,
                           "before the @ of a Redis URL stands user:password or :password");
    r = sl_url_decode(sl_url_head(text, colon), login->user, sizeof(login->user), "Redis user",
                      reterr);
    if (r < 0)
        return r;
    return sl_url_decode(sl_slice_from(text, colon + 1), login->password, sizeof(login->password),
                         "Redis password", reterr);
}

static int parse_endpoint(struct sl_slice text, uint16_t port, struct sl_redis_endpoint *endpoint,
                          struct failure *reterr)
{
    endpoint->port = port;
    return sl_url_endpoint(text, "Redis", endpoint->host, &endpoint->port, reterr);
}

/* [user:password@]rest, up to the first slash. *ret_rest is what stands behind the @, *ret_path
 * what stands behind the slash. */
static int split_authority(struct sl_slice text, struct sl_redis_login *login,
                           struct sl_slice *ret_rest, struct sl_slice *ret_path,
                           struct failure *reterr)
{
    size_t slash = sl_url_index(text, '/');
    size_t at = slash;

    *ret_path = sl_slice_from(text, slash < text.size ? slash + 1 : slash);
    /* The last @, so that a password with a bare @ in it is not taken for a host. */
    while (at > 0 && text.data[at - 1] != '@')
        at--;
    *ret_rest = sl_slice(text.data + at, slash - at);
    return at > 0 ? parse_login(sl_url_head(text, at - 1), login, reterr) : 0;
}

static int parse_tcp(struct sl_slice text, struct sl_redis_address *address, struct failure *reterr)
{
    struct sl_slice endpoint, db;
    int r = split_authority(text, &address->login, &endpoint, &db, reterr);

    if (r == 0)
        r = parse_endpoint(endpoint, REDIS_PORT, &address->endpoint, reterr);
    if (r == 0 && db.size > 0)
        r = parse_db(db, &address->db, reterr);
    return r;
}

/* host[:port],host[:port],... */
static int parse_endpoints(struct sl_slice text, const char *what, uint16_t port, uint32_t most,
                           struct sl_redis_endpoint *endpoints, uint32_t *ret_count,
                           struct failure *reterr)
{
    for (uint32_t count = 0;;) {
        size_t comma = sl_url_index(text, ',');
        int r;

        if (count == most)
            return failure_set(reterr, -EINVAL, "a Redis URL names at most %u %s", (unsigned)most,
                               what);
        r = parse_endpoint(sl_url_head(text, comma), port, &endpoints[count], reterr);
        if (r < 0)
            return r;
        *ret_count = ++count;
        if (comma == text.size)
            return 0;
        text = sl_slice_from(text, comma + 1);
    }
}

static int parse_master_name(struct sl_slice name, struct sl_redis_address *address,
                             struct failure *reterr)
{
    if (name.size == 0)
        return failure_set(reterr, -EINVAL,
                           "behind the sentinels stands the name of the master, as in "
                           "redis+sentinel://host/mymaster");
    if (name.size >= sizeof(address->master_name))
        return failure_set(reterr, -EINVAL, "the name of the master is longer than %zu bytes",
                           sizeof(address->master_name) - 1);
    for (size_t i = 0; i < name.size; i++) {
        /* as Sentinel has it: letters, digits, . - _ */
        if (!sl_url_is_host_char(name.data[i], false))
            return failure_set(reterr, -EINVAL,
                               "the name of the master holds a character that none has");
    }
    memcpy(address->master_name, name.data, name.size);
    address->master_name[name.size] = '\0';
    return 0;
}

static int parse_sentinel_option(struct sl_slice text, struct sl_redis_address *address,
                                 struct failure *reterr)
{
    size_t equals = sl_url_index(text, '=');
    struct sl_slice name = sl_url_head(text, equals);
    struct sl_slice value = sl_slice_from(text, equals < text.size ? equals + 1 : equals);
    struct sl_redis_login *login = &address->sentinel_login;

    if (sl_slice_is(name, "db"))
        return parse_db(value, &address->db, reterr);
    if (sl_slice_is(name, "sentinel-user"))
        return sl_url_decode(value, login->user, sizeof(login->user), "Redis user", reterr);
    if (sl_slice_is(name, "sentinel-password"))
        return sl_url_decode(value, login->password, sizeof(login->password), "Redis password",
                             reterr);
    return failure_set(reterr, -EINVAL,
                       "after the name of the master only db, sentinel-user and sentinel-password "
                       "may stand");
}

static int parse_sentinel(struct sl_slice text, struct sl_redis_address *address,
                          struct failure *reterr)
{
    struct sl_slice endpoints, name, options;
    size_t mark;
    int r = split_authority(text, &address->login, &endpoints, &name, reterr);

    if (r < 0)
        return r;
    mark = sl_url_index(name, '?');
    options = sl_slice_from(name, mark < name.size ? mark + 1 : mark);
    r = parse_endpoints(endpoints, "sentinels", SENTINEL_PORT, SL_REDIS_SENTINELS_MAX,
                        address->sentinels, &address->sentinel_count, reterr);
    if (r == 0)
        r = parse_master_name(sl_url_head(name, mark), address, reterr);
    while (r == 0 && options.size > 0) {
        size_t end = sl_url_index(options, '&');

        r = parse_sentinel_option(sl_url_head(options, end), address, reterr);
        options = sl_slice_from(options, end < options.size ? end + 1 : end);
    }
    if (r == 0 && address->sentinel_login.user[0] && !address->sentinel_login.password[0])
        r = failure_set(reterr, -EINVAL, "sentinel-user needs a sentinel-password");
    return r;
}

static int parse_cluster(struct sl_slice text, struct sl_redis_address *address,
                         struct failure *reterr)
{
    struct sl_slice endpoints, rest;
    int r = split_authority(text, &address->login, &endpoints, &rest, reterr);

    if (r < 0)
        return r;
    if (rest.size > 0 || sl_url_index(endpoints, '?') < endpoints.size)
        return failure_set(reterr, -EINVAL,
                           "behind the nodes of a cluster stands nothing: it has no databases to "
                           "choose from");
    return parse_endpoints(endpoints, "nodes", REDIS_PORT, SL_REDIS_SEEDS_MAX, address->seeds,
                           &address->seed_count, reterr);
}

static int parse_unix(struct sl_slice text, struct sl_redis_address *address,
                      struct failure *reterr)
{
    static const struct sl_slice db_is = SL_SLICE("db=");
    size_t mark = sl_url_index(text, '?');
    struct sl_slice path = sl_url_head(text, mark);
    int r;

    if (path.size < 2 || path.data[0] != '/')
        return failure_set(reterr, -EINVAL,
                           "a unix: URL holds an absolute path: unix:///path/to/socket");
    r = sl_url_decode(path, address->path, sizeof(address->path), "Redis socket path", reterr);
    if (r < 0)
        return r;
    if (mark == text.size)
        return 0;
    text = sl_slice_from(text, mark + 1);
    if (!sl_slice_starts_with(text, db_is))
        return failure_set(reterr, -EINVAL, "after a socket path only ?db=N may stand");
    return parse_db(sl_slice_from(text, db_is.size), &address->db, reterr);
}

int sl_redis_address_parse(struct sl_slice url, struct sl_redis_address *ret_address,
                           struct failure *reterr)
{
    static const struct sl_slice redis = SL_SLICE("redis://");
    static const struct sl_slice rediss = SL_SLICE("rediss://");
    static const struct sl_slice unix_socket = SL_SLICE("unix://");
    static const struct sl_slice sentinel = SL_SLICE("redis+sentinel://");
    static const struct sl_slice cluster = SL_SLICE("redis+cluster://");
    struct sl_redis_address address = {0};
    int r;

    if (sl_slice_starts_with(url, rediss))
        return failure_set(reterr, -EINVAL,
                           "rediss:// (Redis over TLS) is not supported; use redis:// through a "
                           "TLS tunnel on this machine, or unix://");
    if (sl_slice_starts_with(url, redis))
        r = parse_tcp(sl_slice_from(url, redis.size), &address, reterr);
    else if (sl_slice_starts_with(url, unix_socket))
        r = parse_unix(sl_slice_from(url, unix_socket.size), &address, reterr);
    else if (sl_slice_starts_with(url, sentinel))
        r = parse_sentinel(sl_slice_from(url, sentinel.size), &address, reterr);
    else if (sl_slice_starts_with(url, cluster))
        r = parse_cluster(sl_slice_from(url, cluster.size), &address, reterr);
    else
        r = failure_set(reterr, -EINVAL,
                        "a Redis URL is redis://[user:password@]host[:port][/db], unix:///path, "
                        "redis+sentinel://host[:port],.../master-name or "
                        "redis+cluster://host[:port],...");
    if (r < 0)
        return r;
    *ret_address = address;
    return 0;
}

/* Characters that stand for themselves in the path of an URL. */
static bool is_plain(char c)
{
    return sl_url_is_host_char(c, false) || (c != '\0' && strchr("/~!$&'()*+,;=:@", c));
}

static void print_path(const char *path, char *room, size_t room_size)
{
    size_t used = 0;

    for (; *path && used + 4 <= room_size; path++) {
        if (is_plain(*path))
            room[used++] = *path;
        else
            used += (size_t)snprintf(room + used, room_size - used, "%%%02X", (unsigned char)*path);
    }
    room[used] = '\0';
}

bool sl_redis_endpoint_equals(const struct sl_redis_endpoint *a, const struct sl_redis_endpoint *b)
{
    return a->port == b->port && strcmp(a->host, b->host) == 0;
}

void sl_redis_endpoint_print(const struct sl_redis_endpoint *endpoint, char *room, size_t room_size)
{
    snprintf(room, room_size, strchr(endpoint->host, ':') ? "[%s]:%u" : "%s:%u", endpoint->host,
             (unsigned)endpoint->port);
}

/* Returns how much of the room is used. */
static size_t print_endpoints(const struct sl_redis_endpoint *endpoints, uint32_t count, char *room,
                              size_t room_size, size_t used)
{
    char endpoint[SL_REDIS_ENDPOINT_TEXT_SIZE];

    for (uint32_t i = 0; i < count && used < room_size; i++) {
        sl_redis_endpoint_print(&endpoints[i], endpoint, sizeof(endpoint));
        used += (size_t)snprintf(room + used, room_size - used, i > 0 ? ",%s" : "%s", endpoint);
    }
    return used;
}

static void print_sentinels(const struct sl_redis_address *address, char *room, size_t room_size)
{
    size_t used = (size_t)snprintf(room, room_size, "redis+sentinel://");

    used = print_endpoints(address->sentinels, address->sentinel_count, room, room_size, used);
    if (used < room_size)
        used += (size_t)snprintf(room + used, room_size - used, "/%s", address->master_name);
    if (address->db && used < room_size)
        snprintf(room + used, room_size - used, "?db=%" PRIu32, address->db);
}

void sl_redis_address_print(const struct sl_redis_address *address, char *room, size_t room_size)
{
    char endpoint[SL_REDIS_ENDPOINT_TEXT_SIZE];
    char path[3 * sizeof(address->path) + 1];

    if (address->path[0]) {
        print_path(address->path, path, sizeof(path));
        if (address->db)
            snprintf(room, room_size, "unix://%s?db=%" PRIu32, path, address->db);
        else
            snprintf(room, room_size, "unix://%s", path);
        return;
    }
    if (address->sentinel_count > 0) {
        print_sentinels(address, room, room_size);
        return;
    }
    if (address->seed_count > 0) {
        print_endpoints(address->seeds, address->seed_count, room, room_size,
                        (size_t)snprintf(room, room_size, "redis+cluster://"));
        return;
    }
    sl_redis_endpoint_print(&address->endpoint, endpoint, sizeof(endpoint));
    snprintf(room, room_size, "redis://%s/%" PRIu32, endpoint, address->db);
}
