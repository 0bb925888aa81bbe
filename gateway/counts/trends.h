/* gateway/counts/trends.h - finds terms of one kind that rise: with more users than expected from
 * their past.
 *
 * Posts are counted in slices of a twelfth of the window each, by the time of their ids, aligned to
 * 1970 (trend_slice.h). A window consists of twelve slices, the last of which may be incomplete;
 * the twelve before it are its past. The score of a term is the number of standard deviations by
 * which its users u exceed the number expected from its users b in the past,
 *
 *     e = r b + 1/2      score = (u - e) / sqrt(u + r^2 b + 1/2 + (0.065 u)^2 + (0.065 r b)^2)
 *
 * This is Wald's statistic for the ratio of two Poisson rates (Ng, Tang: "Testing the equality of
 * two Poisson means using the rate ratio", Statistics in Medicine 24, 2005, "sample-based"; Gu, Ng,
 * Tang, Schucany: "Testing the ratio of two Poisson rates", Biometrical Journal 50, 2008), with
 * half a user more expected, and with the error of estimated numbers of users, which is omitted for
 * exact ones. r = (p + 100) / (q + 100) for p posts in the window and q before: if everybody posts
 * more, nothing has risen. Terms of a single user are never trends.
 *
 * If a slice had more terms than counters, it may have missed users of a term (trend_slice.h,
 * `unseen`). Then u is the number seen, and b is increased by the maximum missed, so the score is a
 * lower bound: no term rises only because it was not counted before.
 *
 * Words in more than one of TREND_STOP posts of the past are left out; if the past has fewer than
 * TREND_STOP_POSTS posts, the window is used instead.
 *
 * The same posts in the same order give the same bytes. Uses up to 14 MiB for each kind of term,
 * and 2 MiB more while printing. */
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
    TREND_USERS_MIN = 2 /* terms with fewer users are never trends */
};

struct trends;

/* NULL: out of memory. */
struct trends *trends_new(const struct trend_question *question, enum trend_of of);
void trends_free(struct trends *trends); /* NULL is allowed */

/* Whether the post can still be counted as if it had arrived in order. Not if its slice is closed,
 * nor, for a late post, if terms have been dropped. */
bool trends_can_add(const struct trends *trends, const struct event *post);
/* Adds a post whose words have been read; in the order of ids. 0; -ENOMEM: the trends can no longer
 * be used. */
int trends_add(struct trends *trends, const struct event *post, const struct sl_words *words);

/* Computes the trends of the window that ends at this Unix time; all posts before it, and none
 * after it, must have been added. Does at most `*work` units and subtracts them: a unit is looking
 * at a term of a slice, of which about ten take a microsecond. 0: finished; 1: call again before
 * adding anything; -ENOMEM. */
int trends_survey(struct trends *trends, uint64_t end_ms, size_t *work);
/* Appends "error":N,"terms":[...] for the window that ends then, which is computed first if
 * necessary. After that nothing older than its past can be printed. If out of memory, `json` is
 * marked as failed. */
void trends_print(struct trends *trends, uint64_t end_ms, struct buffer *json);
