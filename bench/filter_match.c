/* bench/filter_match.c - what does it cost to find the filters that match an event?
 *
 *     filter_match [-r ROUNDS] [-l LOADS] FILTERS.jsonl EVENTS.jsonl [COUNT]...
 *     filter_match [-r ROUNDS] [-l LOADS] -s COUNT | -b COUNT | -p COUNT
 *     filter_match [-r ROUNDS] [-l LOADS] -w COUNT | -n COUNT EVENTS.jsonl
 *
 * FILTERS and EVENTS are made by make_load.py. Prints a row for each COUNT of filters: the median
 * over the rounds of the time per event, for reading the words, for the match and for both, and
 * that of the first round, in which the index still learns what is rare; what was looked at (in the
 * first and the last round) and found; the memory of the index per filter; the time to add one
 * (including parsing, but not JSON), on average and at worst, and to remove one. Filters that are
 * refused (make_load.py makes some phrases too long) are left out.
 *
 * -s: memory and times of COUNT different filters that track one word.
 * -b: COUNT small boxes around the world, with points of populated places as events. -p: the same
 * with COUNT polygons of 3 to 100 points.
 * -w: COUNT different rules of two words that are near each other in some event, without a
 * distance. -n: the same words near each other: "..."~3.
 *
 * Times are CPU times, except for the worst addition: that is the longest of all additions, each
 * taken as the shortest of LOADS runs that do the same, so that it does not depend on other
 * programs. bench/filters counts the instructions of match_all(). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "base/stable_hash.h"
#include "bench/measure.h"
#include "filters/filter.h"
#include "filters/filter_index.h"
#include "filters/words.h"

enum { MAX_ROUNDS = 100, SEED = 1 };

/* --- input -------------------------------------------------------------------------------- */

static void *check(void *memory)
{
    if (!memory)
        measure_fail("memory", NULL);
    return memory;
}

/* One JSON document per line. */
struct documents {
    json_t **items;
    size_t count;
};

static struct documents load(const char *path, size_t max)
{
    struct documents documents = {NULL, 0};
    size_t capacity = 0, room = 0;
    FILE *file = fopen(path, "r");
    char *line = NULL;
    ssize_t size;

    if (!file)
        measure_fail(path, NULL);
    while (documents.count < max && (size = getline(&line, &room, file)) > 0) {
        if (documents.count == capacity) {
            capacity = capacity ? capacity * 2 : 1024;
            documents.items = check(realloc(documents.items, capacity * sizeof(json_t *)));
        }
        documents.items[documents.count++] = check(json_loadb(line, (size_t)size, 0, NULL));
    }
    free(line);
    fclose(file);
    return documents;
}

static void unload(struct documents *documents)
{
    for (size_t i = 0; i < documents->count; i++)
        json_decref(documents->items[i]);
    free(documents->items);
}

static struct sl_slice member(const json_t *object, const char *name)
{
    return sl_slice_str(json_string_value(json_object_get(object, name)));
}

static struct sl_filter_text filter_text_of(const json_t *document)
{
    return (struct sl_filter_text){
        .track = member(document, "track"),
        .follow = member(document, "follow"),
        .locations = member(document, "locations"),
        .rule = member(document, "rule"),
        .language = member(document, "language"),
    };
}

static struct sl_event_view event_of(const json_t *document)
{
    const json_t *post = json_object_get(document, "post");
    const json_t *geo = json_object_get(post, "geo");
    struct sl_slice id = member(post, "id");

    return (struct sl_event_view){
        .type = SL_EVENT_POST,
        .sample_id = id.data ? strtoull(id.data, NULL, 10) : 1,
        .text = member(post, "text"),
        .user = member(json_object_get(post, "user"), "id"),
        .lang = member(post, "lang"),
        .has_point = geo != NULL,
        .point = {json_number_value(json_object_get(geo, "lon")),
                  json_number_value(json_object_get(geo, "lat"))},
    };
}

/* --- the index ---------------------------------------------------------------------------- */

typedef struct sl_filter_text (*filter_text_fn)(const void *source, size_t number);

/* Filters to be added: `text` returns the one with a number below `available`. */
struct supply {
    filter_text_fn text;
    const void *source;
    size_t available, wanted;
    int loads; /* how often they are added, to measure the worst addition */
};

struct loaded {
    struct sl_filter_index *index;
    uint32_t *subscriptions;
    float *add_us; /* the shortest time so far of each addition */
    size_t count;
    double average_add_us, worst_add_us, remove_us; /* per filter */
};

static void add(struct loaded *loaded, const struct sl_filter_text *text)
{
    struct sl_filter_limits limits = SL_FILTER_LIMITS_DEFAULT;
    double start = measure_now_us();
    struct sl_filter *filter;
    float took;

    if (sl_filter_new(text, &limits, &filter, NULL) < 0)
        return;
    if (sl_filter_index_add(loaded->index, filter, &loaded->subscriptions[loaded->count]) < 0)
        check(NULL);
    sl_filter_unref(filter);
    took = (float)(measure_now_us() - start);
    if (loaded->add_us[loaded->count] == 0 || took < loaded->add_us[loaded->count])
        loaded->add_us[loaded->count] = took;
    loaded->count++;
}

static void load_once(struct loaded *loaded, const struct supply *supply)
{
    double start;

    sl_filter_index_free(loaded->index);
    loaded->index = check(sl_filter_index_new(SEED));
    loaded->count = 0;
    start = measure_cpu_us();
    for (size_t i = 0; i < supply->available && loaded->count < supply->wanted; i++) {
        struct sl_filter_text text = supply->text(supply->source, i);

        add(loaded, &text);
    }
    loaded->average_add_us = (measure_cpu_us() - start) / (double)loaded->count;
}

static struct loaded loaded_new(const struct supply *supply)
{
    struct loaded loaded = {
        .subscriptions = check(calloc(supply->wanted + 1, sizeof(uint32_t))),
        .add_us = check(calloc(supply->wanted + 1, sizeof(float))),
    };

    for (int i = 0; i < supply->loads; i++)
        load_once(&loaded, supply);
    for (size_t i = 0; i < loaded.count; i++)
        loaded.worst_add_us = fmax(loaded.worst_add_us, loaded.add_us[i]);
    return loaded;
}

/* Removes filters in another order than they were added. */
static void loaded_empty(struct loaded *loaded)
{
    double start;

    for (size_t i = loaded->count; i > 1; i--) {
        size_t j = stable_hash(i) % i;
        uint32_t subscription = loaded->subscriptions[j];

        loaded->subscriptions[j] = loaded->subscriptions[i - 1];
        loaded->subscriptions[i - 1] = subscription;
    }
    start = measure_cpu_us();
    for (size_t i = 0; i < loaded->count; i++)
        sl_filter_index_remove(loaded->index, loaded->subscriptions[i]);
    loaded->remove_us = (measure_cpu_us() - start) / (double)loaded->count;
}

static void loaded_free(struct loaded *loaded)
{
    sl_filter_index_free(loaded->index);
    free(loaded->subscriptions);
    free(loaded->add_us);
}

struct events {
    struct sl_event_view *items;
    size_t count;
};

__attribute__((noinline)) static void read_all(const struct events *events, struct sl_words *words)
{
    for (size_t i = 0; i < events->count; i++)
        sl_words_read(words, &events->items[i]);
}

/* Returns the number of matches. */
static inline size_t match(struct sl_filter_index *index, const struct events *events,
                           struct sl_words *words, struct sl_match_set *matches)
{
    size_t count = 0;

    for (size_t i = 0; i < events->count; i++) {
        sl_words_read(words, &events->items[i]);
        sl_filter_index_match(index, &events->items[i], words, matches);
        count += sl_match_set_count(matches);
    }
    return count;
}

__attribute__((noinline)) static void match_first(struct sl_filter_index *index,
                                                  const struct events *events,
                                                  struct sl_words *words,
                                                  struct sl_match_set *matches)
{
    match(index, events, words, matches);
}

/* A separate function, so that callgrind can distinguish it from the first round. */
__attribute__((noinline)) static size_t match_all(struct sl_filter_index *index,
                                                  const struct events *events,
                                                  struct sl_words *words,
                                                  struct sl_match_set *matches)
{
    return match(index, events, words, matches);
}

/* --- tables ------------------------------------------------------------------------------- */

struct costs {
    double first_us, read_us, whole_us; /* per event */
    double first_candidates, candidates, matches;
};

static uint64_t candidates_of(const struct sl_filter_index *index)
{
    struct sl_filter_index_stats stats;

    sl_filter_index_stats(index, &stats);
    return stats.candidates;
}

static struct costs measure(struct sl_filter_index *index, const struct events *events, int rounds)
{
    static double read_us[MAX_ROUNDS], whole_us[MAX_ROUNDS];
    struct sl_match_set *matches = check(sl_match_set_new());
    struct sl_words *words = check(sl_words_new(SEED));
    double count = (double)events->count, start = measure_cpu_us();
    struct costs costs;

    match_first(index, events, words, matches);
    costs.first_us = (measure_cpu_us() - start) / count;
    costs.first_candidates = (double)candidates_of(index) / count;
    for (int round = 0; round < rounds; round++) {
        uint64_t candidates = candidates_of(index);

        start = measure_cpu_us();
        read_all(events, words);
        read_us[round] = (measure_cpu_us() - start) / count;
        start = measure_cpu_us();
        costs.matches = (double)match_all(index, events, words, matches) / count;
        whole_us[round] = (measure_cpu_us() - start) / count;
        costs.candidates = (double)(candidates_of(index) - candidates) / count;
    }
    costs.read_us = measure_share(read_us, (size_t)rounds, 0.5);
    costs.whole_us = measure_share(whole_us, (size_t)rounds, 0.5);
    sl_words_free(words);
    sl_match_set_free(matches);
    return costs;
}

static void print_head(void)
{
    puts("| filters | words us | match us | event us | first round us | candidates | first round |"
         " matches | bytes/filter | add us | worst add us | remove us |");
    puts("|---|---|---|---|---|---|---|---|---|---|---|---|");
}

static void print_row(struct loaded *loaded, const struct costs *costs)
{
    struct sl_filter_index_stats stats;

    sl_filter_index_stats(loaded->index, &stats);
    loaded_empty(loaded);
    printf("| %zu | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f | %.1f | %.2f | %.1f | %.2f |\n",
           loaded->count, costs->read_us, costs->whole_us - costs->read_us, costs->whole_us,
           costs->first_us, costs->candidates, costs->first_candidates, costs->matches,
           (double)stats.bytes / (double)loaded->count, loaded->average_add_us,
           loaded->worst_add_us, loaded->remove_us);
    fflush(stdout);
}

static struct costs measure_supply(const struct supply *supply, const struct events *events,
                                   int rounds)
{
    struct loaded loaded = loaded_new(supply);
    struct costs costs = measure(loaded.index, events, rounds);

    print_row(&loaded, &costs);
    loaded_free(&loaded);
    return costs;
}

static struct sl_filter_text document_text(const void *source, size_t number)
{
    const struct documents *documents = source;

    return filter_text_of(documents->items[number]);
}

static struct events events_of(const struct documents *posts)
{
    struct events events = {check(malloc((posts->count + 1) * sizeof(*events.items))),
                            posts->count};

    for (size_t i = 0; i < posts->count; i++)
        events.items[i] = event_of(posts->items[i]);
    return events;
}

static void measure_files(char **argv, int argc, int rounds, int loads)
{
    size_t max = 0;
    struct documents filters, posts;
    struct events events;

    for (int i = 2; i < argc; i++) {
        size_t count = strtoull(argv[i], NULL, 10);

        max = count > max ? count : max;
    }
    filters = load(argv[0], argc > 2 ? max + max / 1000 : SIZE_MAX);
    posts = load(argv[1], SIZE_MAX);
    events = events_of(&posts);
    print_head();
    for (int i = 2; i < argc || i == 2; i++) {
        struct supply supply = {document_text, &filters, filters.count, filters.count, loads};

        if (argc > 2)
            supply.wanted = strtoull(argv[i], NULL, 10);
        measure_supply(&supply, &events, rounds);
    }
    free(events.items);
    unload(&posts);
    unload(&filters);
}

/* Pairs of words of an event's text, with one or two others between them. */
struct pairs {
    const struct documents *posts;
    bool is_near;
    char rule[1024];
};

enum { WORDS_OF_A_POST = 64 };

static size_t split(struct sl_slice text, struct sl_slice words[static WORDS_OF_A_POST])
{
    size_t count = 0;

    for (size_t i = 0; i < text.size && count < WORDS_OF_A_POST; i++) {
        if (text.data[i] <= ' ' && text.data[i] >= 0)
            continue;
        words[count] = sl_slice(text.data + i, 0);
        while (i < text.size && (text.data[i] > ' ' || text.data[i] < 0))
            i++;
        words[count].size = (size_t)(text.data + i - words[count].data);
        count++;
    }
    return count;
}

/* A post of too few words is refused, and so left out. */
static struct sl_filter_text pair_text(const void *source, size_t number)
{
    struct pairs *pairs = (struct pairs *)source;
    const json_t *post = pairs->posts->items[number % pairs->posts->count];
    struct sl_slice words[WORDS_OF_A_POST];
    size_t count = split(member(json_object_get(post, "post"), "text"), words);
    size_t apart = 2 + stable_hash(number) % 2, at;
    int length;

    if (count <= apart)
        return (struct sl_filter_text){.rule = SL_SLICE("")};
    at = stable_hash(number + 1) % (count - apart);
    length = snprintf(pairs->rule, sizeof(pairs->rule), "\"%.*s%s%.*s\"%s", SL_SLICE_ARG(words[at]),
                      pairs->is_near ? " " : "\" \"", SL_SLICE_ARG(words[at + apart]),
                      pairs->is_near ? "~3" : "");
    return (struct sl_filter_text){.rule = {pairs->rule, (size_t)length % sizeof(pairs->rule)}};
}

static void measure_pairs(const char *path, size_t count, bool is_near, int rounds, int loads)
{
    struct documents posts = load(path, SIZE_MAX);
    struct events events = events_of(&posts);
    struct pairs pairs = {.posts = &posts, .is_near = is_near};
    struct supply supply = {pair_text, &pairs, 100 * count, count, loads};

    print_head();
    measure_supply(&supply, &events, rounds);
    free(events.items);
    unload(&posts);
}

/* Eight letters, different for different numbers below 26^8. */
static struct sl_filter_text word_text(const void *source, size_t number)
{
    char *word = (char *)source;

    number *= 104729;
    for (size_t i = 0; i < 8; i++, number /= 26)
        word[i] = (char)('a' + number % 26);
    return (struct sl_filter_text){.track = {word, 8}};
}

static void measure_simple(size_t count, int rounds, int loads)
{
    char word[8];
    struct supply supply = {word_text, word, count, count, loads};
    struct sl_event_view event = {.text = SL_SLICE("nothing of this is tracked"),
                                  .user = SL_SLICE("1")};

    print_head();
    measure_supply(&supply, &(struct events){&event, 1}, rounds);
}

/* A number from -1 to 1, small ones more often than large ones. */
static double around_zero(uint64_t *state)
{
    double sum = 0;

    for (int i = 0; i < 4; i++)
        sum += (double)(stable_hash((*state)++) >> 11) / 0x1p52 - 1;
    return sum / 4;
}

static struct sl_point some_point(uint64_t *state, double spread)
{
    static const struct sl_point cities[] = {{116.4, 39.9}, {139.7, 35.7},  {-0.1, 51.5},
                                             {-74, 40.7},   {-46.6, -23.5}, {28.9, 41},
                                             {31.2, 30.1},  {77.2, 28.7}};
    struct sl_point city = cities[stable_hash((*state)++) % 8];

    return (struct sl_point){fmax(-179, fmin(179, city.lon + spread * around_zero(state))),
                             fmax(-89, fmin(89, city.lat + spread * around_zero(state)))};
}

static struct sl_filter_text box_text(const void *source, size_t number)
{
    static const double sizes[] = {0.01, 0.02, 0.05, 0.2};
    uint64_t state = number * 1000;
    struct sl_point at = some_point(&state, 60);
    double size = sizes[stable_hash(state) % 4];
    char *text = (char *)source;
    int length = sprintf(text, "%.4f,%.4f,%.4f,%.4f", at.lon - size, at.lat - size, at.lon + size,
                         at.lat + size);

    return (struct sl_filter_text){.locations = {text, (size_t)length}};
}

/* Around the same places as the boxes, with corners at different distances. */
static struct sl_filter_text polygon_text(const void *source, size_t number)
{
    static const double sizes[] = {0.01, 0.02, 0.05, 0.2};
    static const int counts[] = {3, 5, 10, 100};
    uint64_t state = number * 1000;
    struct sl_point at = some_point(&state, 60);
    double size = sizes[stable_hash(state) % 4];
    int count = counts[stable_hash(state + 1) % 4];
    char *text = (char *)source, *end = text + sprintf(text, "polygon:[");

    for (int i = 0; i < count; i++) {
        double angle = 2 * M_PI * i / count;
        double reach = size * (1 + (double)(stable_hash(state + 2 + (uint64_t)i) % 1024) / 2048);

        end += sprintf(end, "%s%.4f %.4f", i > 0 ? "," : "", at.lon + reach * cos(angle),
                       at.lat + reach * sin(angle));
    }
    end += sprintf(end, "]");
    return (struct sl_filter_text){.rule = {text, (size_t)(end - text)}};
}

static void measure_areas(size_t count, filter_text_fn area, int rounds, int loads)
{
    enum { POINTS = 20000 };
    static char text[4096];
    struct supply supply = {area, text, count, count, loads};
    struct events events = {check(calloc(POINTS, sizeof(struct sl_event_view))), POINTS};
    uint64_t state = UINT64_MAX / 2;
    struct costs costs;

    for (size_t i = 0; i < POINTS; i++)
        events.items[i] = (struct sl_event_view){.user = SL_SLICE("1"),
                                                 .text = SL_SLICE(""),
                                                 .has_point = true,
                                                 .point = some_point(&state, 1)};
    print_head();
    costs = measure_supply(&supply, &events, rounds);
    printf("\n%.3f us a hit, %.3f us a candidate\n",
           (costs.whole_us - costs.read_us) / costs.matches,
           (costs.whole_us - costs.read_us) / costs.candidates);
    free(events.items);
}

int main(int argc, char **argv)
{
    size_t simple = 0, boxes = 0, polygons = 0, pairs = 0;
    int rounds = 5, loads = 3, option;
    bool is_near = false;

    while ((option = getopt(argc, argv, "r:l:s:b:p:w:n:")) != -1) {
        if (option == 'r')
            rounds = atoi(optarg);
        else if (option == 'l')
            loads = atoi(optarg);
        else if (option == 's')
            simple = strtoull(optarg, NULL, 10);
        else if (option == 'b')
            boxes = strtoull(optarg, NULL, 10);
        else if (option == 'p')
            polygons = strtoull(optarg, NULL, 10);
        else if (option == 'w' || option == 'n')
            pairs = strtoull(optarg, NULL, 10), is_near = option == 'n';
        else
            return 2;
    }
    if (rounds < 1 || rounds > MAX_ROUNDS || loads < 1 ||
        (!simple && !boxes && !polygons && argc - optind < (pairs ? 1 : 2))) {
        fputs("usage: filter_match [-r ROUNDS] [-l LOADS] FILTERS.jsonl EVENTS.jsonl [COUNT]...\n"
              "       filter_match [-r ROUNDS] [-l LOADS] -s COUNT | -b COUNT | -p COUNT\n"
              "       filter_match [-r ROUNDS] [-l LOADS] -w COUNT | -n COUNT EVENTS.jsonl\n",
              stderr);
        return 2;
    }
    if (simple)
        measure_simple(simple, rounds, loads);
    else if (boxes)
        measure_areas(boxes, box_text, rounds, loads);
    else if (pairs)
        measure_pairs(argv[optind], pairs, is_near, rounds, loads);
    else if (polygons)
        measure_areas(polygons, polygon_text, rounds, loads);
    else
        measure_files(argv + optind, argc - optind, rounds, loads);
    return 0;
}
