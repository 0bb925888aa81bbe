/* usage.c - GET /v1/usage: the limits and use of the requesting subject, here and at all gateways.
 *
 * Answered from the account of this gateway, as far as the others have reported. An account that it
 * does not know yet is requested, and known a second later. A token with the scope admin may ask
 * for any subject; its tokens are unknown, so the limits are those of the server. */
#include <errno.h>
#include <inttypes.h>

#include "base/clock.h"
#include "gateway/front/bearer.h"
#include "gateway/front/fair_use_exchange.h"
#include "gateway/front/use_check.h"
#include "gateway/http/form.h"
#include "gateway/serve/server_private.h"

enum { PARAMETER_TOKEN, PARAMETER_SUB, PARAMETERS };

static void append_number(struct buffer *json, const char *name, uint64_t number, bool is_known)
{
    buffer_append_format(json, ",\"%s\":", name);
    if (is_known)
        buffer_append_decimal(json, number);
    else
        buffer_append_str(json, "null");
}

static void append_use(struct buffer *json, enum use use, const struct use_limits *limits,
                       uint64_t used, uint64_t reset_ms)
{
    uint64_t limit = limits->of[use];
    bool is_bounded = limit != USE_UNBOUNDED, is_rate = use < USE_RATES;

    append_number(json, "limit", limit, is_bounded);
    append_number(json, "used", used, is_bounded || !is_rate);
    append_number(json, "left", used < limit ? limit - used : 0, is_bounded);
    if (use != USE_STREAMS) {
        append_number(json, "window_s", use_window_ms(use) / 1000, true);
        append_number(json, "reset_s", reset_ms / 1000 + (reset_ms % 1000 > 0),
                      is_bounded && reset_ms != UINT64_MAX);
    }
    buffer_append_char(json, '}');
}

static void append_sum(struct buffer *json, enum use use, const struct use_limits *limits,
                       const struct use_state *state, uint64_t wall_ms)
{
    buffer_append_format(json, "\"here\":%" PRIu64, state->here[use - USE_RATES]);
    append_use(json, use, limits, state->everywhere[use - USE_RATES], use_day_left_ms(wall_ms));
}

static void append_rate(struct buffer *json, enum use use, const struct use_limits *limits,
                        const struct use_state *state)
{
    double level = state->levels[use];

    buffer_append_str(json, "\"here\":null"); /* levels are those of all gateways */
    append_use(json, use, limits, (uint64_t)level + (level > (double)(uint64_t)level),
               state->empty_ms[use]);
}

static void print(const struct use_state *state, const struct use_limits *limits, uint64_t streams,
                  const struct use_times *times, struct buffer *json)
{
    static const enum use shown[] = {USE_CONNECTS, USE_REQUESTS, USE_STREAMS,
                                     USE_EVENTS,   USE_BYTES,    USE_REPLAYED};

    append_number(json, "heard_ms", times->now_ms - state->heard_ms, state->heard_ms > 0);
    buffer_append_str(json, ",\"uses\":[");
    for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++) {
        buffer_append_format(json, "%s\n{\"name\":\"%s\",", i > 0 ? "," : "", use_name(shown[i]));
        if (shown[i] == USE_STREAMS) {
            buffer_append_format(json, "\"here\":%" PRIu64, streams);
            append_use(json, shown[i], limits, streams + state->streams_elsewhere, 0);
        } else if (shown[i] < USE_RATES) {
            append_rate(json, shown[i], limits, state);
        } else {
            append_sum(json, shown[i], limits, state, times->wall_ms);
        }
    }
    buffer_append_str(json, "]}\n");
}

/* The subject: that of the token, or `sub`. */
static int choose(const struct token *token, struct sl_slice sub, struct use_whose *ret_whose,
                  struct http_refusal *refusal)
{
    *ret_whose = (struct use_whose){USE_OF_SUBJECT, sl_slice_str(token->holder)};
    if (!sub.data)
        return 0;
    if (sub.size == 0 || sub.size >= TOKEN_SUBJECT_SIZE)
        return http_refuse(refusal, 400, "bad_request", "sub", "a subject has 1 to 64 bytes");
    if (!(token->scopes & TOKEN_SCOPE_ADMIN) && !sl_slice_equal(sub, ret_whose->name)) {
        http_refuse(refusal, 403, "insufficient_scope", NULL,
                    "what others use is for tokens with the scope admin");
        refusal->www_authenticate = "Bearer error=\"insufficient_scope\", scope=\"admin\"";
        return -EPROTO;
    }
    ret_whose->name = sub;
    return 0;
}

static void answer(struct server *server, struct http_connection *connection,
                   const struct token *token, const struct use_whose *whose)
{
    const struct use_times times = {clock_monotonic_ms(), clock_wall_ms()};
    const struct use_limits *own = &server->settings.front->subject_uses;
    bool is_own = sl_slice_is(whose->name, token->holder);
    const struct use_limits limits = is_own ? use_limits_of(own, token) : *own;
    struct buffer json = BUFFER_INIT;
    struct http_refusal refusal;
    struct use_state state;

    fair_use_look(server->settings.uses, whose, &limits, &times, &state);
    fair_use_mark(server->settings.uses, whose, &times);
    buffer_append_str(&json, "{\"sub\":");
    if (is_own && !token->subject[0])
        buffer_append_str(&json, "null");
    else
        buffer_append_json_string(&json, whose->name);
    print(&state, &limits,
          admission_streams(server->settings.admission, whose->name, SL_SLICE_NONE), &times, &json);
    if (json.failed) {
        http_refuse(&refusal, 503, "no_memory", NULL, "out of memory");
        refusal.retry_after_s = HTTP_RETRY_AFTER_S;
        server_refuse(server, connection, &refusal);
    } else {
        http_answer(connection, &(struct http_answer){.status = 200,
                                                      .content_type = "application/json",
                                                      .body = buffer_slice(&json)});
    }
    buffer_done(&json);
}

int usage_answer(struct server *server, struct http_connection *connection,
                 const struct http_request *request, struct http_refusal *refusal,
                 enum token_fault *ret_fault)
{
    static const char *const names[PARAMETERS] = {"access_token", "sub"};
    struct sl_slice values[PARAMETERS] = {SL_SLICE_NONE, SL_SLICE_NONE};
    struct form form = {names, PARAMETERS, values, NULL};
    struct http_refusal form_refusal;
    struct use_whose whose;
    struct token token;
    int form_r = form_read(&form, &request->query, 1, &form_refusal), r = form_r;

    if (form_r != -ENOMEM)
        r = bearer_check(server->settings.front->policy, request, values[PARAMETER_TOKEN],
                         clock_wall_ms(), &token, refusal, ret_fault);
    if (r == 0 && form_r < 0) {
        *refusal = form_refusal;
        r = form_r;
    }
    if (r == 0)
        r = choose(&token, values[PARAMETER_SUB], &whose, refusal);
    if (r == 0)
        answer(server, connection, &token, &whose);
    form_done(&form);
    if (r == -ENOMEM) {
        r = http_refuse(refusal, 503, "no_memory", NULL, "out of memory");
        refusal->retry_after_s = HTTP_RETRY_AFTER_S;
    }
    return r;
}
