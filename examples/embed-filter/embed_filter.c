/* embed_filter.c - labels lines of text with the rules that match them, by libsluicefilter.
 *
 *     embed-filter NAME=RULE... < lines
 *
 * Prints each line that a rule matches, after the names of its rules. It shows all that embedding
 * takes: check rules, add them to an index, read each text once, query the index. It is as fast
 * with a million rules. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <sluice/filter.h>
#include <sluice/filter_index.h>
#include <sluice/match_set.h>
#include <sluice/words.h>

struct labeller {
    struct sl_filter_index *index;
    struct sl_words *words;
    struct sl_match_set *matches;
    const char **names; /* by subscription */
};

/* Words are hashed with this secret, so that nobody can choose rules that collide. */
static uint64_t random_seed(void)
{
    uint64_t seed;

    if (getrandom(&seed, sizeof(seed), 0) != (ssize_t)sizeof(seed)) {
        perror("getrandom");
        exit(1);
    }
    return seed;
}

static void *must(void *memory)
{
    if (!memory) {
        fputs("out of memory\n", stderr);
        exit(1);
    }
    return memory;
}

/* Adds NAME=RULE; the index gives it a small number, which finds the name again. */
static int add_rule(struct labeller *labeller, const char *argument)
{
    const struct sl_filter_limits limits = SL_FILTER_LIMITS_DEFAULT;
    const char *equals = strchr(argument, '=');
    struct sl_filter_text text = {0};
    struct sl_filter_error error = {.message = "NAME=RULE expected"};
    struct sl_filter *filter;
    uint32_t subscription;

    text.rule = sl_slice_str(equals ? equals + 1 : NULL);
    if (!equals || sl_filter_new(&text, &limits, &filter, &error) < 0) {
        fprintf(stderr, "%s: %s\n", argument, error.message);
        return -1;
    }
    if (sl_filter_index_add(labeller->index, filter, &subscription) < 0)
        must(NULL);
    sl_filter_unref(filter); /* the index has a reference of its own */
    labeller->names[subscription] = argument;
    return 0;
}

static void label(struct labeller *labeller, const char *line, size_t length)
{
    /* A post could also have an author, a language, a place, links: see <sluice/event_view.h>. */
    struct sl_event_view event = {.type = SL_EVENT_POST, .text = sl_slice(line, length)};
    const uint32_t *subscriptions;
    size_t count;

    if (sl_words_read(labeller->words, &event) < 0 ||
        sl_filter_index_match(labeller->index, &event, labeller->words, labeller->matches) < 0)
        must(NULL);
    subscriptions = sl_match_set_subscriptions(labeller->matches);
    count = sl_match_set_count(labeller->matches);
    for (size_t i = 0; i < count; i++) {
        const char *name = labeller->names[subscriptions[i]];

        printf("%.*s%s", (int)strcspn(name, "="), name, i + 1 < count ? "," : "\t");
    }
    if (count > 0)
        printf("%.*s\n", (int)length, line);
}

int main(int argc, char **argv)
{
    uint64_t seed = random_seed();
    struct labeller labeller = {
        .index = must(sl_filter_index_new(seed)),
        .words = must(sl_words_new(seed)),
        .matches = must(sl_match_set_new()),
        .names = must(calloc((size_t)argc, sizeof(char *))),
    };
    char *line = NULL;
    size_t room = 0;
    ssize_t length;
    int status = argc > 1 ? 0 : 2;

    for (int i = 1; i < argc; i++) {
        if (add_rule(&labeller, argv[i]) < 0)
            status = 2;
    }
    while (status == 0 && (length = getline(&line, &room, stdin)) > 0) {
        if (line[length - 1] == '\n')
            length--;
        label(&labeller, line, (size_t)length);
    }
    free(line);
    free(labeller.names);
    sl_match_set_free(labeller.matches);
    sl_words_free(labeller.words);
    sl_filter_index_free(labeller.index);
    return status;
}
