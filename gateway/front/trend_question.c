/* trend_question.c - the parameters of trends that counts do not have. */
#include "gateway/front/trend_question.h"

#include <string.h>

static const struct {
    const char *name;
    uint64_t ms;
} windows[] = {{"5m", 300000}, {"1h", 3600000}, {"1d", 86400000}};

static const char *const of_names[TREND_OF_COUNT] = {
    [TREND_OF_HASHTAGS] = "hashtags", [TREND_OF_WORDS] = "words",       [TREND_OF_LINKS] = "links",
    [TREND_OF_USERS] = "users",       [TREND_OF_CASHTAGS] = "cashtags",
};

const char *trend_of_name(enum trend_of of)
{
    return of_names[of];
}

static int read_window(struct sl_slice text, uint64_t *ret_ms, struct http_refusal *refusal)
{
    if (!text.data)
        return http_refuse(refusal, 400, "no_window", "window", "window is required: 5m, 1h or 1d");
    for (size_t i = 0; i < sizeof(windows) / sizeof(windows[0]); i++) {
        if (sl_slice_is(text, windows[i].name)) {
            *ret_ms = windows[i].ms;
            return 0;
        }
    }
    return http_refuse(refusal, 400, "bad_window", "window", "not one of 5m, 1h, 1d");
}

/* false: an unknown name, or repeated. */
static bool add_of(struct sl_slice name, unsigned *of)
{
    for (unsigned i = 0; i < TREND_OF_COUNT; i++) {
        if (sl_slice_is(name, of_names[i]) && !(*of & 1u << i)) {
            *of |= 1u << i;
            return true;
        }
    }
    return false;
}

static int read_of(struct sl_slice text, unsigned *ret_of, struct http_refusal *refusal)
{
    bool ends;

    if (!text.data)
        return http_refuse(refusal, 400, "no_of", "of",
                           "of is required: some of hashtags, words, links, users, cashtags");
    do {
        ends = !memchr(text.data, ',', text.size);
        if (!add_of(http_next_element(&text, ','), ret_of))
            return http_refuse(refusal, 400, "bad_of", "of",
                               "not some of hashtags, words, links, users, cashtags, each once, "
                               "with commas between");
    } while (!ends);
    return 0;
}

static int read_limit(struct sl_slice text, uint32_t *ret_limit, struct http_refusal *refusal)
{
    uint32_t number = text.data ? 0 : TREND_LIMIT_DEFAULT;

    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9' || i == 3) {
            number = 0;
            break;
        }
        number = number * 10 + (uint32_t)(text.data[i] - '0');
    }
    if (number < 1 || number > TREND_LIMIT_MAX)
        return http_refuse(refusal, 400, "bad_limit", "limit", "not a number from 1 to %d",
                           TREND_LIMIT_MAX);
    *ret_limit = number;
    return 0;
}

int trend_question_read(struct sl_slice window, struct sl_slice of, struct sl_slice limit,
                        struct trend_question *ret_question, struct http_refusal *refusal)
{
    struct trend_question question = {0};
    int r = read_window(window, &question.window_ms, refusal);

    if (r == 0)
        r = read_of(of, &question.of, refusal);
    if (r == 0)
        r = read_limit(limit, &question.limit, refusal);
    if (r == 0)
        *ret_question = question;
    return r;
}
