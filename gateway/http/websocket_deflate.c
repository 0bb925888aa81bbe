/* websocket_deflate.c - parses offers parameter by parameter, and inflates messages into bounded
 * memory.
 *
 * Each offer is evaluated by itself, so that a malformed one does not affect those after it. An
 * inflater has no state between messages. A message may consist of several deflate streams, each
 * with a block marked as its last (RFC 7692, section 7.2.3.4); a stream may refer to the text of
 * the one before, because all of it is one message. Limits: the text by the caller, the streams by
 * MAX_STREAMS. */
#include "gateway/http/websocket_deflate.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include <zlib.h>

#include "base/alloc.h"
#include "base/utf8.h"

enum {
    WINDOW_BITS_LEAST = 8,
    STEP_BYTES = 16 << 10,
    HISTORY_BYTES = 32 << 10,
    MAX_STREAMS = 16 /* of a message: each costs a copy of the history */
};

enum parameter {
    SERVER_NO_CONTEXT_TAKEOVER = 1,
    CLIENT_NO_CONTEXT_TAKEOVER = 2,
    SERVER_MAX_WINDOW_BITS = 4,
    CLIENT_MAX_WINDOW_BITS = 8
};

struct offer {
    unsigned seen; /* bits of enum parameter */
    struct websocket_deflate deflate;
};

/* --- negotiation --- */

/* Splits name and value; the value may be in quotes. Without `=` it is absent. false: malformed. */
static bool split(struct sl_slice parameter, struct sl_slice *ret_name, struct sl_slice *ret_value)
{
    const char *equals = memchr(parameter.data, '=', parameter.size);

    *ret_name = parameter;
    *ret_value = SL_SLICE_NONE;
    if (!equals)
        return parameter.size > 0;
    ret_name->size = (size_t)(equals - parameter.data);
    *ret_value = sl_slice_from(parameter, ret_name->size + 1);
    if (ret_value->size > 0 && ret_value->data[0] == '"') {
        if (ret_value->size < 2 || ret_value->data[ret_value->size - 1] != '"')
            return false;
        *ret_value = sl_slice(ret_value->data + 1, ret_value->size - 2);
    }
    return true;
}

/* 8 to 15, without leading zeros; 0: invalid. */
static uint8_t window_bits(struct sl_slice value)
{
    unsigned bits = 0;

    if (value.size == 0 || value.size > 2 || value.data[0] == '0')
        return 0;
    for (size_t i = 0; i < value.size; i++) {
        if (value.data[i] < '0' || value.data[i] > '9')
            return 0;
        bits = bits * 10 + (unsigned)(value.data[i] - '0');
    }
    return bits >= WINDOW_BITS_LEAST && bits <= DEFLATE_WINDOW_BITS ? (uint8_t)bits : 0;
}

/* Checks whether a parameter may have a value: no, yes, or (client_max_window_bits) either. */
static bool take_parameter(struct offer *offer, struct sl_slice text)
{
    struct sl_slice name, value;
    unsigned parameter;

    if (!split(text, &name, &value))
        return false;
    if (http_token_is(name, "server_no_context_takeover") && !value.data) {
        parameter = SERVER_NO_CONTEXT_TAKEOVER;
        offer->deflate.server_no_context_takeover = true;
    } else if (http_token_is(name, "client_no_context_takeover") && !value.data) {
        parameter = CLIENT_NO_CONTEXT_TAKEOVER;
    } else if (http_token_is(name, "server_max_window_bits") && value.data) {
        parameter = SERVER_MAX_WINDOW_BITS;
        offer->deflate.names_window_bits = true;
        offer->deflate.window_bits = window_bits(value);
        if (offer->deflate.window_bits < DEFLATE_WINDOW_BITS_MIN)
            return false;
    } else if (http_token_is(name, "client_max_window_bits") &&
               (!value.data || window_bits(value))) {
        parameter = CLIENT_MAX_WINDOW_BITS;
    } else {
        return false;
    }
    if (offer->seen & parameter)
        return false;
    offer->seen |= parameter;
    return true;
}

static bool read_offer(struct sl_slice text, struct websocket_deflate *ret_deflate)
{
    struct offer offer = {.deflate = {.is_agreed = true, .window_bits = DEFLATE_WINDOW_BITS}};
    bool ends_in_separator = text.size > 0 && text.data[text.size - 1] == ';';

    if (!http_token_is(http_next_element(&text, ';'), "permessage-deflate") || ends_in_separator)
        return false;
    while (text.size > 0) {
        if (!take_parameter(&offer, http_next_element(&text, ';')))
            return false;
    }
    *ret_deflate = offer.deflate;
    return true;
}

struct websocket_deflate websocket_deflate_choose(const struct http_list *offers)
{
    struct websocket_deflate deflate = {.is_agreed = false};

    for (size_t i = 0; i < HTTP_LIST_LINES; i++) {
        struct sl_slice rest = offers->lines[i];

        while (rest.size > 0) {
            if (read_offer(http_next_element(&rest, ','), &deflate))
                return deflate;
        }
    }
    return deflate;
}

void websocket_deflate_append_header(const struct websocket_deflate *deflate,
                                     struct buffer *headers)
{
    if (!deflate->is_agreed)
        return;
    buffer_append_str(headers, "Sec-WebSocket-Extensions: permessage-deflate; "
                               "client_no_context_takeover");
    if (deflate->server_no_context_takeover)
        buffer_append_str(headers, "; server_no_context_takeover");
    if (deflate->names_window_bits)
        buffer_append_format(headers, "; server_max_window_bits=%u", deflate->window_bits);
    buffer_append_str(headers, "\r\n");
}

/* --- messages of clients --- */

struct websocket_inflater {
    z_stream stream;
    struct buffer text;
    unsigned streams; /* streams of the message that have ended */
};

static void *zlib_alloc(void *owner, unsigned count, unsigned size)
{
    (void)owner;
    return mem_alloc(mem_array_size(count, size));
}

static void zlib_free(void *owner, void *memory)
{
    (void)owner;
    mem_free(memory);
}

struct websocket_inflater *websocket_inflater_new(void)
{
    struct websocket_inflater *inflater = mem_zalloc(sizeof(*inflater));

    if (!inflater)
        return NULL;
    inflater->stream.zalloc = zlib_alloc;
    inflater->stream.zfree = zlib_free;
    if (inflateInit2(&inflater->stream, -DEFLATE_WINDOW_BITS) != Z_OK) {
        mem_free(inflater);
        return NULL;
    }
    return inflater;
}

void websocket_inflater_free(struct websocket_inflater *inflater)
{
    if (!inflater)
        return;
    inflateEnd(&inflater->stream);
    buffer_done(&inflater->text);
    mem_free(inflater);
}

void websocket_inflater_release(struct websocket_inflater *inflater)
{
    buffer_done(&inflater->text);
}

/* Begins another deflate stream of the same message. */
static int begin_next_stream(struct websocket_inflater *inflater)
{
    struct sl_slice said = buffer_slice(&inflater->text);

    if (said.size > HISTORY_BYTES)
        said = sl_slice_from(said, said.size - HISTORY_BYTES);
    if (++inflater->streams > MAX_STREAMS || inflateReset(&inflater->stream) != Z_OK ||
        (said.size > 0 && inflateSetDictionary(&inflater->stream, (const Bytef *)said.data,
                                               (uInt)said.size) != Z_OK))
        return -EBADMSG;
    return 0;
}

/* Inflates all input of the stream. May write one byte more than allowed, which distinguishes a
 * message that is too long from one that just fits. */
static int inflate_input(struct websocket_inflater *inflater, size_t max_bytes)
{
    z_stream *stream = &inflater->stream;
    struct buffer *text = &inflater->text;
    int r = Z_OK;

    for (;;) {
        size_t step = max_bytes + 1 - text->size < STEP_BYTES ? max_bytes + 1 - text->size
                                                              : (size_t)STEP_BYTES;
        char *room = buffer_reserve(text, step);

        if (!room)
            return -ENOMEM;
        stream->next_out = (Bytef *)room;
        stream->avail_out = (uInt)step;
        r = inflate(stream, Z_SYNC_FLUSH);
        text->size += step - stream->avail_out;
        if (text->size > max_bytes)
            return -EMSGSIZE;
        if (r == Z_MEM_ERROR)
            return -ENOMEM;
        if (r != Z_OK && r != Z_STREAM_END && r != Z_BUF_ERROR)
            return -EBADMSG;
        if (r == Z_STREAM_END && begin_next_stream(inflater) < 0)
            return -EBADMSG;
        if (stream->avail_in == 0 && stream->avail_out > 0)
            return 0;
    }
}

/* The last byte was the end of a block, and no other block has begun. */
static bool is_between_blocks(const z_stream *stream)
{
    enum { BEHIND_BLOCK = 128, BITS_LEFT = 63 };

    return (stream->data_type & BEHIND_BLOCK) && (stream->data_type & BITS_LEFT) == 0;
}

static int inflate_message(struct websocket_inflater *inflater, struct sl_slice compressed,
                           size_t max_bytes)
{
    /* The bytes that the sender omits at the end of a message. */
    static const unsigned char tail[] = {0, 0, 0xff, 0xff};
    z_stream *stream = &inflater->stream;
    int r;

    inflater->streams = 0;
    if (inflateReset(stream) != Z_OK)
        return -EBADMSG;
    stream->next_in = (Bytef *)compressed.data;
    stream->avail_in = (uInt)compressed.size;
    r = inflate_input(inflater, max_bytes);
    if (r < 0)
        return r;
    stream->next_in = (Bytef *)tail;
    stream->avail_in = sizeof(tail);
    r = inflate_input(inflater, max_bytes);
    return r == 0 && !is_between_blocks(stream) ? -EBADMSG : r;
}

int websocket_inflate(struct websocket_inflater *inflater, struct sl_slice compressed,
                      size_t max_bytes, struct sl_slice *ret_text)
{
    int r;

    assert(compressed.size <= UINT32_MAX);
    buffer_clear(&inflater->text);
    r = inflate_message(inflater, compressed, max_bytes);
    if (r == 0 && !utf8_is_valid(buffer_slice(&inflater->text)))
        r = -EILSEQ;
    if (r < 0) {
        websocket_inflater_release(inflater);
        return r;
    }
    *ret_text = buffer_slice(&inflater->text);
    return 0;
}
