/* gateway/counts/trends.h - the terms of one kind that rise: more users than their past lets
 * expect.
 *
 * Posts are counted by slices of the ids' time, a twelfth of the window each, aligned to 1970
 * (trend_slice.h). What ends at a moment is told from twelve of them, the last one as far as it has
 * come, and the past of it is the twelve before. A term's score is how many standard deviations its
 * users u lie above what is expected of its users b before,
 *
 *     e = r b + 1/2      score = (u - e) / sqrt(u + r^2 b + 1/2 + (0.065 u)^2 + (0.065 r b)^2)
 *
 * which is the statistic of Wald for the ratio of two Poisson rates (Ng, Tang: "Testing the
 * equality of two Poisson means using the rate ratio", Statistics in Medicine 24, 2005,
 * "sample-based"; Gu, Ng, Tang, Schucany: "Testing the ratio of two Poisson rates", Biometrical
 * Journal 50, 2008), with half a user more expected, and with the error of estimated numbers of
 * users, which is left out of exact ones. r = (p + 100) / (q + 100) for p posts in the window and q
 * before: when everybody posts more, nothing has risen. Terms of one user are none, however often
 * he says them.
 *
 * Where a slice has more terms than counters, it may have missed users of a term (trend_slice.h,
 * `unseen`). Then u is what was seen, and b is raised by the most that was missed: the score is a
 * lower bound, so that no term rises only because it was not counted before.
 *
 * Of words, those are left out that are in more than one of TREND_STOP posts of the past, or, where
 * that has fewer than TREND_STOP_POSTS, of the window.
 *
 * The same posts in the same order give the same bytes. Takes up to 14 MiB for each kind of term,
 * and 2 MiB more while it is told. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "filters/terms.h"
#include "gateway/front/trend_question.h"
#include "gateway/intake/event.h"

enum {
    TREND_STOP = 50,
    TREND_STOP_POSTS = 100,
    TREND_USERS_MIN = 2 /* who say a term, or it is no trend */
};

struct trends;

/* NULL: out of memory. */
struct trends *trends_new(const struct trend_question *question, enum trend_of of);
void trends_free(struct trends *trends); /* NULL is fine */

/* Can the post still be counted, as if it had come in order? Not when its slice is over, nor, if it
 * is late, when some of what came has been left out. */
bool trends_can_add(const struct trends *trends, const struct event *post);
/* A post, whose words have been read, in the order of ids. 0; -ENOMEM: it is no good any more. */
int trends_add(struct trends *trends, const struct event *post, const struct sl_words *words);

/* Looks through what ends at this Unix time: all before it has been added, and nothing behind it.
 * Does no more than `*work`, which is lessened: units of looking at a term of a slice, some ten of
 * them a microsecond. 0: it can be printed; 1: call it again, and add nothing before; -ENOMEM. */
int trends_survey(struct trends *trends, uint64_t end_ms, size_t *work);
/* Appends "error":N,"terms":[...] of what ends then; all of it is surveyed before, if that has not
 * been done. Nothing older than its past may be asked for after that. `json` is failed when memory
 * ran out. */
void trends_print(struct trends *trends, uint64_t end_ms, struct buffer *json);
