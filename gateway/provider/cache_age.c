#include "gateway/provider/cache_age.h"

#include "gateway/http/http.h"

enum { LONGEST_S = 1 << 30 }; /* larger values mean the same */

static bool read_seconds(struct sl_slice text, uint64_t *ret_s)
{
    uint64_t s = 0;

    if (text.size >= 2 && text.data[0] == '"' && text.data[text.size - 1] == '"')
        text = sl_slice(text.data + 1, text.size - 2);
    if (text.size == 0)
        return false;
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
        s = s * 10 + (uint64_t)(text.data[i] - '0');
        if (s > LONGEST_S)
            s = LONGEST_S;
    }
    *ret_s = s;
    return true;
}

static void read_control(struct cache_age *age, struct sl_slice value)
{
    while (value.size > 0) {
        struct sl_slice directive = http_next_element(&value, ',');
        const char *equals =
            directive.size > 0 ? memchr(directive.data, '=', directive.size) : NULL;
        size_t name = equals ? (size_t)(equals - directive.data) : directive.size;

        if (equals && http_token_is(sl_slice(directive.data, name), "max-age"))
            age->has_max_age |= read_seconds(sl_slice_from(directive, name + 1), &age->max_age_s);
        else if (http_token_is(sl_slice(directive.data, name), "no-store") ||
                 http_token_is(sl_slice(directive.data, name), "no-cache"))
            age->is_stale = true;
    }
}

void cache_age_read(struct cache_age *age, struct sl_slice name, struct sl_slice value)
{
    if (http_token_is(name, "Cache-Control"))
        read_control(age, value);
    else if (http_token_is(name, "Age"))
        read_seconds(http_trim(value), &age->age_s);
}

uint64_t cache_age_left_ms(const struct cache_age *age, uint64_t usual_ms, uint64_t least_ms,
                           uint64_t most_ms)
{
    uint64_t left_ms = usual_ms;

    if (age->is_stale)
        left_ms = 0;
    else if (age->has_max_age)
        left_ms = age->max_age_s > age->age_s ? (age->max_age_s - age->age_s) * 1000 : 0;
    if (left_ms > most_ms)
        left_ms = most_ms;
    return left_ms < least_ms ? least_ms : left_ms;
}
