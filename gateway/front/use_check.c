/* use_check.c - takes a unit of a rate, checks the sums of the day, and reports in headers what is
 * left.
 *
 * An address is checked first: whether it has sent too many bad tokens, then how often it sends
 * requests, so that neither costs a signature check. A stream is also checked by the sums of the
 * day; what they consist of is added while streams run (streams/stream_use.c). A limit that is not
 * set costs nothing, and neither does a request that is not counted. */
#include "gateway/front/use_check.h"

#include <errno.h>

/* --- limits --- */

struct use_limits use_limits_of(const struct use_limits *server, const struct token *token)
{
    struct use_limits limits = *server;

    for (int i = 0; i < USE_COUNT; i++) {
        if (token->uses[i] > 0)
            limits.of[i] = token->uses[i] - 1;
    }
    return limits;
}

static bool has_any(const struct use_limits *limits)
{
    for (int i = 0; i < USE_COUNT; i++) {
        if (limits->of[i] != USE_UNBOUNDED)
            return true;
    }
    return false;
}

static enum use rate_of(const struct use_check *check)
{
    return check->asks == USE_ASKS_STREAM ? USE_CONNECTS : USE_REQUESTS;
}

/* --- headers --- */

static uint64_t seconds(uint64_t ms)
{
    return ms / 1000 + (ms % 1000 > 0);
}

static uint64_t left_of(const struct use_limits *limits, const struct use_state *state,
                        enum use use)
{
    uint64_t limit = limits->of[use], used;

    if (use < USE_RATES)
        used = (uint64_t)state->levels[use] + (state->levels[use] > (uint64_t)state->levels[use]);
    else
        used = state->everywhere[use - USE_RATES];
    return used < limit ? limit - used : 0;
}

static void append_policy(struct buffer *out, const struct use_limits *limits, enum use use)
{
    buffer_append_char(out, '"');
    buffer_append_str(out, use_name(use));
    buffer_append_str(out, "\";q=");
    buffer_append_decimal(out, limits->of[use]);
    if (use == USE_STREAMS) {
        buffer_append_str(out, ";qu=\"concurrent-requests\"");
        return;
    }
    if (use == USE_BYTES)
        buffer_append_str(out, ";qu=\"content-bytes\"");
    buffer_append_str(out, ";w=");
    buffer_append_decimal(out, use_window_ms(use) / 1000);
}

static void append_left(struct buffer *out, const struct use_limits *limits,
                        const struct use_state *state, uint64_t wall_ms, enum use use)
{
    uint64_t ms = use < USE_RATES ? state->empty_ms[use] : use_day_left_ms(wall_ms);

    buffer_append_char(out, '"');
    buffer_append_str(out, use_name(use));
    buffer_append_str(out, "\";r=");
    buffer_append_decimal(out, left_of(limits, state, use));
    if (ms != UINT64_MAX) {
        buffer_append_str(out, ";t=");
        buffer_append_decimal(out, seconds(ms));
    }
}

/* Whether a limit is reported with this response; others do not apply to the request. */
static bool is_told(const struct use_check *check, const struct use_limits *limits, enum use use)
{
    if (limits->of[use] == USE_UNBOUNDED || use == USE_BAD_TOKENS)
        return false;
    return check->asks == USE_ASKS_STREAM ? use != USE_REQUESTS : use == USE_REQUESTS;
}

static void append_list(const struct use_check *check, const struct use_limits *limits,
                        const struct use_state *state, const char *name)
{
    const char *before = name;

    for (int i = 0; i < USE_COUNT; i++) {
        if (!is_told(check, limits, (enum use)i) || (state && i == USE_STREAMS))
            continue;
        buffer_append_str(check->headers, before);
        before = ", ";
        if (state)
            append_left(check->headers, limits, state, check->times.wall_ms, (enum use)i);
        else
            append_policy(check->headers, limits, (enum use)i);
    }
    if (before != name)
        buffer_append_str(check->headers, "\r\n");
}

static void append_number(struct buffer *out, const char *name, uint64_t number)
{
    buffer_append_str(out, name);
    buffer_append_decimal(out, number);
    buffer_append_str(out, "\r\n");
}

/* A client that may not send requests now waits for the reset: that is when it may again. */
static void say_x(struct use_check *check, const struct use_limits *limits,
                  const struct use_state *state)
{
    enum use rate = rate_of(check);
    uint64_t ms = state->waits_ms[rate] > 0 ? state->waits_ms[rate] : state->empty_ms[rate];

    if (!check->tells_x || limits->of[rate] == USE_UNBOUNDED)
        return;
    append_number(check->headers, "x-rate-limit-limit: ", limits->of[rate]);
    append_number(check->headers, "x-rate-limit-remaining: ", left_of(limits, state, rate));
    append_number(check->headers, "x-rate-limit-reset: ",
                  seconds(check->times.wall_ms + (ms < USE_DAY_MS ? ms : USE_DAY_MS)));
    check->has_told_x = true;
}

void use_check_tell_reset(struct use_check *check, unsigned retry_after_s)
{
    if (!check->tells_x || check->has_told_x)
        return;
    append_number(check->headers, "x-rate-limit-remaining: ", 0);
    append_number(check->headers,
                  "x-rate-limit-reset: ", seconds(check->times.wall_ms) + retry_after_s);
    check->has_told_x = true;
}

static void say_limits(struct use_check *check, const struct use_limits *limits,
                       const struct use_state *state)
{
    append_list(check, limits, NULL, "RateLimit-Policy: ");
    append_list(check, limits, state, "RateLimit: ");
    say_x(check, limits, state);
}

/* Reports the limit of an address that refuses. */
static void say_limit(struct use_check *check, const struct use_state *state, enum use use)
{
    buffer_append_str(check->headers, "RateLimit-Policy: ");
    append_policy(check->headers, check->of_address, use);
    buffer_append_str(check->headers, "\r\nRateLimit: ");
    append_left(check->headers, check->of_address, state, check->times.wall_ms, use);
    buffer_append_str(check->headers, "\r\n");
    if (use == rate_of(check))
        say_x(check, check->of_address, state);
}

/* --- refusals --- */

static unsigned retry_after_s(uint64_t ms)
{
    uint64_t s = seconds(ms < USE_DAY_MS ? ms : USE_DAY_MS);

    return s > 0 ? (unsigned)s : 1;
}

static int deny_rate(struct use_check *check, const char *who, enum use use,
                     const struct use_state *state, struct http_refusal *refusal)
{
    static const char *const what[USE_RATES] = {
        [USE_CONNECTS] = "asks for streams",
        [USE_REQUESTS] = "asks",
        [USE_BAD_TOKENS] = "has shown bad tokens",
    };

    check->refused = use;
    http_refuse(refusal, 429, "rate_limited", NULL, "this %s %s more often than it may", who,
                what[use]);
    refusal->retry_after_s = retry_after_s(state->waits_ms[use]);
    return -EPROTO;
}

static int deny_sum(struct use_check *check, const char *who, enum use use,
                    struct http_refusal *refusal)
{
    static const char *const what[USE_SUMS] = {
        [USE_EVENTS - USE_RATES] = "events",
        [USE_BYTES - USE_RATES] = "bytes",
        [USE_REPLAYED - USE_RATES] = "events that had passed",
    };

    check->refused = use;
    http_refuse(refusal, 429, "quota", NULL, "this %s has been sent as many %s today as it may",
                who, what[use - USE_RATES]);
    refusal->retry_after_s = retry_after_s(use_day_left_ms(check->times.wall_ms));
    return -EPROTO;
}

static bool is_used_up(const struct use_limits *limits, const struct use_state *state, enum use use)
{
    return limits->of[use] != USE_UNBOUNDED &&
           state->everywhere[use - USE_RATES] >= limits->of[use];
}

/* The sums that any stream would add to. */
static int check_sums(struct use_check *check, const char *who, const struct use_limits *limits,
                      const struct use_state *state, struct http_refusal *refusal)
{
    if (check->asks != USE_ASKS_STREAM)
        return 0;
    if (is_used_up(limits, state, USE_EVENTS))
        return deny_sum(check, who, USE_EVENTS, refusal);
    return is_used_up(limits, state, USE_BYTES) ? deny_sum(check, who, USE_BYTES, refusal) : 0;
}

/* --- the address --- */

static struct use_whose address_of(const struct use_check *check)
{
    return (struct use_whose){USE_OF_ADDRESS, check->address};
}

int use_check_address(struct use_check *check, struct http_refusal *refusal)
{
    const struct use_whose whose = address_of(check);
    const struct use_limits *limits = check->of_address;
    bool is_counted = check->asks != USE_ASKS_LATER;
    struct use_state state;
    int r = 0;

    if (check->address.size == 0 || !has_any(limits))
        return 0;
    fair_use_look(check->uses, &whose, limits, &check->times, &state);
    if (limits->of[USE_BAD_TOKENS] != USE_UNBOUNDED && state.waits_ms[USE_BAD_TOKENS] > 0)
        r = deny_rate(check, "address", USE_BAD_TOKENS, &state, refusal);
    else if (is_counted && limits->of[rate_of(check)] != USE_UNBOUNDED &&
             !fair_use_take(check->uses, &whose, rate_of(check), limits, &check->times, &state))
        r = deny_rate(check, "address", rate_of(check), &state, refusal);
    else
        r = check_sums(check, "address", limits, &state, refusal);
    if (r < 0)
        say_limit(check, &state, check->refused);
    return r;
}

void use_check_bad_token(struct use_check *check)
{
    const struct use_whose whose = address_of(check);
    struct use_state state;

    if (check->address.size > 0 && check->of_address->of[USE_BAD_TOKENS] != USE_UNBOUNDED)
        fair_use_take(check->uses, &whose, USE_BAD_TOKENS, check->of_address, &check->times,
                      &state);
}

/* --- the subject --- */

int use_check_subject(struct use_check *check, const struct token *token,
                      struct http_refusal *refusal)
{
    const struct use_limits limits = use_limits_of(check->of_subject, token);
    const struct use_whose whose = {USE_OF_SUBJECT, sl_slice_str(token->holder)};
    enum use rate = rate_of(check);
    struct use_state state;
    int r = 0;

    if (check->asks == USE_ASKS_LATER || !has_any(&limits))
        return 0;
    if (limits.of[rate] == USE_UNBOUNDED)
        fair_use_look(check->uses, &whose, &limits, &check->times, &state);
    else if (!fair_use_take(check->uses, &whose, rate, &limits, &check->times, &state))
        r = deny_rate(check, "token's subject", rate, &state, refusal);
    if (r == 0)
        r = check_sums(check, "token's subject", &limits, &state, refusal);
    say_limits(check, &limits, &state);
    return r;
}

int use_check_replay(struct use_check *check, const struct token *token,
                     struct http_refusal *refusal)
{
    const struct use_limits limits = use_limits_of(check->of_subject, token);
    const struct use_whose subject = {USE_OF_SUBJECT, sl_slice_str(token->holder)};
    const struct use_whose address = address_of(check);
    struct use_state state;

    if (limits.of[USE_REPLAYED] != USE_UNBOUNDED) {
        fair_use_look(check->uses, &subject, &limits, &check->times, &state);
        if (is_used_up(&limits, &state, USE_REPLAYED))
            return deny_sum(check, "token's subject", USE_REPLAYED, refusal);
    }
    if (check->address.size > 0 && check->of_address->of[USE_REPLAYED] != USE_UNBOUNDED) {
        fair_use_look(check->uses, &address, check->of_address, &check->times, &state);
        if (is_used_up(check->of_address, &state, USE_REPLAYED))
            return deny_sum(check, "address", USE_REPLAYED, refusal);
    }
    return 0;
}
