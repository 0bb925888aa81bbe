/* snapshots.c - reads numbers from /status.json, and computes rates from several of them.
 *
 * Snapshots are sorted by time, at most SNAPSHOTS_MAX; the oldest is removed. Rates are the
 * difference between the latest and one some seconds before, by the server's clock. When the server
 * was restarted its counters begin again, so all snapshots are removed. Quantiles are the upper
 * bound of their bucket. */
#include "cli/snapshots.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <string.h>

static double number(const json_t *json)
{
    return json_is_number(json) ? json_number_value(json) : NAN;
}

static const json_t *family_of(const json_t *snapshot, const char *family)
{
    return json_object_get(json_object_get(snapshot, "metrics"), family);
}

double snapshot_number(const json_t *snapshot, const char *member)
{
    return number(json_object_get(snapshot, member));
}

double snapshot_sum(const json_t *snapshot, const char *family)
{
    json_t *json = (json_t *)family_of(snapshot, family), *value;
    const char *labels;
    double sum = 0;
    size_t i;

    if (json_is_array(json)) {
        json_array_foreach(json, i, value) sum += number(value);
        return sum;
    }
    if (json_is_object(json)) {
        json_object_foreach(json, labels, value) sum += number(value);
        return sum;
    }
    return number(json);
}

double snapshot_part(const json_t *snapshot, const char *family, const char *labels)
{
    return number(json_object_get(family_of(snapshot, family), labels));
}

double snapshot_worker(const json_t *snapshot, const char *family, size_t worker)
{
    return number(json_array_get(family_of(snapshot, family), worker));
}

/* --- several snapshots -------------------------------------------------------------------- */

static void forget(struct snapshots *snapshots, size_t count)
{
    for (size_t i = 0; i < count; i++)
        json_decref(snapshots->all[i]);
    snapshots->count -= count;
    memmove(snapshots->all, snapshots->all + count, snapshots->count * sizeof(snapshots->all[0]));
}

void snapshots_done(struct snapshots *snapshots)
{
    forget(snapshots, snapshots->count);
}

const json_t *snapshots_latest(const struct snapshots *snapshots)
{
    assert(snapshots->count > 0);
    return snapshots->all[snapshots->count - 1];
}

/* A restarted sluiced counts from 0 again; after the clock was set back no rates can be
 * computed. */
static bool is_continued(const json_t *before, const json_t *now)
{
    static const char start[] = "sluice_start_time_seconds";

    return !(fabs(snapshot_sum(before, start) - snapshot_sum(now, start)) > 0) &&
           snapshot_number(before, "now_ms") <= snapshot_number(now, "now_ms");
}

int snapshots_add(struct snapshots *snapshots, struct sl_slice text, struct failure *reterr)
{
    json_t *snapshot = json_loadb(text.data, text.size, 0, NULL);

    if (isnan(snapshot_number(snapshot, "now_ms")) ||
        !json_is_object(json_object_get(snapshot, "metrics"))) {
        json_decref(snapshot);
        return failure_set(reterr, -EBADMSG, "the answer is not the status of a sluiced");
    }
    if (snapshots->count > 0 && !is_continued(snapshots_latest(snapshots), snapshot))
        forget(snapshots, snapshots->count);
    if (snapshots->count == SNAPSHOTS_MAX)
        forget(snapshots, 1);
    snapshots->all[snapshots->count++] = snapshot;
    return 0;
}

/* The latest one at least `seconds` old, else the oldest. */
static const json_t *snapshot_before(const struct snapshots *snapshots, double seconds)
{
    double from_ms = snapshot_number(snapshots_latest(snapshots), "now_ms") - seconds * 1000;

    for (size_t i = snapshots->count; i-- > 0;) {
        if (snapshot_number(snapshots->all[i], "now_ms") <= from_ms)
            return snapshots->all[i];
    }
    return snapshots->all[0];
}

static double per_second(const struct snapshots *snapshots, const json_t *before, double increase)
{
    double passed_ms =
        snapshot_number(snapshots_latest(snapshots), "now_ms") - snapshot_number(before, "now_ms");

    return passed_ms > 0 ? fmax(increase, 0) * 1000 / passed_ms : NAN;
}

static double increase_since(const struct snapshots *snapshots, const json_t *before,
                             const char *counter)
{
    return snapshot_sum(snapshots_latest(snapshots), counter) - snapshot_sum(before, counter);
}

double snapshots_rate(const struct snapshots *snapshots, const char *counter, double seconds)
{
    const json_t *before = snapshot_before(snapshots, seconds);
    double increase = increase_since(snapshots, before, counter);

    return isnan(increase) ? NAN : per_second(snapshots, before, increase);
}

double snapshots_worker_rate(const struct snapshots *snapshots, const char *counter, size_t worker,
                             double seconds)
{
    const json_t *before = snapshot_before(snapshots, seconds);
    double increase = snapshot_worker(snapshots_latest(snapshots), counter, worker) -
                      snapshot_worker(before, counter, worker);

    return isnan(increase) ? NAN : per_second(snapshots, before, increase);
}

double snapshots_ratio(const struct snapshots *snapshots, const char *counter, const char *of,
                       double seconds)
{
    const json_t *before = snapshot_before(snapshots, seconds);
    double many = increase_since(snapshots, before, of);

    return many > 0 ? increase_since(snapshots, before, counter) / many : NAN;
}

/* --- histograms ----------------------------------------------------------------------------- */

static const json_t *buckets_of(const json_t *snapshot, const char *histogram)
{
    return json_object_get(json_object_get(json_object_get(snapshot, "histograms"), histogram),
                           "buckets");
}

static double grown(const json_t *now, const json_t *before, size_t bucket)
{
    return number(json_array_get(now, bucket)) -
           (now == before ? 0 : number(json_array_get(before, bucket)));
}

double snapshots_quantile(const struct snapshots *snapshots, const char *histogram, double q,
                          double seconds)
{
    const json_t *bounds = json_object_get(snapshots_latest(snapshots), "bounds");
    const json_t *now = buckets_of(snapshots_latest(snapshots), histogram);
    const json_t *before = buckets_of(snapshot_before(snapshots, seconds), histogram);
    size_t count = json_array_size(now), last = json_array_size(bounds);
    double all = 0, seen = 0;

    for (size_t i = 0; i < count; i++)
        all += grown(now, before, i);
    if (!(all > 0) || last == 0)
        return NAN;
    for (size_t i = 0; i < last; i++) {
        seen += grown(now, before, i);
        if (seen >= q * all)
            return number(json_array_get(bounds, i));
    }
    return number(json_array_get(bounds, last - 1));
}
