#include "gateway/http/accept_encoding.h"

#include "gateway/http/accept.h"

enum { NOT_NAMED = -1 };

struct weights {
    int gzip, zstd, identity, any;
};

/* false: malformed. */
static bool read_parameters(struct sl_slice parameters, int *ret_weight)
{
    *ret_weight = ACCEPT_WEIGHT_MAX;
    if (parameters.size > 0) {
        struct sl_slice parameter = http_next_element(&parameters, ';');

        return parameters.size == 0 && parameter.size >= 2 && (parameter.data[0] | 0x20) == 'q' &&
               parameter.data[1] == '=' &&
               accept_read_weight(sl_slice_from(parameter, 2), ret_weight);
    }
    return true;
}

/* If a coding is named twice, the greater weight counts. */
static void read_element(struct sl_slice element, struct weights *weights)
{
    struct sl_slice coding = http_next_element(&element, ';');
    int *slot = NULL, weight;

    if (http_token_is(coding, "gzip") || http_token_is(coding, "x-gzip"))
        slot = &weights->gzip;
    else if (http_token_is(coding, "zstd"))
        slot = &weights->zstd;
    else if (http_token_is(coding, "identity"))
        slot = &weights->identity;
    else if (http_token_is(coding, "*"))
        slot = &weights->any;
    if (slot && read_parameters(element, &weight) && weight > *slot)
        *slot = weight;
}

/* For a coding that is acceptable unless it is refused by name or by `*`. */
static int weight_of(int named, int any)
{
    if (named != NOT_NAMED)
        return named;
    return any == NOT_NAMED ? 0 : any;
}

struct accept_encoding accept_encoding_read(const struct http_list *lines)
{
    struct weights weights = {NOT_NAMED, NOT_NAMED, NOT_NAMED, NOT_NAMED};
    struct accept_encoding accept;

    for (size_t i = 0; i < HTTP_LIST_LINES; i++) {
        struct sl_slice rest = lines->lines[i];

        while (rest.size > 0)
            read_element(http_next_element(&rest, ','), &weights);
    }
    accept.names_identity = weights.identity != NOT_NAMED;
    if (weights.identity == NOT_NAMED)
        weights.identity = weights.any == 0 ? 0 : ACCEPT_WEIGHT_MAX;
    accept.gzip = weight_of(weights.gzip, weights.any);
    accept.zstd = weight_of(weights.zstd, weights.any);
    accept.identity = weights.identity;
    return accept;
}
