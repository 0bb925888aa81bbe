#include "base/utf8.h"

#include <stdint.h>

static const char *skip_ascii(const char *at, const char *end)
{
    uint64_t word;

    while (end - at >= (ptrdiff_t)sizeof(word)) {
        memcpy(&word, at, sizeof(word));
        if (word & UINT64_C(0x8080808080808080))
            break;
        at += sizeof(word);
    }
    while (at < end && !(*at & 0x80))
        at++;
    return at;
}

static enum utf8_state after_lead(unsigned char lead)
{
    if (lead < 0x80)
        return UTF8_WHOLE;
    if (lead < 0xc2 || lead > 0xf4)
        return UTF8_INVALID;
    if (lead < 0xe0)
        return UTF8_TAIL_1;
    switch (lead) {
    case 0xe0:
        return UTF8_AFTER_E0;
    case 0xed:
        return UTF8_AFTER_ED;
    case 0xf0:
        return UTF8_AFTER_F0;
    case 0xf4:
        return UTF8_AFTER_F4;
    default:
        return lead < 0xf0 ? UTF8_TAIL_2 : UTF8_TAIL_3;
    }
}

static enum utf8_state after_byte(enum utf8_state state, unsigned char byte)
{
    static const struct {
        unsigned char least, most;
        enum utf8_state next;
    } rows[] = {
        [UTF8_TAIL_1] = {0x80, 0xbf, UTF8_WHOLE},    [UTF8_TAIL_2] = {0x80, 0xbf, UTF8_TAIL_1},
        [UTF8_TAIL_3] = {0x80, 0xbf, UTF8_TAIL_2},   [UTF8_AFTER_E0] = {0xa0, 0xbf, UTF8_TAIL_1},
        [UTF8_AFTER_ED] = {0x80, 0x9f, UTF8_TAIL_1}, [UTF8_AFTER_F0] = {0x90, 0xbf, UTF8_TAIL_2},
        [UTF8_AFTER_F4] = {0x80, 0x8f, UTF8_TAIL_2},
    };

    if (state == UTF8_WHOLE)
        return after_lead(byte);
    return byte >= rows[state].least && byte <= rows[state].most ? rows[state].next : UTF8_INVALID;
}

enum utf8_state utf8_read(enum utf8_state state, struct sl_slice piece)
{
    const char *at = piece.data;
    const char *end = at + piece.size;

    while (state != UTF8_INVALID && at < end) {
        if (state == UTF8_WHOLE)
            at = skip_ascii(at, end);
        if (at < end)
            state = after_byte(state, (unsigned char)*at++);
    }
    return state;
}
