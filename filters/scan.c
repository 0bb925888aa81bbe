#include "filters/scan.h"

struct sl_slice sl_scan_trim(struct sl_slice text)
{
    size_t space;

    while ((space = sl_scan_space(text)) > 0)
        text = sl_slice_from(text, space);
    for (;;) {
        if (text.size > 0 && sl_scan_space(sl_slice_from(text, text.size - 1)) == 1)
            text.size -= 1;
        else if (text.size >= 3 && sl_scan_space(sl_slice_from(text, text.size - 3)) == 3)
            text.size -= 3;
        else
            return text;
    }
}

bool sl_scan_item(struct sl_slice *rest, struct sl_slice *ret_item)
{
    size_t at = 0, comma = 0;

    if (!rest->data)
        return false;
    while (at < rest->size && (comma = sl_scan_comma(sl_slice_from(*rest, at))) == 0)
        at++;
    *ret_item = sl_scan_trim(sl_slice(rest->data, at));
    *rest = at < rest->size ? sl_slice_from(*rest, at + comma) : SL_SLICE_NONE;
    return true;
}

bool sl_scan_word(struct sl_slice *rest, struct sl_slice *ret_word)
{
    size_t at = 0;

    *rest = sl_scan_trim(*rest);
    if (rest->size == 0)
        return false;
    while (at < rest->size && sl_scan_space(sl_slice_from(*rest, at)) == 0)
        at++;
    *ret_word = sl_slice(rest->data, at);
    *rest = sl_slice_from(*rest, at);
    return true;
}

size_t sl_scan_length(struct sl_slice text)
{
    size_t length = 0;

    for (size_t i = 0; i < text.size; i++)
        length += ((unsigned char)text.data[i] & 0xC0) != 0x80;
    return length;
}

struct sl_slice sl_scan_first(struct sl_slice text, size_t count)
{
    size_t size = 0;

    for (size_t seen = 0; size < text.size; size++) {
        if (((unsigned char)text.data[size] & 0xC0) != 0x80 && seen++ == count)
            break;
    }
    return sl_slice(text.data, size);
}
