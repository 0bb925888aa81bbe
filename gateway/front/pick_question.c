/* pick_question.c - the parameters of a pace. */
#include "gateway/front/pick_question.h"

#include <errno.h>

#include "gateway/front/count_question.h"

enum { RATE_MIN = 100, RATE_MAX = PICK_POSTS_MAX * 1000 /* thousandths of a post a second */ };

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
                           "that picks already: pick or latest_by");
    if (!sl_slice_is(text, "user") && !sl_slice_is(text, "cell"))
        return http_refuse(refusal, 400, "bad_latest_by", "latest_by", "neither user nor cell");
    *ret_pick = sl_slice_is(text, "user") ? PICK_BY_USER : PICK_BY_CELL;
    return 0;
}

static int refuse_without_rate(struct sl_slice pick, struct sl_slice latest_by,
                               struct sl_slice cell_degrees, struct http_refusal *refusal)
{
    if (pick.data)
        return http_refuse(refusal, 400, "bad_pick", "pick",
                           "of how many posts a second? max_rate says it");
    if (latest_by.data)
        return http_refuse(refusal, 400, "bad_latest_by", "latest_by",
                           "of how many posts a second? max_rate says it");
    if (cell_degrees.data)
        return http_refuse(refusal, 400, "bad_cell_degrees", "cell_degrees",
                           "only latest_by=cell has cells");
    return 0;
}

int pick_question_read(struct sl_slice max_rate, struct sl_slice pick, struct sl_slice latest_by,
                       struct sl_slice cell_degrees, struct pick_question *ret_question,
                       uint64_t *ret_bucket_ms, struct http_refusal *refusal)
{
    struct pick_question question = {0};
    uint32_t rate;

    *ret_question = question;
    *ret_bucket_ms = 0;
    if (!max_rate.data)
        return refuse_without_rate(pick, latest_by, cell_degrees, refusal);
    if (!thousandths_read(max_rate, &rate) || rate < RATE_MIN || rate > RATE_MAX)
        return http_refuse(refusal, 400, "bad_max_rate", "max_rate",
                           "not a number from 0.1 to %d with at most three decimals",
                           PICK_POSTS_MAX);
    if (latest_by.data && read_latest_by(latest_by, pick, &question.pick, refusal) < 0)
        return -EPROTO;
    if (pick.data && read_pick(pick, &question.pick, refusal) < 0)
        return -EPROTO;
    if (cell_degrees_read(cell_degrees, question.pick == PICK_BY_CELL, "latest_by=cell",
                          &question.cell_millidegrees, refusal) < 0)
        return -EPROTO;
    question.posts = rate < 1000 ? 1 : rate / 1000;
    *ret_question = question;
    *ret_bucket_ms = rate < 1000 ? (1000000 + rate - 1) / rate : 1000;
    return 0;
}
