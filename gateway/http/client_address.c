/* client_address.c - evaluates X-Forwarded-For and Forwarded element by element, from the right.
 *
 * The element at the right end was written by a trusted proxy; what is left of it may come from
 * anybody, including an unclosed quote. Therefore elements are also split from the right, and a
 * malformed one ends the walk: the last good hop is the client. Such a request is not refused: the
 * client counts as its proxy, and the case is counted.
 *
 * If a header has several lines the last ones are kept (http_head.h), which are the relevant ones.
 * The cost is linear in the size of the header. */
#include "gateway/http/client_address.h"

#include <string.h>

/* Removes the last element from `*rest`: what follows the last comma that is not between quotes.
 * Escaped quotes within quotes do not occur, so an element with one is malformed. */
static bool cut_last(struct sl_slice *rest, struct sl_slice *ret_element)
{
    size_t at = rest->size;
    bool is_quoted = false;

    while (at > 0 && (is_quoted || rest->data[at - 1] != ',')) {
        at--;
        if (rest->data[at] == '\\')
            return false;
        if (rest->data[at] == '"')
            is_quoted = !is_quoted;
    }
    *ret_element = http_trim(sl_slice_from(*rest, at));
    rest->size = at > 0 ? at - 1 : 0;
    return !is_quoted;
}

static bool is_port(struct sl_slice text)
{
    if (text.size < 1 || text.size > 5)
        return false;
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
    }
    return true;
}

/* Parses `192.0.2.1`, `192.0.2.1:80`, `[2001:db8::1]`, `[2001:db8::1]:80`, and `2001:db8::1`. */
static bool read_node(struct sl_slice text, struct ip_address *ret_address)
{
    struct sl_slice host = text, port = SL_SLICE_NONE;
    const char *end;

    if (text.size > 0 && text.data[0] == '[') {
        end = memchr(text.data, ']', text.size);
        if (!end)
            return false;
        host = sl_slice(text.data + 1, (size_t)(end - text.data) - 1);
        port = sl_slice_from(text, host.size + 2);
        if (!memchr(host.data, ':', host.size) || (port.size > 0 && port.data[0] != ':'))
            return false;
    } else if ((end = memchr(text.data, ':', text.size)) &&
               end == memrchr(text.data, ':', text.size)) {
        host = sl_slice(text.data, (size_t)(end - text.data));
        port = sl_slice_from(text, host.size);
    }
    return (port.size == 0 || is_port(sl_slice_from(port, 1))) &&
           ip_address_parse(host, ret_address);
}

/* --- elements --- */

struct hop {
    struct ip_address address;
    bool is_secure;
};

static bool read_plain(struct sl_slice element, struct hop *ret_hop)
{
    return read_node(element, &ret_hop->address);
}

/* Removes quotes, which are allowed only around the whole value. */
static bool unquote(struct sl_slice *value)
{
    if (value->size >= 2 && value->data[0] == '"' && value->data[value->size - 1] == '"')
        *value = sl_slice(value->data + 1, value->size - 2);
    return !memchr(value->data, '"', value->size);
}

enum pair_name { PAIR_OTHER, PAIR_FOR, PAIR_PROTO };

static enum pair_name name_of(struct sl_slice name)
{
    if (http_token_is(name, "for"))
        return PAIR_FOR;
    return http_token_is(name, "proto") ? PAIR_PROTO : PAIR_OTHER;
}

/* Removes the first pair; a semicolon between quotes belongs to it. */
static struct sl_slice next_pair(struct sl_slice *rest)
{
    bool is_quoted = false;
    struct sl_slice pair;
    size_t at = 0;

    while (at < rest->size && (is_quoted || rest->data[at] != ';')) {
        if (rest->data[at++] == '"')
            is_quoted = !is_quoted;
    }
    pair = http_trim(sl_slice(rest->data, at));
    *rest = sl_slice_from(*rest, at < rest->size ? at + 1 : at);
    return pair;
}

/* Parses for=192.0.2.43;proto=https;by="[2001:db8::1]". */
static bool read_forwarded(struct sl_slice element, struct hop *ret_hop)
{
    unsigned seen = 0;

    while (element.size > 0) {
        struct sl_slice pair = next_pair(&element), value;
        const char *equals = memchr(pair.data, '=', pair.size);
        enum pair_name name;

        if (!equals)
            return false;
        name = name_of(sl_slice(pair.data, (size_t)(equals - pair.data)));
        value = sl_slice_from(pair, (size_t)(equals - pair.data) + 1);
        if (!unquote(&value) || (name != PAIR_OTHER && seen & 1u << name))
            return false;
        seen |= 1u << name;
        if (name == PAIR_FOR && !read_node(value, &ret_hop->address))
            return false;
        if (name == PAIR_PROTO)
            ret_hop->is_secure = http_token_is(value, "https") || http_token_is(value, "wss");
    }
    return seen & 1u << PAIR_FOR;
}

/* --- the walk --- */

/* Whether all proxies that wrote a protocol wrote https. */
static bool all_are_https(const struct http_list *protos)
{
    bool is_secure = false;

    for (size_t i = 0; i < HTTP_LIST_LINES; i++) {
        struct sl_slice rest = protos->lines[i];

        while (rest.size > 0) {
            struct sl_slice proto = http_next_element(&rest, ',');

            if (!http_token_is(proto, "https") && !http_token_is(proto, "wss"))
                return false;
            is_secure = true;
        }
    }
    return is_secure;
}

/* false: the walk ends here. */
static bool take_element(const struct client_trust *trust, struct sl_slice element,
                         struct client_found *found)
{
    struct hop hop = {.is_secure = false};

    if (trust->reads_forwarded ? !read_forwarded(element, &hop) : !read_plain(element, &hop)) {
        found->is_unusable = true;
        return false;
    }
    found->address = hop.address;
    found->is_secure = hop.is_secure;
    return ip_networks_contain(&trust->proxies, &hop.address);
}

/* The same for a line. Empty elements are ignored (RFC 9110, 5.6.1.2). */
static bool walk_line(const struct client_trust *trust, struct sl_slice line,
                      struct client_found *found)
{
    while (line.size > 0) {
        struct sl_slice element;

        if (!cut_last(&line, &element)) {
            found->is_unusable = true;
            return false;
        }
        if (element.size > 0 && !take_element(trust, element, found))
            return false;
    }
    return true;
}

struct client_found client_address_find(const struct client_trust *trust,
                                        const struct ip_address *peer,
                                        const struct http_request *request)
{
    const struct http_list *list =
        trust->reads_forwarded ? &request->forwarded : &request->forwarded_for;
    struct client_found found = {.address = *peer};

    for (size_t i = HTTP_LIST_LINES; i > 0 && walk_line(trust, list->lines[i - 1], &found);)
        i--;
    if (!trust->reads_forwarded)
        found.is_secure = all_are_https(&request->forwarded_proto);
    return found;
}
