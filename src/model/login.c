/* login.c - ICU checks and folds the characters; the folded form goes through the same check.
 *
 * The buffers are on the stack: a login has at most 64 bytes and folds to at most 18 times as many
 * units. The shard of a login is the CRC-32 of its folded form modulo the number of shards. Both
 * this and the rules for logins are part of the database format; changing either requires a new
 * schema. */
#include "src/model/login.h"

#include <errno.h>
#include <stdbool.h>

#include <unicode/uchar.h>
#include <unicode/unorm2.h>
#include <unicode/ustring.h>
#include <unicode/utf16.h>

#include "src/model/text.h"

/* NFKC_Casefold makes at most 18 code points of one (U+FDFA), and 64 bytes are at most 64 code
 * points. */
enum { FOLDED_UNITS = SL_LOGIN_SIZE * 18 };

static bool is_login_char(UChar32 c)
{
    return c == '_' || (U_GET_GC_MASK(c) & (U_GC_L_MASK | U_GC_M_MASK | U_GC_N_MASK)) != 0;
}

static int check_chars(const UChar *text, int32_t length, struct sl_slice login,
                       struct failure *reterr)
{
    for (int32_t at = 0; at < length;) {
        UChar32 c;

        U16_NEXT(text, at, length, c);
        if (!is_login_char(c))
            return failure_set(reterr, -EINVAL,
                               "the login '%.*s' holds U+%04X; a login is made of letters, "
                               "digits and _",
                               SL_SLICE_ARG(login), (unsigned)c);
    }
    return 0;
}

/* Removes every U+0307 that follows an i. Returns the new length. */
static int32_t remove_dots(UChar *text, int32_t length)
{
    int32_t kept = 0;

    for (int32_t at = 0; at < length; at++) {
        if (text[at] != 0x0307 || at == 0 || text[at - 1] != 'i')
            text[kept++] = text[at];
    }
    return kept;
}

/* Normalises `text` in place. Returns the new length, or a negative errno. */
static int32_t fold(UChar *text, int32_t length)
{
    UErrorCode error = U_ZERO_ERROR;
    const UNormalizer2 *casefold = unorm2_getNFKCCasefoldInstance(&error);
    UChar folded[FOLDED_UNITS];
    int32_t folded_length;

    folded_length = unorm2_normalize(casefold, text, length, folded, FOLDED_UNITS, &error);
    if (U_FAILURE(error))
        return -ENOMEM;
    folded_length = remove_dots(folded, folded_length);
    u_memcpy(text, folded, folded_length);
    return folded_length;
}

int sl_login_fold(struct sl_slice login, char room[static SL_LOGIN_SIZE],
                  struct sl_slice *ret_folded, struct failure *reterr)
{
    UErrorCode error = U_ZERO_ERROR;
    UChar text[FOLDED_UNITS];
    int32_t length = 0, size = 0;
    int r;

    r = sl_text_check_line(login, "the login", SL_LOGIN_SIZE, reterr);
    if (r < 0)
        return r;
    u_strFromUTF8(text, FOLDED_UNITS, &length, login.data, (int32_t)login.size, &error);
    if (U_FAILURE(error))
        return failure_set(reterr, -EINVAL, "the login is not valid UTF-8");
    r = check_chars(text, length, login, reterr);
    if (r < 0)
        return r;
    length = fold(text, length);
    if (length < 0)
        return failure_set(reterr, -ENOMEM, "out of memory");
    r = check_chars(text, length, login, reterr);
    if (r < 0)
        return r;
    if (length == 0)
        return failure_set(reterr, -EINVAL, "the login consists of invisible characters");
    u_strToUTF8(room, SL_LOGIN_SIZE, &size, text, length, &error);
    if (error != U_ZERO_ERROR && error != U_STRING_NOT_TERMINATED_WARNING)
        return failure_set(reterr, -EINVAL, "the login '%.*s' is longer than %d bytes when folded",
                           SL_SLICE_ARG(login), SL_LOGIN_SIZE);
    *ret_folded = sl_slice(room, (size_t)size);
    return 0;
}

/* CRC-32 of IEEE 802.3, reflected. Without a table, because logins are short. */
static uint32_t crc32(struct sl_slice bytes)
{
    uint32_t crc = 0xFFFFFFFF;

    for (size_t i = 0; i < bytes.size; i++) {
        crc ^= (unsigned char)bytes.data[i];
        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ ((crc & 1) ? 0xEDB88320 : 0);
    }
    return ~crc;
}

uint32_t sl_login_shard(struct sl_slice folded, uint32_t shards)
{
    return crc32(folded) % shards;
}
