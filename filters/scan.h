/* filters/scan.h - the lexical rules that all members of a filter share: white space and lists.
 *
 * White space is space, tab, CR, LF and U+3000. Lists are separated by ',' and U+FF0C. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"

/* Size of the white space character at the start of `text`: 1, 3, or 0 for none. */
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

/* Size of the comma at the start of `text`: 1, 3, or 0 for none. */
static inline size_t sl_scan_comma(struct sl_slice text)
{
    if (text.size == 0)
        return 0;
    if (text.data[0] == ',')
        return 1;
    return text.size >= 3 && memcmp(text.data, "\xEF\xBC\x8C", 3) == 0 ? 3 : 0;
}

/* `text` without the white space at both ends. */
struct sl_slice sl_scan_trim(struct sl_slice text);

/* Removes the next item, trimmed, from *rest. Begin with the whole text, which has one item more
 * than commas. false: there are no more. */
bool sl_scan_item(struct sl_slice *rest, struct sl_slice *ret_item);

/* Removes the next word, which is surrounded by white space, from *rest. false: there are no
 * more. */
bool sl_scan_word(struct sl_slice *rest, struct sl_slice *ret_word);

/* The number of code points of valid UTF-8. */
size_t sl_scan_length(struct sl_slice text);
/* The first `count` code points, or all. */
struct sl_slice sl_scan_first(struct sl_slice text, size_t count);
