/* cli/snapshots.h - snapshots of /status.json, the last some of them, and what they say together.
 *
 * A snapshot is the JSON as the server sent it; docs/operating.md says what stands in it. Families
 * are asked for by name, so that a server that has fewer of them, or more, is understood, too: what
 * it does not say is NAN. */
#pragma once

#include <stddef.h>

#include <jansson.h>

#include "base/failure.h"
#include "base/slice.h"

enum { SNAPSHOTS_MAX = 16 };

struct snapshots {
    json_t *all[SNAPSHOTS_MAX]; /* the oldest first */
    size_t count;
};

void snapshots_done(struct snapshots *snapshots);

/* Adds what the server has sent, and forgets the oldest when there are too many, and all
 * earlier ones when the server was started anew since. 0; -EBADMSG: it is no such JSON. */
int snapshots_add(struct snapshots *snapshots, struct sl_slice text, struct failure *reterr);

/* The last one; there must be one. */
const json_t *snapshots_latest(const struct snapshots *snapshots);

/* A member of the snapshot itself; NAN: it is no number. */
double snapshot_number(const json_t *snapshot, const char *member);
/* A family of its metrics, over all workers and labels. */
double snapshot_sum(const json_t *snapshot, const char *family);
/* The part of a family with these labels. */
double snapshot_part(const json_t *snapshot, const char *family, const char *labels);
/* What a family says of a worker. */
double snapshot_worker(const json_t *snapshot, const char *family, size_t worker);

/* All below are about the last `seconds` up to the latest snapshot, or as far back as it goes. */

/* How much a counter has grown in a second. */
double snapshots_rate(const struct snapshots *snapshots, const char *counter, double seconds);
double snapshots_worker_rate(const struct snapshots *snapshots, const char *counter, size_t worker,
                             double seconds);
/* How much of one counter there was for each of the other; NAN when there was none of the other. */
double snapshots_ratio(const struct snapshots *snapshots, const char *counter, const char *of,
                       double seconds);
/* Within how many seconds the share `q` of what a histogram counts was done: the bound of the
 * bucket, or the greatest bound for what is beyond. */
double snapshots_quantile(const struct snapshots *snapshots, const char *histogram, double q,
                          double seconds);
