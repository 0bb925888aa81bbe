/* filter_match.c - tries filters on a file of events: one line in, one line out.
 *
 *     filter-match --filters filters.jsonl < events.jsonl > matches.jsonl
 *
 * Uses the decoder and the index of sluiced, so the results are the same. Answers are written
 * before a read would wait for more input, so the program also works at the other end of a pipe.
 * docs/filters.md, section 12, is its specification. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/hash.h"
#include "base/hash_map.h"
#include "filters/filter.h"
#include "filters/filter_index.h"
#include "filters/match_set.h"
#include "filters/words.h"
#include "gateway/front/filter_json.h"
#include "gateway/intake/event.h"
#include "gateway/intake/event_decode.h"

enum { EXIT_USAGE = 2 };
enum { CHUNK_SIZE = 64 * 1024 };

/* ---- lines in, lines out ---- */

struct output {
    int fd;
    struct buffer pending;
};

struct input {
    int fd;
    struct buffer chunk;
    size_t at; /* offset of the next line */
    bool has_ended;
};

static int output_flush(struct output *output)
{
    struct buffer *pending = &output->pending;
    size_t at = 0;

    if (pending->failed)
        return -ENOMEM;
    while (at < pending->size) {
        ssize_t written = write(output->fd, pending->data + at, pending->size - at);

        if (written < 0 && errno != EINTR)
            return -errno;
        if (written > 0)
            at += (size_t)written;
    }
    buffer_clear(pending);
    return 0;
}

static int input_fill(struct input *input)
{
    char *room;
    ssize_t got;

    buffer_consume(&input->chunk, input->at);
    input->at = 0;
    room = buffer_reserve(&input->chunk, CHUNK_SIZE);
    if (!room)
        return -ENOMEM;
    do
        got = read(input->fd, room, CHUNK_SIZE);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return -errno;
    input->chunk.size += (size_t)got;
    input->has_ended = got == 0;
    return 0;
}

/* 1: *ret_line is the next line without its LF or CRLF, valid until the next call; 0: no more
 * lines; negative errno. Output in `output` (NULL: none) is written before a read. */
static int input_next(struct input *input, struct output *output, struct sl_slice *ret_line)
{
    size_t scanned = 0; /* bytes of the line known to hold no LF */

    for (;;) {
        struct sl_slice rest = sl_slice_from(buffer_slice(&input->chunk), input->at);
        const char *end = memchr(rest.data + scanned, '\n', rest.size - scanned);
        size_t size = end ? (size_t)(end - rest.data) : rest.size;
        int r;

        if (end || (input->has_ended && size > 0)) {
            input->at += size + (end ? 1 : 0);
            if (size > 0 && rest.data[size - 1] == '\r')
                size--;
            *ret_line = sl_slice(rest.data, size);
            return 1;
        }
        if (input->has_ended)
            return 0;
        scanned = rest.size;
        r = output ? output_flush(output) : 0;
        if (r == 0)
            r = input_fill(input);
        if (r < 0)
            return r;
    }
}

/* ---- the filters ---- */

struct entry {
    uint64_t order; /* order in which they were added */
    uint32_t subscription;
    size_t id_size;
    char id[];
};

struct filter_set {
    struct sl_filter_index *index;
    struct sl_words *words;
    struct sl_match_set *matches;
    struct hash_map *by_id;
    struct entry **by_subscription;
    size_t capacity; /* of by_subscription */
    uint64_t added;
    struct buffer matched; /* struct entry *, for the current event */
};

static int filter_set_init(struct filter_set *set)
{
    uint64_t seed = hash_key_random().k0;

    *set = (struct filter_set){0};
    set->index = sl_filter_index_new(seed);
    set->words = sl_words_new(seed);
    set->matches = sl_match_set_new();
    set->by_id = hash_map_new();
    return set->index && set->words && set->matches && set->by_id ? 0 : -ENOMEM;
}

static void filter_set_done(struct filter_set *set)
{
    struct sl_slice id;
    void *entry;

    for (size_t at = 0; set->by_id && hash_map_next(set->by_id, &at, &id, &entry);)
        mem_free(entry);
    hash_map_free(set->by_id);
    mem_free(set->by_subscription);
    buffer_done(&set->matched);
    sl_match_set_free(set->matches);
    sl_words_free(set->words);
    sl_filter_index_free(set->index);
}

static int filter_set_reserve(struct filter_set *set, uint32_t subscription)
{
    struct entry **grown;
    size_t capacity = set->capacity ? set->capacity : 64;

    if (subscription < set->capacity)
        return 0;
    while (capacity <= subscription)
        capacity *= 2;
    grown = mem_realloc(set->by_subscription, mem_array_size(capacity, sizeof(*grown)));
    if (!grown)
        return -ENOMEM;
    set->by_subscription = grown;
    set->capacity = capacity;
    return 0;
}

static struct entry *entry_new(struct sl_slice id, uint64_t order)
{
    struct entry *entry = mem_alloc(sizeof(*entry) + id.size);

    if (!entry)
        return NULL;
    entry->order = order;
    entry->id_size = id.size;
    memcpy(entry->id, id.data, id.size);
    return entry;
}

static int filter_set_enter(struct filter_set *set, struct sl_slice id, struct sl_filter *filter)
{
    struct entry *entry = entry_new(id, set->added);
    int r;

    if (!entry)
        return -ENOMEM;
    r = sl_filter_index_add(set->index, filter, &entry->subscription);
    if (r < 0)
        goto out;
    r = filter_set_reserve(set, entry->subscription);
    if (r == 0)
        r = hash_map_add(set->by_id, id, entry);
    if (r < 0) {
        sl_filter_index_remove(set->index, entry->subscription);
        goto out;
    }
    set->by_subscription[entry->subscription] = entry;
    set->added++;
    entry = NULL; /* handed over */
out:
    mem_free(entry);
    return r;
}

/* 0; -EINVAL, -EEXIST: *reterr says why; -ENOMEM. */
static int filter_set_add(struct filter_set *set, const json_t *json,
                          struct sl_filter_error *reterr)
{
    struct filter_json parts;
    struct sl_filter *filter;
    int r;

    r = filter_json_read(json, &parts, reterr);
    if (r < 0)
        return r;
    r = sl_filter_new(&parts.text, &SL_FILTER_LIMITS_DEFAULT, &filter, reterr);
    if (r < 0)
        return r;
    if (hash_map_get(set->by_id, parts.id))
        r = filter_json_duplicate_id(reterr);
    else
        r = filter_set_enter(set, parts.id, filter);
    sl_filter_unref(filter);
    return r;
}

static bool filter_set_remove(struct filter_set *set, struct sl_slice id)
{
    struct entry *entry = hash_map_remove(set->by_id, id);

    if (!entry)
        return false;
    sl_filter_index_remove(set->index, entry->subscription);
    mem_free(entry);
    return true;
}

static int by_order(const void *a, const void *b)
{
    const struct entry *first = *(struct entry *const *)a;
    const struct entry *second = *(struct entry *const *)b;

    return first->order < second->order ? -1 : first->order > second->order;
}

/* Stores the matching entries, in the order in which they were added, in set->matched. */
static int filter_set_match(struct filter_set *set, const struct sl_event_view *event)
{
    const uint32_t *subscriptions;
    size_t count;
    int r;

    r = sl_words_read(set->words, event);
    if (r < 0)
        return r;
    r = sl_filter_index_match(set->index, event, set->words, set->matches);
    if (r < 0)
        return r;
    count = sl_match_set_count(set->matches);
    subscriptions = sl_match_set_subscriptions(set->matches);
    buffer_clear(&set->matched);
    for (size_t i = 0; i < count; i++)
        buffer_append(&set->matched, &set->by_subscription[subscriptions[i]],
                      sizeof(struct entry *));
    if (set->matched.failed)
        return -ENOMEM;
    if (count > 1)
        qsort(set->matched.data, count, sizeof(struct entry *), by_order);
    return 0;
}

/* ---- the program ---- */

struct options {
    const char *filters; /* NULL: begin with none */
    bool check, stats;
};

struct program {
    struct options options;
    struct filter_set set;
    struct event_decoder *decoder;
    struct output output;
    uint64_t events;
    double load_s, match_s;
};

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Prints {"id":"f1","ok":true} or {"id":"f1","error":"bad_box"}; an id that is not a string becomes
 * null. */
static void print_verdict(struct buffer *out, const json_t *id, const char *error)
{
    buffer_append_str(out, "{\"id\":");
    if (json_is_string(id))
        buffer_append_json_string(out, sl_slice(json_string_value(id), json_string_length(id)));
    else
        buffer_append_str(out, "null");
    if (error)
        buffer_append_format(out, ",\"error\":\"%s\"}\n", error);
    else
        buffer_append_str(out, ",\"ok\":true}\n");
}

static void print_matches(struct buffer *out, const struct buffer *matched)
{
    struct entry *const *entries = (struct entry *const *)(const void *)matched->data;
    size_t count = matched->size / sizeof(*entries);

    buffer_append_char(out, '[');
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            buffer_append_char(out, ',');
        buffer_append_json_string(out, sl_slice(entries[i]->id, entries[i]->id_size));
    }
    buffer_append_str(out, "]\n");
}

/* Handles a line that is not an event: a command, or an invalid line. */
static int answer_command(struct program *program, struct sl_slice line)
{
    struct buffer *out = &program->output.pending;
    struct sl_filter_error error;
    json_t *json = NULL;
    const json_t *id;
    const char *type;
    int r;

    r = filter_json_load(line, &json, &error);
    if (r == -ENOMEM)
        return r;
    type = json_string_value(json_object_get(json, "type"));
    r = 0;
    if (type && strcmp(type, "add_filter") == 0) {
        const json_t *filter = json_object_get(json, "filter");

        id = json_object_get(filter, "id");
        r = filter_set_add(&program->set, filter, &error);
        if (r != -ENOMEM) {
            print_verdict(out, id, r < 0 ? error.code : NULL);
            r = 0;
        }
    } else if (type && strcmp(type, "remove_filter") == 0) {
        bool is_gone;

        id = json_object_get(json, "id");
        is_gone = json_is_string(id) &&
                  filter_set_remove(&program->set,
                                    sl_slice(json_string_value(id), json_string_length(id)));
        print_verdict(out, id, is_gone ? NULL : "no_such_filter");
    } else {
        buffer_append_str(out, "null\n");
    }
    json_decref(json);
    return r;
}

static int answer_event(struct program *program, const struct event *event)
{
    struct buffer *out = &program->output.pending;
    double start;
    int r;

    if (!event_is_for_clients(event)) {
        buffer_append_str(out, "null\n");
        return 0;
    }
    start = seconds();
    r = filter_set_match(&program->set, &event->view);
    program->match_s += seconds() - start;
    if (r < 0)
        return r;
    program->events++;
    print_matches(out, &program->set.matched);
    return 0;
}

static int answer(struct program *program, struct sl_slice line)
{
    static const struct event_origin nowhere;
    struct event *event;
    int r;

    r = event_decode(program->decoder, line, &nowhere, &event, NULL);
    if (r == -ENOMEM)
        return r;
    if (r < 0)
        return answer_command(program, line);
    r = answer_event(program, event);
    event_unref(event);
    return r;
}

static int complain(int error, const char *what)
{
    fprintf(stderr, "filter-match: %s: %s\n", what, strerror(-error));
    return EXIT_FAILURE;
}

static int answer_all(struct program *program)
{
    struct input input = {.fd = STDIN_FILENO};
    struct sl_slice line;
    int r;

    while ((r = input_next(&input, &program->output, &line)) > 0) {
        r = answer(program, line);
        if (r == 0 && program->output.pending.size > CHUNK_SIZE)
            r = output_flush(&program->output);
        if (r < 0)
            break;
    }
    if (r == 0)
        r = output_flush(&program->output);
    buffer_done(&input.chunk);
    return r < 0 ? complain(r, "standard input or output") : EXIT_SUCCESS;
}

/* Adds the filter of one line of the file. 0, also for an invalid one if filters are only to be
 * checked. */
static int load_line(struct program *program, struct sl_slice line, size_t number)
{
    struct sl_filter_error error;
    json_t *json = NULL;
    int r;

    r = filter_json_load(line, &json, &error);
    if (r == 0)
        r = filter_set_add(&program->set, json, &error);
    if (r == -ENOMEM)
        goto out;
    if (program->options.check) {
        print_verdict(&program->output.pending, json_object_get(json, "id"),
                      r < 0 ? error.code : NULL);
        r = 0;
    } else if (r < 0) {
        fprintf(stderr, "filter-match: %s:%zu: %s%s%s: %s\n", program->options.filters, number,
                error.param ? error.param : "", error.param ? ": " : "", error.code, error.message);
    }
out:
    json_decref(json);
    return r;
}

/* Returns EXIT_SUCCESS, or the exit status of the program. */
static int load_filters(struct program *program)
{
    const char *path = program->options.filters;
    struct input input = {.fd = open(path, O_RDONLY | O_CLOEXEC)};
    struct sl_slice line;
    double start = seconds();
    int r;

    if (input.fd < 0) {
        complain(-errno, path);
        return EXIT_USAGE;
    }
    for (size_t number = 1; (r = input_next(&input, NULL, &line)) > 0; number++) {
        r = load_line(program, line, number);
        if (r < 0)
            break;
    }
    program->load_s = seconds() - start;
    buffer_done(&input.chunk);
    close(input.fd);
    if (r == 0)
        return EXIT_SUCCESS;
    if (r != -EINVAL && r != -EEXIST) /* for those, an error line was printed */
        complain(r, path);
    return r == -ENOMEM ? EXIT_FAILURE : EXIT_USAGE;
}

static void print_stats(const struct program *program)
{
    struct sl_filter_index_stats stats;

    sl_filter_index_stats(program->set.index, &stats);
    fprintf(stderr,
            "{\"filters\":%" PRIu64 ",\"events\":%" PRIu64
            ",\"load_s\":%.6f,\"match_s\":%.6f,\"index_bytes\":%" PRIu64 "}\n",
            stats.subscriptions, program->events, program->load_s, program->match_s, stats.bytes);
}

static int run(struct program *program)
{
    int status = EXIT_SUCCESS;
    int r = filter_set_init(&program->set);

    program->output.fd = STDOUT_FILENO;
    program->decoder = event_decoder_new(SIZE_MAX);
    if (r < 0 || !program->decoder)
        return complain(-ENOMEM, "start");
    if (program->options.filters)
        status = load_filters(program);
    if (status != EXIT_SUCCESS)
        return status;
    if (program->options.check) {
        r = output_flush(&program->output);
        if (r < 0)
            status = complain(r, "standard output");
    } else {
        status = answer_all(program);
    }
    if (program->options.stats)
        print_stats(program);
    return status;
}

static const char usage[] =
    "Usage: filter-match [--stats] [--filters FILE] < EVENTS > MATCHES\n"
    "       filter-match --check --filters FILE\n"
    "Says which of the filters match each event.\n"
    "\n"
    "  --filters FILE  begin with these filters, a JSON object a line\n"
    "  --check         read no events, say of each filter whether it is good\n"
    "  --stats         at the end, write a line of numbers to standard error\n"
    "  --help          this text\n"
    "\n"
    "For each line of the input, a line of output: the ids of the filters that match the event,\n"
    "in the order in which they were added, or null when it is not a valid event. The lines\n"
    "{\"type\":\"add_filter\",\"filter\":{...}} and {\"type\":\"remove_filter\",\"id\":\"...\"} "
    "change the\n"
    "filters for the lines behind them.\n";

/* false: the program ends with *ret_status. */
static bool read_options(int argc, char **argv, struct options *ret_options, int *ret_status)
{
    static const struct option long_options[] = {
        {"filters", required_argument, NULL, 'f'},
        {"check", no_argument, NULL, 'c'},
        {"stats", no_argument, NULL, 's'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    int option;

    while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
        switch (option) {
        case 'f':
            ret_options->filters = optarg;
            break;
        case 'c':
            ret_options->check = true;
            break;
        case 's':
            ret_options->stats = true;
            break;
        case 'h':
            fputs(usage, stdout);
            *ret_status = EXIT_SUCCESS;
            return false;
        default:
            *ret_status = EXIT_USAGE;
            return false;
        }
    }
    if (optind < argc || (ret_options->check && !ret_options->filters)) {
        fputs(usage, stderr);
        *ret_status = EXIT_USAGE;
        return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    struct program program = {0};
    int status;

    if (!read_options(argc, argv, &program.options, &status))
        return status;
    status = run(&program);
    event_decoder_free(program.decoder);
    filter_set_done(&program.set);
    buffer_done(&program.output.pending);
    return status;
}
