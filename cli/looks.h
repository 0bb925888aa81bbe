/* cli/looks.h - looks at /status.json, the last some of them, and what they say together.
 *
 * A look is the JSON as the server sent it; docs/operating.md says what stands in it. Families are
 * asked for by name, so that a server that has fewer of them, or more, is understood, too: what it
 * does not say is NAN. */
#pragma once

#include <stddef.h>

#include <jansson.h>

#include "base/failure.h"
#include "base/slice.h"

enum { LOOKS_MAX = 16 };

struct looks {
    json_t *all[LOOKS_MAX]; /* the oldest first */
    size_t count;
};

void looks_done(struct looks *looks);

/* Adds what the server has sent, and forgets the oldest look when there are too many, and all
 * earlier ones when the server was started anew since. 0; -EBADMSG: it is no such JSON. */
int looks_add(struct looks *looks, struct sl_slice text, struct failure *reterr);

/* The last one; there must be one. */
const json_t *looks_latest(const struct looks *looks);

/* A member of the look itself; NAN: it is no number. */
double look_number(const json_t *look, const char *member);
/* A family of its metrics, over all workers and labels. */
double look_sum(const json_t *look, const char *family);
/* The part of a family with these labels. */
double look_part(const json_t *look, const char *family, const char *labels);
/* What a family says of a worker. */
double look_worker(const json_t *look, const char *family, size_t worker);

/* All below are about the last `seconds` up to the latest look, or as far back as it goes. */

/* How much a counter has grown in a second. */
double looks_rate(const struct looks *looks, const char *counter, double seconds);
double looks_worker_rate(const struct looks *looks, const char *counter, size_t worker,
                         double seconds);
/* How much of one counter there was for each of the other; NAN when there was none of the other. */
double looks_ratio(const struct looks *looks, const char *counter, const char *of, double seconds);
/* Within how many seconds the share `q` of what a histogram counts was done: the bound of the
 * bucket, or the greatest bound for what is beyond. */
double looks_quantile(const struct looks *looks, const char *histogram, double q, double seconds);
