#include "filters/sample.h"

#include <errno.h>
#include <string.h>

/* Parses up to `max` digits at the front of *text. 0: there are none, or more. */
static size_t take_digits(struct sl_slice *text, size_t max, uint32_t *ret_number)
{
    uint32_t number = 0;
    size_t i = 0;

    while (i < text->size && i <= max && text->data[i] >= '0' && text->data[i] <= '9')
        number = number * 10 + (uint32_t)(text->data[i++] - '0');
    if (i > max)
        return 0;
    *text = sl_slice_from(*text, i);
    *ret_number = number;
    return i;
}

static bool take_char(struct sl_slice *text, char c)
{
    if (text->size == 0 || text->data[0] != c)
        return false;
    *text = sl_slice_from(*text, 1);
    return true;
}

int sl_parse_sample(struct sl_slice text, uint32_t *ret_ppm)
{
    uint32_t whole, ppm, fraction;
    size_t digits;

    if (take_digits(&text, 3, &whole) == 0)
        return -EINVAL;
    ppm = whole * 10000;
    if (take_char(&text, '.')) {
        digits = take_digits(&text, 4, &fraction);
        if (digits == 0)
            return -EINVAL;
        for (; digits < 4; digits++)
            fraction *= 10;
        ppm += fraction;
    }
    take_char(&text, '%');
    if (text.size > 0 || ppm == 0 || ppm > SL_SAMPLE_ALL)
        return -EINVAL;
    *ret_ppm = ppm;
    return 0;
}

static uint32_t count_chosen(const unsigned char *chosen)
{
    uint32_t count = 0;

    for (size_t i = 0; i < SL_PARTITION_BYTES; i++)
        count += (uint32_t)__builtin_popcount(chosen[i]);
    return count;
}

int sl_parse_partition(struct sl_slice text, unsigned char ret_chosen[static SL_PARTITION_BYTES],
                       uint32_t *ret_parts)
{
    uint32_t part, parts, last = 0;

    memset(ret_chosen, 0, SL_PARTITION_BYTES);
    do {
        if (take_digits(&text, 4, &part) == 0 || part < 1 || part > SL_PARTITION_MAX)
            return -EINVAL;
        ret_chosen[(part - 1) / 8] |= (unsigned char)(1u << (part - 1) % 8);
        last = part > last ? part : last;
    } while (take_char(&text, ','));
    if (!take_char(&text, '/') || take_digits(&text, 4, &parts) == 0 || text.size > 0 ||
        last > parts || parts > SL_PARTITION_MAX)
        return -EINVAL;
    *ret_parts = count_chosen(ret_chosen) == parts ? 1 : parts;
    return 0;
}
