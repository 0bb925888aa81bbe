/* bench/words.c - what does reading the words of a post cost?
 *
 *     words [-r ROUNDS] EVENTS.jsonl...
 *
 * For each file of events, one per line (../shared/data/posts-*.jsonl, or made by make_load.py):
 * the median over the rounds of the time for the normal form alone and for all of sl_words_read(),
 * per post, warm. Only reading is timed, not parsing JSON. For instructions: valgrind
 * --tool=callgrind --toggle-collect=sl_words_read ./words -r 1 FILE */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "bench/measure.h"
#include "filters/words_private.h"

enum { MAX_URLS = 16, MAX_ROUNDS = 1000 };

struct posts {
    struct sl_event_view *events;
    json_t **documents; /* own the strings */
    size_t count;
};

static struct sl_slice member(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));

    return sl_slice_str(text);
}

static struct sl_event_view event_of(const json_t *document)
{
    const json_t *post = json_object_get(document, "post");
    const json_t *urls = json_object_get(post, "urls");
    struct sl_slice *list = calloc(MAX_URLS, sizeof(*list));
    struct sl_event_view event = {
        .type = SL_EVENT_POST,
        .text = member(post, "text"),
        .login = member(json_object_get(post, "user"), "login"),
        .place = member(json_object_get(post, "place"), "name"),
        .urls = list,
    };

    while (list && event.url_count < json_array_size(urls) && event.url_count < MAX_URLS) {
        const char *url = json_string_value(json_array_get(urls, event.url_count));

        list[event.url_count++] = sl_slice_str(url);
    }
    return event;
}

static void load(const char *path, struct posts *posts)
{
    FILE *file = fopen(path, "r");
    char *line = NULL;
    size_t room = 0;
    ssize_t size;

    if (!file)
        measure_fail(path, NULL);
    while ((size = getline(&line, &room, file)) > 0) {
        json_t *document = json_loadb(line, (size_t)size, 0, NULL);
        size_t count = posts->count + 1;

        posts->documents = realloc(posts->documents, count * sizeof(*posts->documents));
        posts->events = realloc(posts->events, count * sizeof(*posts->events));
        if (!document || !posts->documents || !posts->events) {
            fprintf(stderr, "%s: line %zu is not an event\n", path, count);
            exit(1);
        }
        posts->documents[posts->count] = document;
        posts->events[posts->count++] = event_of(document);
    }
    free(line);
    fclose(file);
}

static void unload(struct posts *posts)
{
    for (size_t i = 0; i < posts->count; i++) {
        free((void *)posts->events[i].urls);
        json_decref(posts->documents[i]);
    }
    free(posts->events);
    free(posts->documents);
}

static void measure(const char *path, int rounds)
{
    static double normal_us[MAX_ROUNDS], read_us[MAX_ROUNDS];
    struct posts posts = {NULL, NULL, 0};
    struct sl_words *words = sl_words_new(1);
    struct buffer normal = BUFFER_INIT;
    size_t bytes = 0, tokens = 0;

    load(path, &posts);
    for (int round = 0; words && round < rounds; round++) {
        double start = measure_now_us();

        for (size_t i = 0; i < posts.count; i++) {
            buffer_clear(&normal);
            sl_normalise(posts.events[i].text, &normal);
        }
        normal_us[round] = (measure_now_us() - start) / (double)posts.count;
        bytes = tokens = 0;
        start = measure_now_us();
        for (size_t i = 0; i < posts.count; i++) {
            sl_words_read(words, &posts.events[i]);
            bytes += posts.events[i].text.size;
            tokens += words->tokens.count;
        }
        read_us[round] = (measure_now_us() - start) / (double)posts.count;
    }
    printf("%-40s %6zu posts %6.1f bytes %6.1f tokens | normal form %6.3f us | all %6.3f us\n",
           path, posts.count, (double)bytes / (double)posts.count,
           (double)tokens / (double)posts.count, measure_share(normal_us, (size_t)rounds, 0.5),
           measure_share(read_us, (size_t)rounds, 0.5));
    buffer_done(&normal);
    sl_words_free(words);
    unload(&posts);
}

int main(int argc, char **argv)
{
    int rounds = 51;
    int file = 1;

    if (argc > 2 && strcmp(argv[1], "-r") == 0) {
        rounds = atoi(argv[2]);
        file = 3;
    }
    if (file >= argc || rounds < 1 || rounds > MAX_ROUNDS) {
        fprintf(stderr, "usage: words [-r ROUNDS] EVENTS.jsonl...\n");
        return 2;
    }
    for (; file < argc; file++)
        measure(argv[file], rounds);
    return 0;
}
