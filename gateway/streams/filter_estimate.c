/* filter_estimate.c - an estimate and the events drawn for it, as a late answer.
 *
 * It does not count as a filter of the subject: it has an index of its own, which is freed with the
 * answer. The number of estimates in progress is limited for a subject and for the worker. */
#include "gateway/streams/filter_estimate.h"

#include <errno.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/hash.h"
#include "gateway/delivery/estimate_sampler.h"
#include "gateway/front/estimate_request.h"
#include "gateway/streams/late_answer.h"

struct filter_estimate {
    struct late_answer answer; /* must be the first member */
    struct estimate_request request;
    struct estimate *estimate;
    struct estimate_sampler *sampler;
};

static int print(struct late_answer *answer, struct buffer *ret_json)
{
    struct filter_estimate *own = (struct filter_estimate *)answer;

    estimate_print(own->estimate, &own->request.warnings, ret_json);
    return 0;
}

static void done(struct late_answer *answer)
{
    struct filter_estimate *own = (struct filter_estimate *)answer;

    late_answer_done(answer);
    estimate_sampler_free(own->sampler);
    estimate_free(own->estimate);
    estimate_request_done(&own->request);
    mem_free(own);
}

static uint64_t progress(const struct late_answer *answer)
{
    return estimate_sampler_steps(((const struct filter_estimate *)answer)->sampler);
}

static const struct late_answer_kind kind = {
    .code = "too_many_estimates",
    .what = "estimates",
    .per_holder = FILTER_ESTIMATES_PER_SUBJECT,
    .max = FILTER_ESTIMATES_MAX,
    .print = print,
    .done = done,
    .progress = progress,
};

static void on_drawn(void *owner, int error)
{
    late_answer_end(owner, error == 0);
}

static int draw(struct filter_estimate *own)
{
    const struct estimate_request *request = &own->request;

    own->estimate =
        estimate_new(&request->text, &request->limits, request->filter, hash_key_random().k0);
    if (own->estimate)
        own->sampler = estimate_sampler_begin(own->answer.streams->settings.deliver, own->estimate,
                                              request->from, on_drawn, own);
    return own->sampler ? 0 : -ENOMEM;
}

int filter_estimate_begin(struct streams *streams, struct http_connection *connection,
                          const struct http_request *http, struct http_refusal *refusal,
                          enum token_fault *ret_fault)
{
    struct filter_estimate *own;
    struct estimate_request request;
    int r = estimate_request_read(streams->settings.front, http, clock_wall_ms(), &request, refusal,
                                  ret_fault);

    if (r < 0)
        return r;
    r = late_answer_check_room(streams, &kind, request.token.holder, refusal);
    own = r == 0 ? mem_zalloc(sizeof(*own)) : NULL;
    if (!own) {
        estimate_request_done(&request);
        return r < 0 ? r : -ENOMEM;
    }
    own->request = request;
    late_answer_init(&own->answer, &kind, streams, connection, own->request.token.holder);
    r = draw(own);
    if (r < 0)
        done(&own->answer);
    else
        late_answer_wait(&own->answer);
    return r;
}
