/* filters/scan.h - the small grammar that all members of a filter share: white space and lists.
 *
 * White space is space, tab, CR, LF and U+3000; lists are split at ',' and U+FF0C. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"

/* Bytes of white space at the start of `text`: 1, 3, or 0 for none. */
static inline size_t sl_scan_space(struct sl_slice text)
{
    if (text.size == 0)
        return 0;
    switch (text.data[0]) {
    case ' ':
    case '\t':
    case '\r':
    case '\n':
        return 1;
    default:
        return text.size >= 3 && memcmp(text.data, "\xE3\x80\x80", 3) == 0 ? 3 : 0;
    }
}

/* Bytes of the comma at the start of `text`: 1, 3, or 0 for none. */
static inline size_t sl_scan_comma(struct sl_slice text)
{
    if (text.size == 0)
        return 0;
    if (text.data[0] == ',')
        return 1;
    return text.size >= 3 && memcmp(text.data, "\xEF\xBC\x8C", 3) == 0 ? 3 : 0;
}

/* Without the white space at both ends. */
struct sl_slice sl_scan_trim(struct sl_slice text);

/* Takes the next item off *rest, trimmed. Start with the whole text, which is one item more than
 * it has commas; false: there are no more. */
bool sl_scan_item(struct sl_slice *rest, struct sl_slice *ret_item);

/* Takes the next word off *rest: what stands between white space. false: there are no more. */
bool sl_scan_word(struct sl_slice *rest, struct sl_slice *ret_word);

/* Code points of valid UTF-8. */
size_t sl_scan_length(struct sl_slice text);
/* Its first `count` code points, or all of them. */
struct sl_slice sl_scan_first(struct sl_slice text, size_t count);
