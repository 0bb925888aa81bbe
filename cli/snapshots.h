/* cli/snapshots.h - the last snapshots of /status.json, and numbers computed from them.
 *
 * A snapshot is the JSON as the server sent it, described in docs/operating.md. Families are
 * requested by name, so that servers with fewer or more of them are understood; what is missing is
 * NAN. */
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

/* Adds an answer of the server. Removes the oldest snapshot if there are too many, and all earlier
 * ones if the server was restarted since. 0; -EBADMSG: not such JSON. */
int snapshots_add(struct snapshots *snapshots, struct sl_slice text, struct failure *reterr);

/* The last snapshot; there must be one. */
const json_t *snapshots_latest(const struct snapshots *snapshots);

/* A member of the snapshot itself; NAN: not a number. */
double snapshot_number(const json_t *snapshot, const char *member);
/* A family of its metrics, summed over all workers and labels. */
double snapshot_sum(const json_t *snapshot, const char *family);
/* The part of a family with these labels. */
double snapshot_part(const json_t *snapshot, const char *family, const char *labels);
/* The value of a family for a worker. */
double snapshot_worker(const json_t *snapshot, const char *family, size_t worker);

/* The following cover the last `seconds` before the latest snapshot, or as far back as
 * available. */

/* The increase of a counter per second. */
double snapshots_rate(const struct snapshots *snapshots, const char *counter, double seconds);
double snapshots_worker_rate(const struct snapshots *snapshots, const char *counter, size_t worker,
                             double seconds);
/* The increase of one counter divided by that of another; NAN if the other has not increased. */
double snapshots_ratio(const struct snapshots *snapshots, const char *counter, const char *of,
                       double seconds);
/* The quantile `q` of a histogram in seconds: the upper bound of its bucket, or the greatest bound
 * for the last bucket. */
double snapshots_quantile(const struct snapshots *snapshots, const char *histogram, double q,
                          double seconds);
