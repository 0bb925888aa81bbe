/* metrics.c - an array of slots in an anonymous mapping that is shared across fork().
 *
 * Reading adds up all slots without a lock, so related numbers may be from slightly different
 * moments. The table is expanded once for each output (Prometheus text, JSON, the manual). The
 * memory is fixed at creation: slots times numbers. */
#include "gateway/metrics/metrics.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "base/shared_memory.h"

struct metrics_board {
    size_t bytes; /* of the mapping */
    unsigned workers;
    struct metrics slots[]; /* of the workers, the supervisor, the intake process, and the process
                               that fetches keys */
};

static const uint64_t bucket_bounds_us[METRIC_BUCKET_COUNT - 1] = {
    1,    2,     5,     10,    20,     50,     100,    200,     500,     1000,    2000,
    5000, 10000, 20000, 50000, 100000, 200000, 500000, 1000000, 2000000, 5000000, 10000000,
};

enum { OTHER_SLOTS = 3 };

enum kind { KIND_COUNTER, KIND_GAUGE };

struct row {
    enum kind kind;
    bool per_worker;
    const char *exposed;
    const char *help; /* of the family; empty in all rows but its first */
};

static const struct row rows[METRIC_COUNT] = {
#define COUNTER(name, exposed, help)        {KIND_COUNTER, false, exposed, help},
#define GAUGE(name, exposed, help)          {KIND_GAUGE, false, exposed, help},
#define WORKER_COUNTER(name, exposed, help) {KIND_COUNTER, true, exposed, help},
#define WORKER_GAUGE(name, exposed, help)   {KIND_GAUGE, true, exposed, help},
#define SHARD_GAUGE(name, exposed, help)
#define HISTOGRAM(name, exposed, help)
#include "gateway/metrics/metrics_table.def"
};

struct family_row {
    const char *exposed;
    const char *help;
};

static const struct family_row shard_rows[METRIC_SHARD_COUNT] = {
#define COUNTER(name, exposed, help)
#define GAUGE(name, exposed, help)
#define WORKER_COUNTER(name, exposed, help)
#define WORKER_GAUGE(name, exposed, help)
#define SHARD_GAUGE(name, exposed, help) {exposed, help},
#define HISTOGRAM(name, exposed, help)
#include "gateway/metrics/metrics_table.def"
};

static const struct family_row histogram_rows[METRIC_HISTOGRAM_COUNT] = {
#define COUNTER(name, exposed, help)
#define GAUGE(name, exposed, help)
#define WORKER_COUNTER(name, exposed, help)
#define WORKER_GAUGE(name, exposed, help)
#define SHARD_GAUGE(name, exposed, help)
#define HISTOGRAM(name, exposed, help) {exposed, help},
#include "gateway/metrics/metrics_table.def"
};

struct metrics_board *metrics_board_new(unsigned workers)
{
    size_t bytes =
        sizeof(struct metrics_board) + ((size_t)workers + OTHER_SLOTS) * sizeof(struct metrics);
    struct metrics_board *board;

    board = shared_memory_new(bytes);
    if (!board)
        return NULL;
    board->bytes = bytes;
    board->workers = workers;
    return board;
}

void metrics_board_free(struct metrics_board *board)
{
    if (board)
        shared_memory_free(board, board->bytes);
}

unsigned metrics_workers(const struct metrics_board *board)
{
    return board->workers;
}

struct metrics *metrics_slot(struct metrics_board *board, unsigned worker)
{
    assert(worker < board->workers);
    return &board->slots[worker];
}

const struct metrics *metrics_read_slot(const struct metrics_board *board, unsigned worker)
{
    assert(worker < board->workers);
    return &board->slots[worker];
}

struct metrics *metrics_supervisor(struct metrics_board *board)
{
    return &board->slots[board->workers];
}

struct metrics *metrics_intake(struct metrics_board *board)
{
    return &board->slots[board->workers + 1];
}

struct metrics *metrics_keys(struct metrics_board *board)
{
    return &board->slots[board->workers + 2];
}

const struct metrics *metrics_read_keys(const struct metrics_board *board)
{
    return &board->slots[board->workers + 2];
}

const struct metrics *metrics_read_intake(const struct metrics_board *board)
{
    return &board->slots[board->workers + 1];
}

void metrics_slot_reset_gauges(struct metrics *metrics)
{
    for (unsigned i = 0; i < METRIC_COUNT; i++) {
        if (rows[i].kind == KIND_GAUGE)
            metric_set(metrics, (enum metric)i, 0);
    }
    for (unsigned i = 0; i < METRIC_SHARD_COUNT; i++) {
        for (uint32_t shard = 0; shard < SL_SHARDS_MAX; shard++)
            metric_set_shard(metrics, (enum metric_of_shard)i, shard, 0);
    }
}

uint64_t metrics_sum(const struct metrics_board *board, enum metric metric)
{
    unsigned slots = board->workers + (rows[metric].per_worker ? 0 : OTHER_SLOTS);
    uint64_t sum = 0;

    for (unsigned i = 0; i < slots; i++)
        sum += metric_get(&board->slots[i], metric);
    return sum;
}

static void add(_Atomic uint64_t *number, uint64_t n)
{
    atomic_store_explicit(number, atomic_load_explicit(number, memory_order_relaxed) + n,
                          memory_order_relaxed);
}

void metric_observe(struct metrics *metrics, enum metric_histogram histogram, uint64_t us,
                    uint64_t times)
{
    struct metric_distribution *distribution = &metrics->histograms[histogram];
    unsigned low = 0, high = METRIC_BUCKET_COUNT - 1;

    while (low < high) {
        unsigned middle = (low + high) / 2;

        if (us <= bucket_bounds_us[middle])
            high = middle;
        else
            low = middle + 1;
    }
    add(&distribution->buckets[low], times);
    add(&distribution->sum_us, us * times);
}

/* "sluice_x_total{reason=\"y\"}" -> "sluice_x_total", "reason=\"y\"" */
static struct sl_slice split_name(const char *exposed, struct sl_slice *ret_labels)
{
    struct sl_slice name = sl_slice_str(exposed);
    const char *brace = strchr(exposed, '{');

    *ret_labels = SL_SLICE("");
    if (brace) {
        name.size = (size_t)(brace - exposed);
        *ret_labels = sl_slice(brace + 1, strlen(brace + 1) - 1);
    }
    return name;
}

static void print_head(struct sl_slice family, const char *type, const char *help,
                       struct buffer *text)
{
    buffer_append_format(text, "# HELP %.*s %s\n# TYPE %.*s %s\n", SL_SLICE_ARG(family), help,
                         SL_SLICE_ARG(family), type);
}

static void print_seconds(uint64_t us, struct buffer *text)
{
    buffer_append_format(text, "%llu.%06u", (unsigned long long)(us / 1000000),
                         (unsigned)(us % 1000000));
}

static void print_number(struct sl_slice family, uint64_t value, struct buffer *text)
{
    if (memmem(family.data, family.size, "_seconds", strlen("_seconds")))
        print_seconds(value, text);
    else
        buffer_append_format(text, "%llu", (unsigned long long)value);
}

static void print_value(struct sl_slice family, uint64_t value, struct buffer *text)
{
    buffer_append_char(text, ' ');
    print_number(family, value, text);
    buffer_append_char(text, '\n');
}

static void print_row(const struct metrics_board *board, enum metric metric, struct buffer *text)
{
    const struct row *row = &rows[metric];
    struct sl_slice labels, family = split_name(row->exposed, &labels);

    if (row->help[0])
        print_head(family, row->kind == KIND_GAUGE ? "gauge" : "counter", row->help, text);
    if (!row->per_worker) {
        buffer_append_str(text, row->exposed);
        print_value(family, metrics_sum(board, metric), text);
        return;
    }
    for (unsigned i = 0; i < board->workers; i++) {
        buffer_append_format(text, "%.*s{%.*s%sworker=\"%u\"}", SL_SLICE_ARG(family),
                             SL_SLICE_ARG(labels), labels.size > 0 ? "," : "", i);
        print_value(family, metric_get(&board->slots[i], metric), text);
    }
}

static uint64_t shard_sum(const struct metrics_board *board, enum metric_of_shard metric,
                          uint32_t shard)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < board->workers + OTHER_SLOTS; i++)
        sum += atomic_load_explicit(&board->slots[i].shards[metric][shard], memory_order_relaxed);
    return sum;
}

/* Always prints shard 0, so that the family is present from the start. */
static void print_shards(const struct metrics_board *board, enum metric_of_shard metric,
                         struct buffer *text)
{
    const struct family_row *row = &shard_rows[metric];
    struct sl_slice family = sl_slice_str(row->exposed);
    uint64_t shards = metrics_sum(board, METRIC_SHARDS);

    print_head(family, "gauge", row->help, text);
    for (uint32_t shard = 0; shard == 0 || shard < shards; shard++) {
        buffer_append_format(text, "%s{shard=\"%u\"}", row->exposed, (unsigned)shard);
        print_value(family, shard_sum(board, metric, shard), text);
    }
}

static uint64_t bucket_sum(const struct metrics_board *board, enum metric_histogram histogram,
                           unsigned bucket)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < board->workers + OTHER_SLOTS; i++)
        sum += atomic_load_explicit(&board->slots[i].histograms[histogram].buckets[bucket],
                                    memory_order_relaxed);
    return sum;
}

static uint64_t time_sum(const struct metrics_board *board, enum metric_histogram histogram)
{
    uint64_t sum_us = 0;

    for (unsigned i = 0; i < board->workers + OTHER_SLOTS; i++)
        sum_us += atomic_load_explicit(&board->slots[i].histograms[histogram].sum_us,
                                       memory_order_relaxed);
    return sum_us;
}

uint64_t metrics_times(const struct metrics_board *board, enum metric_histogram histogram,
                       uint64_t ret_times[static METRIC_BUCKET_COUNT])
{
    for (unsigned i = 0; i < METRIC_BUCKET_COUNT; i++)
        ret_times[i] = bucket_sum(board, histogram, i);
    return time_sum(board, histogram);
}

uint64_t metric_bucket_bound_us(unsigned bucket)
{
    return bucket_bounds_us[bucket < METRIC_BUCKET_COUNT - 1 ? bucket : METRIC_BUCKET_COUNT - 2];
}

static void print_histogram(const struct metrics_board *board, enum metric_histogram histogram,
                            struct buffer *text)
{
    const struct family_row *row = &histogram_rows[histogram];
    struct sl_slice labels, family = split_name(row->exposed, &labels);
    const char *comma = labels.size > 0 ? "," : "";
    uint64_t count = 0;

    if (row->help[0])
        print_head(family, "histogram", row->help, text);
    for (unsigned k = 0; k < METRIC_BUCKET_COUNT; k++) {
        count += bucket_sum(board, histogram, k);
        buffer_append_format(text, "%.*s_bucket{%.*s%sle=\"", SL_SLICE_ARG(family),
                             SL_SLICE_ARG(labels), comma);
        if (k < METRIC_BUCKET_COUNT - 1)
            print_seconds(bucket_bounds_us[k], text);
        else
            buffer_append_str(text, "+Inf");
        buffer_append_format(text, "\"} %llu\n", (unsigned long long)count);
    }
    buffer_append_format(text, "%.*s_sum%s ", SL_SLICE_ARG(family), strchrnul(row->exposed, '{'));
    print_seconds(time_sum(board, histogram), text);
    buffer_append_format(text, "\n%.*s_count%s %llu\n", SL_SLICE_ARG(family),
                         strchrnul(row->exposed, '{'), (unsigned long long)count);
}

void metrics_print(const struct metrics_board *board, struct buffer *ret_text)
{
    buffer_append_str(ret_text, "# HELP sluice_build_info Which version this is\n"
                                "# TYPE sluice_build_info gauge\n"
                                "sluice_build_info{version=\"" SLUICE_VERSION "\"} 1\n");
    for (unsigned i = 0; i < METRIC_COUNT; i++)
        print_row(board, (enum metric)i, ret_text);
    for (unsigned i = 0; i < METRIC_SHARD_COUNT; i++)
        print_shards(board, (enum metric_of_shard)i, ret_text);
    for (unsigned i = 0; i < METRIC_HISTOGRAM_COUNT; i++)
        print_histogram(board, (enum metric_histogram)i, ret_text);
}

/* --- as JSON --- */

/* The values of the labels, joined: a="x",b="y" -> "x/y" */
static void print_label_key(struct sl_slice labels, struct buffer *json)
{
    bool is_inside = false, is_first = true;

    buffer_append_char(json, '"');
    for (size_t i = 0; i < labels.size; i++) {
        if (labels.data[i] != '"') {
            if (is_inside)
                buffer_append_char(json, labels.data[i]);
            continue;
        }
        is_inside = !is_inside;
        if (is_inside && !is_first)
            buffer_append_char(json, '/');
        is_first = false;
    }
    buffer_append_str(json, "\":");
}

static void print_json_row(const struct metrics_board *board, enum metric metric,
                           struct buffer *json)
{
    const struct row *row = &rows[metric];
    struct sl_slice labels, family = split_name(row->exposed, &labels);
    bool is_first = row->help[0], is_last = metric + 1u == METRIC_COUNT || rows[metric + 1].help[0];

    buffer_append_str(json, metric > 0 ? "," : "");
    if (is_first)
        buffer_append_format(json, "\"%.*s\":%s", SL_SLICE_ARG(family), labels.size ? "{" : "");
    if (labels.size)
        print_label_key(labels, json);
    if (!row->per_worker)
        print_number(family, metrics_sum(board, metric), json);
    for (unsigned i = 0; row->per_worker && i < board->workers; i++) {
        buffer_append_char(json, i == 0 ? '[' : ',');
        print_number(family, metric_get(&board->slots[i], metric), json);
    }
    buffer_append_str(json, row->per_worker ? "]" : "");
    if (is_last && labels.size)
        buffer_append_char(json, '}');
}

static void print_json_shards(const struct metrics_board *board, enum metric_of_shard metric,
                              struct buffer *json)
{
    const char *family = shard_rows[metric].exposed;
    uint64_t shards = metrics_sum(board, METRIC_SHARDS);

    buffer_append_format(json, ",\"%s\":", family);
    for (uint32_t shard = 0; shard == 0 || shard < shards; shard++) {
        buffer_append_char(json, shard == 0 ? '[' : ',');
        print_number(sl_slice_str(family), shard_sum(board, metric, shard), json);
    }
    buffer_append_char(json, ']');
}

static void print_json_histogram(const struct metrics_board *board, enum metric_histogram histogram,
                                 struct buffer *json)
{
    const struct family_row *row = &histogram_rows[histogram];
    struct sl_slice labels, family = split_name(row->exposed, &labels);
    bool is_first = row->help[0];
    bool is_last =
        histogram + 1u == METRIC_HISTOGRAM_COUNT || histogram_rows[histogram + 1].help[0];

    buffer_append_str(json, histogram > 0 ? "," : "");
    if (is_first)
        buffer_append_format(json, "\"%.*s\":%s", SL_SLICE_ARG(family), labels.size ? "{" : "");
    if (labels.size)
        print_label_key(labels, json);
    buffer_append_str(json, "{\"sum\":");
    print_seconds(time_sum(board, histogram), json);
    buffer_append_str(json, ",\"buckets\":");
    for (unsigned k = 0; k < METRIC_BUCKET_COUNT; k++)
        buffer_append_format(json, "%s%llu", k == 0 ? "[" : ",",
                             (unsigned long long)bucket_sum(board, histogram, k));
    buffer_append_str(json, is_last && labels.size ? "]}}" : "]}");
}

void metrics_print_json(const struct metrics_board *board, struct buffer *ret_json)
{
    buffer_append_str(ret_json, "\"metrics\":{");
    for (unsigned i = 0; i < METRIC_COUNT; i++)
        print_json_row(board, (enum metric)i, ret_json);
    for (unsigned i = 0; i < METRIC_SHARD_COUNT; i++)
        print_json_shards(board, (enum metric_of_shard)i, ret_json);
    buffer_append_str(ret_json, "},\"bounds\":");
    for (unsigned k = 0; k < METRIC_BUCKET_COUNT - 1; k++) {
        buffer_append_char(ret_json, k == 0 ? '[' : ',');
        print_seconds(bucket_bounds_us[k], ret_json);
    }
    buffer_append_str(ret_json, "],\"histograms\":{");
    for (unsigned i = 0; i < METRIC_HISTOGRAM_COUNT; i++)
        print_json_histogram(board, (enum metric_histogram)i, ret_json);
    buffer_append_char(ret_json, '}');
}

/* --- for the manual --- */

static void print_family_manual(const char *exposed, const char *type, const char *help,
                                struct buffer *text)
{
    struct sl_slice labels, family = split_name(exposed, &labels);

    if (help[0])
        buffer_append_format(text, ".It Cm %.*s Pq %s\n%s.\n", SL_SLICE_ARG(family), type, help);
}

void metrics_print_manual(struct buffer *ret_text)
{
    for (unsigned i = 0; i < METRIC_COUNT; i++)
        print_family_manual(rows[i].exposed, rows[i].kind == KIND_GAUGE ? "gauge" : "counter",
                            rows[i].help, ret_text);
    for (unsigned i = 0; i < METRIC_SHARD_COUNT; i++)
        print_family_manual(shard_rows[i].exposed, "gauge", shard_rows[i].help, ret_text);
    for (unsigned i = 0; i < METRIC_HISTOGRAM_COUNT; i++)
        print_family_manual(histogram_rows[i].exposed, "histogram", histogram_rows[i].help,
                            ret_text);
}
