/* jetstream_ids.c - escapes names, and maps ids to times.
 *
 * A millisecond has 4096 ids but only 1000 microseconds, so each shard gets as many cursors as fit,
 * which is nearly always more than the ids that it uses. */
#include "gateway/dialects/jetstream_ids.h"

#include <string.h>

#include "filters/ascii.h"
#include "src/model/id.h"

#define OURS SL_SLICE("did:sluice:")

enum { LABEL_MAX_BYTES = 63, HANDLE_MAX_BYTES = 253 };
enum { DID_MAX_BYTES = 2048, US_PER_MS = 1000, TID_CLOCK_BITS = 10, TID_DIGIT_BITS = 5 };

/* --- names ----------------------------------------------------------------------------------- */

static bool is_alphanumeric(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* Characters that need no escape in a DID or a record key. */
static bool is_plain(char c)
{
    return is_alphanumeric(c) || c == '.' || c == '_' || c == '-';
}

static void append_escaped(struct sl_slice bytes, char escape, const char *others,
                           struct buffer *text)
{
    static const char digits[] = "0123456789ABCDEF";

    for (size_t i = 0; i < bytes.size; i++) {
        unsigned char c = (unsigned char)bytes.data[i];

        if (is_plain((char)c) || (c && strchr(others, c))) {
            buffer_append_char(text, (char)c);
        } else {
            buffer_append_char(text, escape);
            buffer_append_char(text, digits[c >> 4]);
            buffer_append_char(text, digits[c & 15]);
        }
    }
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The syntax of AT Protocol: did:method:anything, https://atproto.com/specs/did. */
static bool is_did(struct sl_slice text)
{
    size_t at = 4;

    if (!sl_slice_starts_with(text, SL_SLICE("did:")) || text.size > DID_MAX_BYTES)
        return false;
    while (at < text.size && text.data[at] >= 'a' && text.data[at] <= 'z')
        at++;
    if (at == 4 || at + 1 >= text.size || text.data[at] != ':')
        return false;
    while (++at < text.size) {
        if (!is_plain(text.data[at]) && text.data[at] != ':' && text.data[at] != '%')
            return false;
    }
    return is_plain(text.data[text.size - 1]);
}

/* A label of a host name, in which `hyphen` is used instead of a hyphen. */
static bool is_label(struct sl_slice text, char hyphen)
{
    if (text.size == 0 || text.size > LABEL_MAX_BYTES || !is_alphanumeric(text.data[0]) ||
        !is_alphanumeric(text.data[text.size - 1]))
        return false;
    for (size_t i = 0; i < text.size; i++) {
        if (!is_alphanumeric(text.data[i]) && text.data[i] != hyphen)
            return false;
    }
    return true;
}

/* https://atproto.com/specs/handle: at least two labels, the last of which begins with a letter. */
static bool is_handle(struct sl_slice text)
{
    size_t count = 0;
    struct sl_slice label = text;

    if (text.size > HANDLE_MAX_BYTES)
        return false;
    for (const char *dot = text.data; dot; count++) {
        dot = memchr(label.data, '.', label.size);
        if (!is_label(dot ? sl_slice(label.data, (size_t)(dot - label.data)) : label, '-'))
            return false;
        if (dot)
            label = sl_slice_from(label, (size_t)(dot - label.data) + 1);
    }
    return count >= 2 && !(label.data[0] >= '0' && label.data[0] <= '9');
}

static void append_lower(struct sl_slice login, struct buffer *text)
{
    for (size_t i = 0; i < login.size; i++)
        buffer_append_char(text, login.data[i] == '_' ? '-' : sl_ascii_lower(login.data[i]));
}

void jetstream_append_handle(struct sl_slice login, struct buffer *text)
{
    if (is_handle(login)) {
        append_lower(login, text);
    } else if (is_label(login, '_')) {
        append_lower(login, text);
        buffer_append_str(text, ".sluice.invalid");
    } else {
        buffer_append_str(text, "handle.invalid");
    }
}

void jetstream_append_did(struct sl_slice user, struct buffer *text)
{
    if (is_did(user) && !sl_slice_starts_with(user, OURS)) {
        buffer_append_slice(text, user);
        return;
    }
    buffer_append_slice(text, OURS);
    append_escaped(user, '%', "", text);
}

bool jetstream_append_user(struct sl_slice did, struct buffer *user)
{
    bool is_ours = sl_slice_starts_with(did, OURS);

    if (!is_did(did))
        return false;
    if (!is_ours)
        buffer_append_slice(user, did);
    for (size_t i = OURS.size; is_ours && i < did.size; i++) {
        int high = did.data[i] == '%' && did.size - i > 2 ? hex_value(did.data[i + 1]) : -1;
        int low = high >= 0 ? hex_value(did.data[i + 2]) : -1;

        buffer_append_char(user, low >= 0 ? (char)(high << 4 | low) : did.data[i]);
        i += low >= 0 ? 2 : 0;
    }
    return true;
}

void jetstream_append_key(struct sl_slice user, struct buffer *text)
{
    if (sl_slice_is(user, ".") || sl_slice_is(user, ".."))
        buffer_append_str(text, user.size == 1 ? "~2E" : "~2E~2E"); /* not valid as keys */
    else
        append_escaped(user, '~', ":", text);
}

/* --- times ----------------------------------------------------------------------------------- */

/* A zero bit, 53 bits of microseconds and ten further bits. The 4096 ids of a millisecond are in
 * its first four microseconds. */
void jetstream_tid(uint64_t id, char ret_text[static JETSTREAM_TID_SIZE])
{
    static const char digits[] = "234567abcdefghijklmnopqrstuvwxyz";
    uint64_t in_ms = id % SL_ID_PER_MS;
    uint64_t us = sl_id_time_ms(id) * US_PER_MS + (in_ms >> TID_CLOCK_BITS);
    uint64_t number = us << TID_CLOCK_BITS | (in_ms & ((1 << TID_CLOCK_BITS) - 1));

    for (int i = JETSTREAM_TID_SIZE - 2; i >= 0; i--) {
        ret_text[i] = digits[number & ((1 << TID_DIGIT_BITS) - 1)];
        number >>= TID_DIGIT_BITS;
    }
    ret_text[JETSTREAM_TID_SIZE - 1] = '\0';
}

/* The number of cursors of a shard in a millisecond. */
static uint32_t room_of_shard(uint32_t shards)
{
    return shards * SL_ID_PER_SHARD <= US_PER_MS ? SL_ID_PER_SHARD : US_PER_MS / shards;
}

uint64_t jetstream_time_us(uint64_t id, uint32_t shards)
{
    uint32_t room = room_of_shard(shards), number = id % SL_ID_PER_SHARD;
    uint32_t us = sl_id_shard(id) * room + (number < room ? number : room - 1);

    return sl_id_time_ms(id) * US_PER_MS + (us < US_PER_MS ? us : US_PER_MS - 1);
}

uint64_t jetstream_id_at(uint64_t time_us, uint32_t shards)
{
    uint64_t first = sl_id_first_at(time_us / US_PER_MS);
    uint32_t room = room_of_shard(shards), us = time_us % US_PER_MS;
    uint32_t shard = us / room, number = us % room;

    if (time_us / US_PER_MS < SL_ID_EPOCH_MS || first == SL_ID_MAX)
        return first;
    if (shard >= shards)
        return first + (uint64_t)shards * SL_ID_PER_SHARD - 1;
    if (room < SL_ID_PER_SHARD && number == room - 1)
        number--; /* other ids may share this cursor */
    return first + shard * SL_ID_PER_SHARD + number;
}
