/* home_timeline.c - a user's home timeline, page by page, and what is new on it.
 *
 *     home-timeline URL LOGIN
 *
 * URL is redis://... or unix:///... Shows the newest posts of the user and of those whom the user
 * follows; then each line of standard input requests more:
 *
 *     more    the next page, of older posts
 *     new     what has come since the newest post that was shown
 *
 * A read takes a few rounds of calls, usually one: sl_home_run() sends them on a blocking link. A
 * program with an event loop handles the rounds one by one instead (sluice/home_read.h). */
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <signal.h>
#include <sluice/meta.h>
#include <sluice/redis_address.h>
#include <sluice/redis_link.h>
#include <sluice/home_read.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE = 10 };

struct timeline {
    struct sl_redis_link *link;
    struct sl_meta meta;
    struct sl_user_ref reader;
    uint64_t newest, oldest; /* of what was shown; 0: nothing yet */
    struct failure failure;
};

static int find_database(struct timeline *timeline, const char *url)
{
    const struct sl_redis_link_options options = {.retry_ms = 2000};
    const struct sl_meta wanted = sl_meta_wanted(0);
    struct sl_redis_address address;
    int r;

    r = sl_redis_address_parse(sl_slice_str(url), &address, &timeline->failure);
    if (r == 0)
        r = sl_redis_link_open(&address, &options, &timeline->link, &timeline->failure);
    if (r == 0)
        r = sl_redis_link_meta(timeline->link, &wanted, &timeline->meta, &timeline->failure);
    return r;
}

/* The rows belong to the read, so they are shown before it is freed. */
static void show(struct timeline *timeline, const struct sl_home_read *read)
{
    for (size_t i = 0; i < sl_home_read_count(read); i++) {
        const struct sl_post_row *row = sl_home_read_at(read, i);

        printf("%" PRIu64 " likes, %" PRIu64 " comments: %.*s\n", row->likes, row->comments,
               SL_SLICE_ARG(row->json));
        if (row->id > timeline->newest)
            timeline->newest = row->id;
        if (timeline->oldest == 0 || row->id < timeline->oldest)
            timeline->oldest = row->id;
    }
}

/* Shows a page. *ret_last is the oldest post on it, 0 when there is none. */
static int show_page(struct timeline *timeline, const struct sl_home_page *page, uint64_t *ret_last)
{
    struct sl_home_read *read = NULL;
    size_t count;
    int r;

    r = sl_home_read_new(&read, &timeline->meta, &timeline->reader, page, &timeline->failure);
    if (r == 0)
        r = sl_home_run(timeline->link, read, &timeline->failure);
    if (r == 0) {
        show(timeline, read);
        count = sl_home_read_count(read);
        *ret_last = count > 0 ? sl_home_read_at(read, count - 1)->id : 0;
    }
    sl_home_read_free(read);
    return r;
}

static int show_older(struct timeline *timeline)
{
    const struct sl_home_page page = {.before = timeline->oldest, .limit = PAGE};
    uint64_t last;
    int r;

    r = show_page(timeline, &page, &last);
    if (r == 0 && last == 0)
        printf("That is all.\n");
    return r;
}

/* There may be several pages of it; only the one past the end is empty. */
static int show_new(struct timeline *timeline)
{
    struct sl_home_page page = {.after = timeline->newest, .limit = PAGE};
    uint64_t last;
    int r;

    do {
        r = show_page(timeline, &page, &last);
        page.before = last;
    } while (r == 0 && last != 0);
    return r;
}

static int obey(struct timeline *timeline)
{
    char line[64];
    int r;

    r = show_older(timeline);
    fflush(stdout);
    while (r == 0 && fgets(line, sizeof(line), stdin)) {
        if (strcmp(line, "more\n") == 0)
            r = show_older(timeline);
        else if (strcmp(line, "new\n") == 0)
            r = show_new(timeline);
        else
            printf("more or new?\n");
        fflush(stdout);
    }
    return r;
}

int main(int argc, char **argv)
{
    struct timeline timeline = {.link = NULL};
    int r;

    if (argc != 3) {
        fprintf(stderr, "usage: home-timeline URL LOGIN\n");
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    timeline.reader = sl_user_by_login(sl_slice_str(argv[2]));
    r = find_database(&timeline, argv[1]);
    if (r == 0)
        r = obey(&timeline);
    if (r < 0)
        fprintf(stderr, "home-timeline: %s\n", timeline.failure.text);
    sl_redis_link_close(timeline.link);
    return r < 0 ? 1 : 0;
}
