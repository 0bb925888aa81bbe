#include "src/redis_address.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

static const uint16_t DEFAULT_PORT = 6379;

static struct sl_slice head(struct sl_slice text, size_t size)
{
    return sl_slice(text.data, size);
}

/* Where `c` stands first, text.size when nowhere. */
static size_t find(struct sl_slice text, char c)
{
    const char *at = text.size > 0 ? memchr(text.data, c, text.size) : NULL;

    return at ? (size_t)(at - text.data) : text.size;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* `what` names the part in messages; the part itself may be a secret and is never quoted. */
static int percent_decode(struct sl_slice text, char *room, size_t room_size, const char *what,
                          struct failure *reterr)
{
    size_t used = 0;

    for (size_t i = 0; i < text.size; i++) {
        char c = text.data[i];

        if (c == '%') {
            int high = i + 2 < text.size ? hex_digit(text.data[i + 1]) : -1;
            int low = high >= 0 ? hex_digit(text.data[i + 2]) : -1;

            if (low < 0)
                return failure_set(reterr, -EINVAL,
                                   "the Redis %s holds a %% that two hex digits do not follow",
                                   what);
            c = (char)(high * 16 + low);
            i += 2;
        }
        if (c == '\0')
            return failure_set(reterr, -EINVAL, "the Redis %s holds a NUL byte", what);
        if (used + 1 >= room_size)
            return failure_set(reterr, -EINVAL, "the Redis %s is longer than %zu bytes", what,
                               room_size - 1);
        room[used++] = c;
    }
    room[used] = '\0';
    return 0;
}

static int parse_number(struct sl_slice text, uint32_t max, uint32_t *ret_number)
{
    uint64_t number = 0;

    if (text.size == 0 || text.size > 10)
        return -EINVAL;
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return -EINVAL;
        number = number * 10 + (uint64_t)(text.data[i] - '0');
    }
    if (number > max)
        return -EINVAL;
    *ret_number = (uint32_t)number;
    return 0;
}

static int parse_db(struct sl_slice text, uint32_t *ret_db, struct failure *reterr)
{
    if (parse_number(text, INT32_MAX, ret_db) < 0)
        return failure_set(reterr, -EINVAL, "the Redis database '%.*s' is not a number",
                           SL_SLICE_ARG(text));
    return 0;
}

/* user:password, or :password. */
static int parse_login(struct sl_slice text, struct sl_redis_address *address,
                       struct failure *reterr)
{
    size_t colon = find(text, ':');
    int r;

    if (colon == text.size || colon + 1 == text.size)
        return failure_set(reterr, -EINVAL,
                           "before the @ of a Redis URL stands user:password or :password");
    r = percent_decode(head(text, colon), address->user, sizeof(address->user), "user", reterr);
    if (r < 0)
        return r;
    return percent_decode(sl_slice_from(text, colon + 1), address->password,
                          sizeof(address->password), "password", reterr);
}

static bool is_host_char(char c, bool in_brackets)
{
    if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))
        return true;
    if (c == '.' || c == '-' || c == '_')
        return true;
    return in_brackets && (c == ':' || c == '%');
}

static int parse_host(struct sl_slice text, bool in_brackets, struct sl_redis_address *address,
                      struct failure *reterr)
{
    if (text.size == 0)
        return failure_set(reterr, -EINVAL, "the Redis URL names no host");
    if (text.size >= sizeof(address->host))
        return failure_set(reterr, -EINVAL, "the Redis host is longer than %zu bytes",
                           sizeof(address->host) - 1);
    for (size_t i = 0; i < text.size; i++) {
        if (!is_host_char(text.data[i], in_brackets))
            return failure_set(reterr, -EINVAL,
                               "the Redis host holds a character that no host has");
    }
    memcpy(address->host, text.data, text.size);
    address->host[text.size] = '\0';
    return 0;
}

/* host, host:port, [v6], [v6]:port */
static int parse_host_port(struct sl_slice text, struct sl_redis_address *address,
                           struct failure *reterr)
{
    bool in_brackets = text.size > 0 && text.data[0] == '[';
    size_t end = find(text, in_brackets ? ']' : ':');
    uint32_t port = DEFAULT_PORT;
    struct sl_slice rest;
    int r;

    if (in_brackets) {
        if (end == text.size)
            return failure_set(reterr, -EINVAL, "the Redis host lacks its closing bracket");
        r = parse_host(sl_slice(text.data + 1, end - 1), true, address, reterr);
        rest = sl_slice_from(text, end + 1);
    } else {
        r = parse_host(head(text, end), false, address, reterr);
        rest = sl_slice_from(text, end);
    }
    if (r < 0)
        return r;
    if (rest.size > 0 && (rest.data[0] != ':' ||
                          parse_number(sl_slice_from(rest, 1), UINT16_MAX, &port) < 0 || port == 0))
        return failure_set(reterr, -EINVAL, "the Redis port is not a number from 1 to 65535");
    address->port = (uint16_t)port;
    return 0;
}

static int parse_tcp(struct sl_slice text, struct sl_redis_address *address, struct failure *reterr)
{
    size_t slash = find(text, '/');
    struct sl_slice place = head(text, slash);
    struct sl_slice db = slash < text.size ? sl_slice_from(text, slash + 1) : SL_SLICE_NONE;
    size_t at = place.size;
    int r;

    /* The last @, so that a password with a bare @ in it is not taken for a host. */
    while (at > 0 && place.data[at - 1] != '@')
        at--;
    if (at > 0) {
        r = parse_login(head(place, at - 1), address, reterr);
        if (r < 0)
            return r;
    }
    r = parse_host_port(sl_slice_from(place, at), address, reterr);
    if (r < 0)
        return r;
    return db.size > 0 ? parse_db(db, &address->db, reterr) : 0;
}

static int parse_unix(struct sl_slice text, struct sl_redis_address *address,
                      struct failure *reterr)
{
    static const struct sl_slice db_is = SL_SLICE("db=");
    size_t mark = find(text, '?');
    struct sl_slice path = head(text, mark);
    int r;

    if (path.size < 2 || path.data[0] != '/')
        return failure_set(reterr, -EINVAL,
                           "a unix: URL holds an absolute path: unix:///path/to/socket");
    r = percent_decode(path, address->path, sizeof(address->path), "socket path", reterr);
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
    else
        r = failure_set(reterr, -EINVAL,
                        "a Redis URL is redis://[user:password@]host[:port][/db] or unix:///path");
    if (r < 0)
        return r;
    *ret_address = address;
    return 0;
}

/* Characters that stand for themselves in the path of an URL. */
static bool is_plain(char c)
{
    return is_host_char(c, false) || (c != '\0' && strchr("/~!$&'()*+,;=:@", c));
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

void sl_redis_address_print(const struct sl_redis_address *address, char *room, size_t room_size)
{
    char path[3 * sizeof(address->path) + 1];

    if (address->path[0]) {
        print_path(address->path, path, sizeof(path));
        if (address->db)
            snprintf(room, room_size, "unix://%s?db=%" PRIu32, path, address->db);
        else
            snprintf(room, room_size, "unix://%s", path);
        return;
    }
    snprintf(room, room_size,
             strchr(address->host, ':') ? "redis://[%s]:%u/%" PRIu32 : "redis://%s:%u/%" PRIu32,
             address->host, (unsigned)address->port, address->db);
}
