/* fuzz_proxy.c - are the headers that proxies add about their clients parsed or refused safely?
 *
 * The input is a PROXY header; then the value of X-Forwarded-For, and of Forwarded. What is found
 * must be part of the input, and a whole header must be found whole however it is cut. */
#include "fuzz/fuzz.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "gateway/http/client_address.h"
#include "gateway/http/proxy_header.h"

static void check_parts(struct sl_slice input, size_t whole)
{
    size_t step = input.size % 5 + 1;

    for (size_t size = 0; size < whole; size += step) {
        char *part = mem_copy(input.data, size); /* has no byte after it */
        struct proxy_header header;
        const char *why;

        must(proxy_header_read(sl_slice(part, size), &header, &why) == 0);
        mem_free(part);
    }
}

static void check_header(struct sl_slice input)
{
    struct proxy_header header;
    const char *why = NULL;
    int r = proxy_header_read(input, &header, &why);

    must(r == 0 || r == 1 || (r == -EPROTO && why));
    if (r != 1)
        return;
    must(header.size > 0 && header.size <= input.size && header.size <= PROXY_HEADER_MAX);
    must(header.client.size == 0 || header.client.size == 4 || header.client.size == 16);
    check_parts(input, header.size);
}

/* Whatever the client puts into the header first, what the last proxy appends counts. */
static void check_appended(struct client_trust *trust, struct sl_slice input)
{
    static const char *const appended[] = {", 192.0.2.7", ", for=192.0.2.7"};
    struct ip_address peer = ip_address_of_bytes("\x7f\0\0\1", 4);
    const struct ip_address expected = ip_address_of_bytes("\xc0\0\2\7", 4);
    struct http_request request = {.method = HTTP_GET};
    struct buffer line = BUFFER_INIT;
    struct client_found found;

    buffer_append_slice(&line, input);
    buffer_append_str(&line, appended[trust->reads_forwarded]);
    request.forwarded_for.lines[0] = request.forwarded.lines[0] = buffer_slice(&line);
    found = client_address_find(trust, &peer, &request);
    must(ip_address_equal(&found.address, &expected) && !found.is_unusable);
    buffer_done(&line);
}

static void check_list(struct client_trust *trust, struct sl_slice input)
{
    struct ip_address peer = ip_address_of_bytes("\x7f\0\0\1", 4);
    struct http_request request = {.method = HTTP_GET};
    char *copy = mem_copy(input.data, input.size);
    struct client_found found;

    request.forwarded_for.lines[0] = request.forwarded.lines[0] = sl_slice(copy, input.size);
    request.forwarded_proto.lines[0] = sl_slice(copy, input.size);
    found = client_address_find(trust, &peer, &request);
    must(found.address.size == 4 || found.address.size == 16);
    mem_free(copy);
    check_appended(trust, input);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sl_slice input = sl_slice((const char *)data, size);
    struct client_trust trust = {.reads_forwarded = false};

    must(ip_networks_parse(SL_SLICE("loopback, private"), &trust.proxies, NULL) == 0);
    check_header(input);
    check_list(&trust, input);
    trust.reads_forwarded = true;
    check_list(&trust, input);
    return 0;
}
