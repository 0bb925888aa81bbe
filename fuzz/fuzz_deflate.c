/* fuzz_deflate.c - negotiation of compression, and limits when inflating messages of clients.
 *
 * The input is used three times: as offers of extensions and as accepted codings, one per line, and
 * as a compressed message. */
#include "fuzz/fuzz.h"

#include <errno.h>
#include <string.h>

#include "base/buffer.h"
#include "base/utf8.h"
#include "gateway/http/accept.h"
#include "gateway/http/accept_encoding.h"
#include "gateway/http/websocket_deflate.h"

enum { MAX_BYTES = 1000, ENOUGH_BYTES = 4 << 20 };

static struct http_list list_of(struct sl_slice text)
{
    struct http_list list = {0};

    for (size_t i = 0; i < HTTP_LIST_LINES && text.size > 0; i++) {
        const char *end = memchr(text.data, '\n', text.size);

        list.lines[i] = sl_slice(text.data, end ? (size_t)(end - text.data) : text.size);
        text = sl_slice_from(text, list.lines[i].size + (end ? 1 : 0));
    }
    return list;
}

static bool is_same(const struct websocket_deflate *a, const struct websocket_deflate *b)
{
    return a->is_agreed == b->is_agreed && a->window_bits == b->window_bits &&
           a->names_window_bits == b->names_window_bits &&
           a->server_no_context_takeover == b->server_no_context_takeover;
}

/* The answer, parsed as an offer, requests the same. */
static void check_offers(struct sl_slice text)
{
    const struct http_list offers = list_of(text);
    const struct websocket_deflate deflate = websocket_deflate_choose(&offers);
    struct buffer header = BUFFER_INIT;
    struct websocket_deflate again;
    struct http_list answer = {0};
    size_t name = strlen("Sec-WebSocket-Extensions: ");

    websocket_deflate_append_header(&deflate, &header);
    must(deflate.is_agreed == (header.size > 0));
    if (deflate.is_agreed) {
        must(deflate.window_bits >= DEFLATE_WINDOW_BITS_MIN);
        must(deflate.window_bits <= DEFLATE_WINDOW_BITS);
        answer.lines[0] = sl_slice(header.data + name, header.size - name - 2);
        again = websocket_deflate_choose(&answer);
        must(is_same(&deflate, &again));
    }
    buffer_done(&header);
}

static void check_codings(struct sl_slice text)
{
    const struct http_list codings = list_of(text);
    const struct accept_encoding accept = accept_encoding_read(&codings);

    must(accept.gzip >= 0 && accept.gzip <= ACCEPT_WEIGHT_MAX);
    must(accept.identity >= 0 && accept.identity <= ACCEPT_WEIGHT_MAX);
    must(accept.zstd >= 0 && accept.zstd <= ACCEPT_WEIGHT_MAX);
    must(accept.gzip > 0 || !accept_encoding_prefers(&accept, accept.gzip));
    must(accept.zstd > 0 || !accept_encoding_prefers(&accept, accept.zstd));
}

/* With a lower limit the result is the same, or nothing. */
static void check_message(struct sl_slice message)
{
    static struct websocket_inflater *little, *enough;
    struct sl_slice text, more;
    int r, r_more;

    if (!little) {
        little = websocket_inflater_new();
        enough = websocket_inflater_new();
    }
    must(little && enough);
    r = websocket_inflate(little, message, MAX_BYTES, &text);
    r_more = websocket_inflate(enough, message, ENOUGH_BYTES, &more);
    must(r == 0 || r == -EMSGSIZE || r == -EBADMSG || r == -EILSEQ);
    if (r == 0) {
        must(r_more == 0 && sl_slice_equal(text, more));
        must(text.size <= MAX_BYTES && utf8_is_valid(text));
    } else if (r == -EMSGSIZE) {
        must(r_more < 0 || more.size > MAX_BYTES);
    } else {
        must(r_more == r);
    }
    websocket_inflater_release(little);
    websocket_inflater_release(enough);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct sl_slice input = sl_slice((const char *)data, size);

    check_offers(input);
    check_codings(input);
    check_message(input);
    return 0;
}
