/* accept.c - the most specific range of all lines decides the weight of each offer; the offer with
 * the highest weight wins.
 *
 * This follows RFC 9110, section 12.5.1. A malformed range is ignored. Nothing is stored or
 * allocated: the lines are scanned once for each of the few offers, and their length is limited by
 * that of the request head. */
#include "gateway/http/accept.h"

struct offer {
    const char *type, *subtype;
    enum accept_choice choice;
};

static const struct offer offers[] = {
    {"application", "x-ndjson", ACCEPT_NDJSON},
    {"application", "json", ACCEPT_NDJSON},
    {"text", "event-stream", ACCEPT_SSE},
};

/* An element of the header: text/html;level=1;q=0.5 */
struct range {
    struct sl_slice type, subtype;
    int weight; /* 0 to ACCEPT_WEIGHT_MAX */
};

bool accept_read_weight(struct sl_slice text, int *ret_weight)
{
    int weight = 0;

    if (text.size == 0 || text.size > 5 || (text.data[0] != '0' && text.data[0] != '1') ||
        (text.size > 1 && text.data[1] != '.'))
        return false;
    for (size_t i = 0; i < 5; i++) {
        char c = i < text.size ? text.data[i] : '0';

        if (i == 1)
            continue;
        if (c < '0' || c > '9')
            return false;
        weight = weight * 10 + (c - '0');
    }
    *ret_weight = weight;
    return weight <= ACCEPT_WEIGHT_MAX;
}

static bool read_range(struct sl_slice text, struct range *ret_range)
{
    struct sl_slice type = http_next_element(&text, ';');
    const char *slash = memchr(type.data, '/', type.size);

    if (!slash)
        return false;
    ret_range->type = sl_slice(type.data, (size_t)(slash - type.data));
    ret_range->subtype = sl_slice_from(type, ret_range->type.size + 1);
    ret_range->weight = ACCEPT_WEIGHT_MAX;
    while (text.size > 0) {
        struct sl_slice parameter = http_next_element(&text, ';');

        if (parameter.size >= 2 && (parameter.data[0] | 0x20) == 'q' && parameter.data[1] == '=')
            return accept_read_weight(sl_slice_from(parameter, 2), &ret_range->weight);
    }
    return true;
}

/* How specific the match is. 0: none; 1, 2, 3: any type, its type, its full name. */
static int exactness(const struct range *range, const struct offer *offer)
{
    if (http_token_is(range->type, "*"))
        return http_token_is(range->subtype, "*") ? 1 : 0;
    if (!http_token_is(range->type, offer->type))
        return 0;
    if (http_token_is(range->subtype, "*"))
        return 2;
    return http_token_is(range->subtype, offer->subtype) ? 3 : 0;
}

static void judge_line(struct sl_slice line, const struct offer *offer, int *weight, int *exactest)
{
    while (line.size > 0) {
        struct range range;
        int exact;

        if (!read_range(http_next_element(&line, ','), &range))
            continue;
        exact = exactness(&range, offer);
        if (exact > *exactest) {
            *exactest = exact;
            *weight = range.weight;
        }
    }
}

/* The most specific range decides about an offer. */
static void judge(const struct http_list *accept, const struct offer *offer, int *ret_weight,
                  int *ret_exactness)
{
    *ret_weight = *ret_exactness = 0;
    for (size_t i = 0; i < HTTP_LIST_LINES; i++)
        judge_line(accept->lines[i], offer, ret_weight, ret_exactness);
}

static bool is_empty(const struct http_list *accept)
{
    for (size_t i = 0; i < HTTP_LIST_LINES; i++) {
        if (http_trim(accept->lines[i]).size > 0)
            return false;
    }
    return true;
}

enum accept_choice accept_choose(const struct http_list *accept)
{
    enum accept_choice choice = ACCEPT_NEITHER;
    int best_weight = 0, best_exactness = 0;

    if (is_empty(accept))
        return ACCEPT_NDJSON;
    for (size_t i = 0; i < sizeof(offers) / sizeof(offers[0]); i++) {
        int weight, exact;

        judge(accept, &offers[i], &weight, &exact);
        if (weight > best_weight ||
            (weight == best_weight && weight > 0 && exact > best_exactness)) {
            choice = offers[i].choice;
            best_weight = weight;
            best_exactness = exact;
        }
    }
    return choice;
}

bool accept_takes_json(const struct http_list *accept)
{
    static const struct offer json = {"application", "json", ACCEPT_NDJSON};
    int weight, exact;

    if (is_empty(accept))
        return true;
    judge(accept, &json, &weight, &exact);
    return weight > 0;
}
