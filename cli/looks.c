/* looks.c - numbers out of /status.json, and rates out of several of them.
 *
 * Looks are kept in order of time, at most LOOKS_MAX; the oldest goes. Rates are the difference
 * between the latest and one some seconds back, by the server's clock. When the server has been
 * started anew its counters begin again: all that was kept is forgotten then. Quantiles are the
 * upper bound of the bucket they fall into. */
#include "cli/looks.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <string.h>

static double number(const json_t *json)
{
    return json_is_number(json) ? json_number_value(json) : NAN;
}

static const json_t *family_of(const json_t *look, const char *family)
{
    return json_object_get(json_object_get(look, "metrics"), family);
}

double look_number(const json_t *look, const char *member)
{
    return number(json_object_get(look, member));
}

double look_sum(const json_t *look, const char *family)
{
    json_t *json = (json_t *)family_of(look, family), *value;
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

double look_part(const json_t *look, const char *family, const char *labels)
{
    return number(json_object_get(family_of(look, family), labels));
}

double look_worker(const json_t *look, const char *family, size_t worker)
{
    return number(json_array_get(family_of(look, family), worker));
}

/* --- several looks -------------------------------------------------------------------------- */

static void forget(struct looks *looks, size_t count)
{
    for (size_t i = 0; i < count; i++)
        json_decref(looks->all[i]);
    looks->count -= count;
    memmove(looks->all, looks->all + count, looks->count * sizeof(looks->all[0]));
}

void looks_done(struct looks *looks)
{
    forget(looks, looks->count);
}

const json_t *looks_latest(const struct looks *looks)
{
    assert(looks->count > 0);
    return looks->all[looks->count - 1];
}

/* Another sluiced counts from 0 again; a clock that was set back gives no rates. */
static bool is_continued(const json_t *before, const json_t *now)
{
    static const char start[] = "sluice_start_time_seconds";

    return !(fabs(look_sum(before, start) - look_sum(now, start)) > 0) &&
           look_number(before, "now_ms") <= look_number(now, "now_ms");
}

int looks_add(struct looks *looks, struct sl_slice text, struct failure *reterr)
{
    json_t *look = json_loadb(text.data, text.size, 0, NULL);

    if (isnan(look_number(look, "now_ms")) || !json_is_object(json_object_get(look, "metrics"))) {
        json_decref(look);
        return failure_set(reterr, -EBADMSG, "what it says is not the status of a sluiced");
    }
    if (looks->count > 0 && !is_continued(looks_latest(looks), look))
        forget(looks, looks->count);
    if (looks->count == LOOKS_MAX)
        forget(looks, 1);
    looks->all[looks->count++] = look;
    return 0;
}

/* The latest that lies `seconds` back, else the oldest. */
static const json_t *look_before(const struct looks *looks, double seconds)
{
    double from_ms = look_number(looks_latest(looks), "now_ms") - seconds * 1000;

    for (size_t i = looks->count; i-- > 0;) {
        if (look_number(looks->all[i], "now_ms") <= from_ms)
            return looks->all[i];
    }
    return looks->all[0];
}

static double per_second(const struct looks *looks, const json_t *before, double increase)
{
    double passed_ms = look_number(looks_latest(looks), "now_ms") - look_number(before, "now_ms");

    return passed_ms > 0 ? fmax(increase, 0) * 1000 / passed_ms : NAN;
}

static double increase_since(const struct looks *looks, const json_t *before, const char *counter)
{
    return look_sum(looks_latest(looks), counter) - look_sum(before, counter);
}

double looks_rate(const struct looks *looks, const char *counter, double seconds)
{
    const json_t *before = look_before(looks, seconds);
    double increase = increase_since(looks, before, counter);

    return isnan(increase) ? NAN : per_second(looks, before, increase);
}

double looks_worker_rate(const struct looks *looks, const char *counter, size_t worker,
                         double seconds)
{
    const json_t *before = look_before(looks, seconds);
    double increase =
        look_worker(looks_latest(looks), counter, worker) - look_worker(before, counter, worker);

    return isnan(increase) ? NAN : per_second(looks, before, increase);
}

double looks_ratio(const struct looks *looks, const char *counter, const char *of, double seconds)
{
    const json_t *before = look_before(looks, seconds);
    double many = increase_since(looks, before, of);

    return many > 0 ? increase_since(looks, before, counter) / many : NAN;
}

/* --- histograms ----------------------------------------------------------------------------- */

static const json_t *buckets_of(const json_t *look, const char *histogram)
{
    return json_object_get(json_object_get(json_object_get(look, "histograms"), histogram),
                           "buckets");
}

static double grown(const json_t *now, const json_t *before, size_t bucket)
{
    return number(json_array_get(now, bucket)) -
           (now == before ? 0 : number(json_array_get(before, bucket)));
}

double looks_quantile(const struct looks *looks, const char *histogram, double q, double seconds)
{
    const json_t *bounds = json_object_get(looks_latest(looks), "bounds");
    const json_t *now = buckets_of(looks_latest(looks), histogram);
    const json_t *before = buckets_of(look_before(looks, seconds), histogram);
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
