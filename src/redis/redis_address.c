/* redis_address.c - the scheme selects the parser and whether TLS is used; the parsers are composed
 * of the functions in src/model/url_parts.h. Options are found in a table, whose rows say for which
 * addresses they are allowed.
 *
 * The last @ ends the password, so that it may contain an unescaped @. All parts have fixed sizes
 * in the address; too many sentinels are refused. Printing leaves out secrets, and produces a URL
 * that parses to the same address. */
#include "src/redis/redis_address.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
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

/* Parses user:password, or :password. */
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

/* Splits [user:password@]rest, whose first slash follows the last @. *ret_rest is the text between
 * the two, *ret_path what follows the slash, *ret_options what follows a question mark. */
static int split_authority(struct sl_slice text, struct sl_redis_login *login,
                           struct sl_slice *ret_rest, struct sl_slice *ret_path,
                           struct sl_slice *ret_options, struct failure *reterr)
{
    size_t at = sl_url_index(text, '/'), mark, slash;
    struct sl_slice rest;

    /* the last @, so that a password may contain an unescaped @ */
    while (at > 0 && text.data[at - 1] != '@')
        at--;
    rest = sl_slice_from(text, at);
    mark = sl_url_index(rest, '?');
    *ret_options = sl_slice_from(rest, mark < rest.size ? mark + 1 : mark);
    rest = sl_url_head(rest, mark);
    slash = sl_url_index(rest, '/');
    *ret_path = sl_slice_from(rest, slash < rest.size ? slash + 1 : slash);
    *ret_rest = sl_url_head(rest, slash);
    return at > 0 ? parse_login(sl_url_head(text, at - 1), login, reterr) : 0;
}

/* ---- options ---- */

static int parse_file(struct sl_slice value, char *room, const char *what, struct failure *reterr)
{
    int r = sl_url_decode(value, room, SL_REDIS_PATH_SIZE, what, reterr);

    if (r == 0 && room[0] != '/')
        return failure_set(reterr, -EINVAL, "the %s is not an absolute path", what);
    return r;
}

static int parse_name(struct sl_slice value, char *room, struct failure *reterr)
{
    for (size_t i = 0; i < value.size; i++) {
        if (!sl_url_is_host_char(value.data[i], true))
            return failure_set(reterr, -EINVAL, "the ssl-name of Redis is no name of a host");
    }
    return sl_url_decode(value, room, SL_REDIS_PATH_SIZE, "ssl-name of Redis", reterr);
}

enum option {
    OPTION_DB,
    OPTION_SENTINEL_USER,
    OPTION_SENTINEL_PASSWORD,
    OPTION_CA,
    OPTION_CERT,
    OPTION_KEY,
    OPTION_NAME,
    OPTION_COUNT,
};

static const char *const option_names[OPTION_COUNT] = {
    [OPTION_DB] = "db",
    [OPTION_SENTINEL_USER] = "sentinel-user",
    [OPTION_SENTINEL_PASSWORD] = "sentinel-password",
    [OPTION_CA] = "ssl-ca",
    [OPTION_CERT] = "ssl-cert",
    [OPTION_KEY] = "ssl-key",
    [OPTION_NAME] = "ssl-name",
};

static bool may_have(const struct sl_redis_address *address, enum option option)
{
    if (option == OPTION_SENTINEL_USER || option == OPTION_SENTINEL_PASSWORD)
        return address->sentinel_count > 0;
    if (option == OPTION_DB)
        return address->seed_count == 0;
    return address->is_tls;
}

static int refuse_option(const struct sl_redis_address *address, struct failure *reterr)
{
    char names[128] = "";

    for (enum option option = 0; option < OPTION_COUNT; option++) {
        size_t used = strlen(names);

        if (may_have(address, option))
            snprintf(names + used, sizeof(names) - used, "%s%s", used > 0 ? ", " : "",
                     option_names[option]);
    }
    return failure_set(reterr, -EINVAL, "behind the ? of such a Redis URL only these may stand: %s",
                       names);
}

static int set_option(struct sl_redis_address *address, enum option option, struct sl_slice value,
                      struct failure *reterr)
{
    struct sl_redis_login *login = &address->sentinel_login;

    switch (option) {
    case OPTION_DB:
        if (address->db > 0)
            return failure_set(reterr, -EINVAL, "the Redis database is named twice");
        return parse_db(value, &address->db, reterr);
    case OPTION_SENTINEL_USER:
        return sl_url_decode(value, login->user, sizeof(login->user), "Redis user", reterr);
    case OPTION_SENTINEL_PASSWORD:
        return sl_url_decode(value, login->password, sizeof(login->password), "Redis password",
                             reterr);
    case OPTION_CA:
        return parse_file(value, address->tls.ca, "ssl-ca of Redis", reterr);
    case OPTION_CERT:
        return parse_file(value, address->tls.cert, "ssl-cert of Redis", reterr);
    case OPTION_KEY:
        return parse_file(value, address->tls.key, "ssl-key of Redis", reterr);
    case OPTION_NAME:
        return parse_name(value, address->tls.name, reterr);
    case OPTION_COUNT:
        break;
    }
    return refuse_option(address, reterr);
}

static int parse_option(struct sl_slice text, struct sl_redis_address *address,
                        struct failure *reterr)
{
    size_t equals = sl_url_index(text, '=');
    struct sl_slice name = sl_url_head(text, equals);
    struct sl_slice value = sl_slice_from(text, equals < text.size ? equals + 1 : equals);
    enum option option = 0;

    while (option < OPTION_COUNT &&
           (!sl_slice_is(name, option_names[option]) || !may_have(address, option)))
        option++;
    return set_option(address, option, value, reterr);
}

/* Must be called last, because the rest of the address decides which options are allowed. */
static int parse_options(struct sl_slice text, struct sl_redis_address *address,
                         struct failure *reterr)
{
    int r = 0;

    while (r == 0 && text.size > 0) {
        size_t end = sl_url_index(text, '&');

        r = parse_option(sl_url_head(text, end), address, reterr);
        text = sl_slice_from(text, end < text.size ? end + 1 : end);
    }
    if (r == 0 && address->sentinel_login.user[0] && !address->sentinel_login.password[0])
        r = failure_set(reterr, -EINVAL, "sentinel-user needs a sentinel-password");
    if (r == 0 && !address->tls.cert[0] != !address->tls.key[0])
        r = failure_set(reterr, -EINVAL, "ssl-cert and ssl-key of Redis need each other");
    return r;
}

/* ---- hosts and paths ---- */

static int parse_tcp(struct sl_slice text, struct sl_redis_address *address, struct failure *reterr)
{
    struct sl_slice endpoint, db, options;
    int r = split_authority(text, &address->login, &endpoint, &db, &options, reterr);

    if (r == 0)
        r = parse_endpoint(endpoint, REDIS_PORT, &address->endpoint, reterr);
    if (r == 0 && db.size > 0)
        r = parse_db(db, &address->db, reterr);
    return r == 0 ? parse_options(options, address, reterr) : r;
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
        /* as in Sentinel: letters, digits, . - _ */
        if (!sl_url_is_host_char(name.data[i], false))
            return failure_set(reterr, -EINVAL,
                               "the name of the master holds a character that none has");
    }
    memcpy(address->master_name, name.data, name.size);
    address->master_name[name.size] = '\0';
    return 0;
}

static int parse_sentinel(struct sl_slice text, struct sl_redis_address *address,
                          struct failure *reterr)
{
    struct sl_slice endpoints, name, options;
    int r = split_authority(text, &address->login, &endpoints, &name, &options, reterr);

    if (r == 0)
        r = parse_endpoints(endpoints, "sentinels", SENTINEL_PORT, SL_REDIS_SENTINELS_MAX,
                            address->sentinels, &address->sentinel_count, reterr);
    if (r == 0)
        r = parse_master_name(name, address, reterr);
    return r == 0 ? parse_options(options, address, reterr) : r;
}

static int refuse_databases(struct failure *reterr)
{
    return failure_set(reterr, -EINVAL,
                       "behind the nodes of a cluster stands nothing: it has no databases to "
                       "choose from, and what TLS needs stands behind rediss+cluster://");
}

static int parse_cluster(struct sl_slice text, struct sl_redis_address *address,
                         struct failure *reterr)
{
    struct sl_slice endpoints, path, options;
    int r = split_authority(text, &address->login, &endpoints, &path, &options, reterr);

    if (r == 0 && (path.size > 0 || (options.size > 0 && !address->is_tls)))
        r = refuse_databases(reterr);
    if (r == 0)
        r = parse_endpoints(endpoints, "nodes", REDIS_PORT, SL_REDIS_SEEDS_MAX, address->seeds,
                            &address->seed_count, reterr);
    return r == 0 ? parse_options(options, address, reterr) : r;
}

static int parse_unix(struct sl_slice text, struct sl_redis_address *address,
                      struct failure *reterr)
{
    size_t mark = sl_url_index(text, '?');
    struct sl_slice path = sl_url_head(text, mark);
    int r;

    if (path.size < 2 || path.data[0] != '/')
        return failure_set(reterr, -EINVAL,
                           "a unix: URL holds an absolute path: unix:///path/to/socket");
    r = sl_url_decode(path, address->path, sizeof(address->path), "Redis socket path", reterr);
    if (r < 0)
        return r;
    return parse_options(sl_slice_from(text, mark < text.size ? mark + 1 : mark), address, reterr);
}

static const struct scheme {
    struct sl_slice begin;
    int (*parse)(struct sl_slice text, struct sl_redis_address *address, struct failure *reterr);
    bool is_tls;
} schemes[] = {
    {SL_SLICE("redis://"), parse_tcp, false},
    {SL_SLICE("rediss://"), parse_tcp, true},
    {SL_SLICE("unix://"), parse_unix, false},
    {SL_SLICE("redis+sentinel://"), parse_sentinel, false},
    {SL_SLICE("rediss+sentinel://"), parse_sentinel, true},
    {SL_SLICE("redis+cluster://"), parse_cluster, false},
    {SL_SLICE("rediss+cluster://"), parse_cluster, true},
};

int sl_redis_address_parse(struct sl_slice url, struct sl_redis_address *ret_address,
                           struct failure *reterr)
{
    struct sl_redis_address address = {0};
    int r;

    for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
        const struct scheme *scheme = &schemes[i];

        if (!sl_slice_starts_with(url, scheme->begin))
            continue;
        address.is_tls = scheme->is_tls;
        r = scheme->parse(sl_slice_from(url, scheme->begin.size), &address, reterr);
        if (r == 0)
            *ret_address = address;
        return r;
    }
    return failure_set(reterr, -EINVAL,
                       "a Redis URL is redis://[user:password@]host[:port][/db], unix:///path, "
                       "redis+sentinel://host[:port],.../master-name or "
                       "redis+cluster://host[:port],...; over TLS it begins with rediss");
}

/* Characters that need no encoding in the path of a URL. */
static bool is_plain(char c)
{
    return sl_url_is_host_char(c, false) || (c != '\0' && strchr("/~!$&'()*+,;=:@", c));
}

/* Builds a text in a buffer that may be too small. */
struct printing {
    char *room;
    size_t size, used;
    char mark; /* before the next option: ? or & */
};

static void print(struct printing *printing, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void print(struct printing *printing, const char *format, ...)
{
    size_t left = printing->size - printing->used;
    va_list args;
    int size;

    va_start(args, format);
    size = vsnprintf(printing->room + printing->used, left, format, args);
    va_end(args);
    printing->used += (size_t)size < left ? (size_t)size : left - 1;
}

static void print_encoded(struct printing *printing, const char *text, bool is_option)
{
    for (; *text; text++) {
        if (is_plain(*text) && !(is_option && *text == '&'))
            print(printing, "%c", *text);
        else
            print(printing, "%%%02X", (unsigned char)*text);
    }
}

static void print_option(struct printing *printing, enum option option, const char *value)
{
    if (!value[0])
        return;
    print(printing, "%c%s=", printing->mark, option_names[option]);
    print_encoded(printing, value, true);
    printing->mark = '&';
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

static void print_endpoints(struct printing *printing, const struct sl_redis_endpoint *endpoints,
                            uint32_t count)
{
    char text[SL_REDIS_ENDPOINT_TEXT_SIZE];

    for (uint32_t i = 0; i < count; i++) {
        sl_redis_endpoint_print(&endpoints[i], text, sizeof(text));
        print(printing, i > 0 ? ",%s" : "%s", text);
    }
}

static void print_place(const struct sl_redis_address *address, struct printing *printing)
{
    const char *more = address->is_tls ? "s" : "";

    if (address->path[0]) {
        print(printing, "unix://");
        print_encoded(printing, address->path, false);
    } else if (address->sentinel_count > 0) {
        print(printing, "redis%s+sentinel://", more);
        print_endpoints(printing, address->sentinels, address->sentinel_count);
        print(printing, "/%s", address->master_name);
    } else if (address->seed_count > 0) {
        print(printing, "redis%s+cluster://", more);
        print_endpoints(printing, address->seeds, address->seed_count);
    } else {
        print(printing, "redis%s://", more);
        print_endpoints(printing, &address->endpoint, 1);
        print(printing, "/%" PRIu32, address->db);
    }
}

void sl_redis_address_print(const struct sl_redis_address *address, char *room, size_t room_size)
{
    struct printing printing = {.room = room, .size = room_size, .mark = '?'};
    bool has_db_in_path = !address->path[0] && address->sentinel_count == 0;
    char db[sizeof("4294967295")] = "";

    if (address->db > 0 && !has_db_in_path)
        snprintf(db, sizeof(db), "%" PRIu32, address->db);
    print_place(address, &printing);
    print_option(&printing, OPTION_DB, db);
    print_option(&printing, OPTION_CA, address->tls.ca);
    print_option(&printing, OPTION_CERT, address->tls.cert);
    print_option(&printing, OPTION_KEY, address->tls.key);
    print_option(&printing, OPTION_NAME, address->tls.name);
}
