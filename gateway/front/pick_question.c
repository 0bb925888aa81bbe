/* pick_question.c - the parameters that limit the rate of a stream.
 *
 * First how many posts of which bucket, then which posts. Numbers are read in thousandths; at most
 * 1,000 posts of a bucket are sent. */
#include "gateway/front/pick_question.h"

#include <errno.h>

#include "gateway/front/count_question.h"
#include "src/model/id.h"

enum { RATE_MIN = 100, RATE_MAX = PICK_POSTS_MAX * 1000 /* thousandths of a post per second */ };

static const char *const pick_names[] = {
    [PICK_EVEN] = "even", [PICK_NEWEST] = "newest", [PICK_FIRST] = "first"};

static int read_pick(struct sl_slice text, enum pick *ret_pick, struct http_refusal *refusal)
{
    for (unsigned pick = PICK_EVEN; pick <= PICK_FIRST; pick++) {
        if (sl_slice_is(text, pick_names[pick])) {
            *ret_pick = pick;
            return 0;
        }
    }
    return http_refuse(refusal, 400, "bad_pick", "pick", "not one of even, newest, first");
}

static int read_latest_by(struct sl_slice text, struct sl_slice pick, enum pick *ret_pick,
                          struct http_refusal *refusal)
{
    if (pick.data)
        return http_refuse(refusal, 400, "bad_latest_by", "latest_by",
                           "pick and latest_by cannot be combined");
    if (!sl_slice_is(text, "user") && !sl_slice_is(text, "cell"))
        return http_refuse(refusal, 400, "bad_latest_by", "latest_by", "neither user nor cell");
    *ret_pick = sl_slice_is(text, "user") ? PICK_BY_USER : PICK_BY_CELL;
    return 0;
}

static int read_rate(struct sl_slice text, struct pick_question *question, uint64_t *ret_bucket_ms,
                     struct http_refusal *refusal)
{
    uint32_t rate;

    if (!thousandths_read(text, &rate) || rate < RATE_MIN || rate > RATE_MAX)
        return http_refuse(refusal, 400, "bad_max_rate", "max_rate",
                           "not a number from 0.1 to %d with at most three decimals",
                           PICK_POSTS_MAX);
    question->posts = rate < 1000 ? 1 : rate / 1000;
    *ret_bucket_ms = rate < 1000 ? (1000000 + rate - 1) / rate : 1000;
    return 0;
}

/* For everything between the two. */
static int read_max(const struct pick_values *values, uint64_t since, uint64_t until,
                    struct pick_question *question, uint64_t *ret_bucket_ms,
                    struct http_refusal *refusal)
{
    uint32_t thousandths;

    if (values->max_rate.data)
        return http_refuse(refusal, 400, "bad_max", "max", "max and max_rate cannot be combined");
    if (!thousandths_read(values->max, &thousandths) || thousandths % 1000 != 0 ||
        thousandths == 0 || thousandths > RATE_MAX)
        return http_refuse(refusal, 400, "bad_max", "max", "not a number from 1 to %d",
                           PICK_POSTS_MAX);
    if (!since || !until || until <= since)
        return http_refuse(refusal, 400, "bad_max", "max", "max needs since and until");
    question->posts = thousandths / 1000;
    question->behind = since;
    *ret_bucket_ms = sl_id_time_ms(until) - sl_id_time_ms(since + 1) + 1;
    return 0;
}

static int refuse_without_number(const struct pick_values *values, struct http_refusal *refusal)
{
    if (values->pick.data)
        return http_refuse(refusal, 400, "bad_pick", "pick", "max_rate is required");
    if (values->latest_by.data)
        return http_refuse(refusal, 400, "bad_latest_by", "latest_by", "max_rate is required");
    if (values->cell_degrees.data)
        return http_refuse(refusal, 400, "bad_cell_degrees", "cell_degrees",
                           "only latest_by=cell has cells");
    return 0;
}

static int read_which(const struct pick_values *values, struct pick_question *question,
                      struct http_refusal *refusal)
{
    if (values->latest_by.data &&
        read_latest_by(values->latest_by, values->pick, &question->pick, refusal) < 0)
        return -EPROTO;
    if (values->pick.data && read_pick(values->pick, &question->pick, refusal) < 0)
        return -EPROTO;
    return cell_degrees_read(values->cell_degrees, question->pick == PICK_BY_CELL, "latest_by=cell",
                             &question->cell_millidegrees, refusal);
}

int pick_question_read(const struct pick_values *values, uint64_t since, uint64_t until,
                       struct pick_question *ret_question, uint64_t *ret_bucket_ms,
                       struct http_refusal *refusal)
{
    struct pick_question question = {0};
    int r;

    *ret_question = question;
    *ret_bucket_ms = 0;
    if (!values->max.data && !values->max_rate.data)
        return refuse_without_number(values, refusal);
    r = values->max.data ? read_max(values, since, until, &question, ret_bucket_ms, refusal)
                         : read_rate(values->max_rate, &question, ret_bucket_ms, refusal);
    if (r == 0)
        r = read_which(values, &question, refusal);
    *ret_question = question;
    return r;
}

int on_slow_read(struct sl_slice text, const struct pick_question *question, bool *ret_samples,
                 struct http_refusal *refusal)
{
    *ret_samples = sl_slice_is(text, "sample");
    if (text.data && !*ret_samples && !sl_slice_is(text, "catch_up"))
        return http_refuse(refusal, 400, "bad_on_slow", "on_slow", "not one of catch_up, sample");
    if (*ret_samples && question->posts > 0)
        return http_refuse(refusal, 400, "bad_on_slow", "on_slow",
                           "on_slow=sample cannot be combined with max_rate or max");
    return 0;
}
