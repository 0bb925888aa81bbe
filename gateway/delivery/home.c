/* home.c - users -> feeds, authors -> feeds.
 *
 * `authors` is the index an event is looked up in: for each user that somebody on a home stream
 * here follows, the links to those feeds. The cost of an event is one look-up plus the feeds that
 * want it. */
#include "gateway/delivery/home.h"

#include <assert.h>
#include <errno.h>

#include "base/alloc.h"
#include "base/hash_map.h"

/* Somebody whose posts some feeds want. */
struct author {
    struct list links;
    size_t id_size;
    char id[];
};

/* One feed wants one author. */
struct link {
    struct author *author;
    struct home_feed *feed;
    struct list_node in_author;
};

enum feed_stage { FEED_LOADING, FEED_LOADED, FEED_FAILED };

struct home_feed {
    struct list watches;
    struct hash_map *links; /* author id -> struct link */
    enum feed_stage stage;
    uint64_t load;            /* number of the load that fills it */
    struct list_node loading; /* in home's list while it is */
    struct event **waiting;   /* until loaded, in order */
    size_t waiting_count, waiting_capacity, waiting_bytes;
    char *user;
};

struct home {
    struct hash_map *feeds;   /* user id -> struct home_feed, but those that have failed */
    struct hash_map *authors; /* user id -> struct author */
    struct list loading;      /* feeds whose sets have not come yet */
    uint64_t loads;           /* asked for so far */
    size_t max_waiting_bytes;
    home_load_fn load;
    void *owner;
};

struct home *home_new(size_t max_waiting_bytes)
{
    struct home *home = mem_zalloc(sizeof(*home));

    if (!home)
        return NULL;
    home->max_waiting_bytes = max_waiting_bytes;
    list_init(&home->loading);
    home->feeds = hash_map_new();
    home->authors = hash_map_new();
    if (!home->feeds || !home->authors) {
        home_free(home);
        return NULL;
    }
    return home;
}

void home_free(struct home *home)
{
    if (!home)
        return;
    assert(!home->feeds || hash_map_count(home->feeds) == 0);
    hash_map_free(home->feeds);
    hash_map_free(home->authors);
    mem_free(home);
}

void home_on_load(struct home *home, home_load_fn load, void *owner)
{
    home->load = load;
    home->owner = owner;
}

static struct author *author_get_or_add(struct home *home, struct sl_slice id)
{
    struct author *author = hash_map_get(home->authors, id);

    if (author)
        return author;
    author = mem_alloc(sizeof(*author) + id.size);
    if (!author)
        return NULL;
    list_init(&author->links);
    author->id_size = id.size;
    memcpy(author->id, id.data, id.size);
    if (hash_map_add(home->authors, id, author) < 0) {
        mem_free(author);
        return NULL;
    }
    return author;
}

static void author_drop_if_unwanted(struct home *home, struct author *author)
{
    if (!list_is_empty(&author->links))
        return;
    hash_map_remove(home->authors, sl_slice(author->id, author->id_size));
    mem_free(author);
}

static int feed_add(struct home *home, struct home_feed *feed, struct sl_slice id)
{
    struct link *link;
    int r;

    if (hash_map_get(feed->links, id))
        return 0;
    link = mem_zalloc(sizeof(*link));
    if (!link)
        return -ENOMEM;
    link->feed = feed;
    link->author = author_get_or_add(home, id);
    if (!link->author) {
        mem_free(link);
        return -ENOMEM;
    }
    r = hash_map_add(feed->links, id, link);
    if (r < 0) {
        author_drop_if_unwanted(home, link->author);
        mem_free(link);
        return r;
    }
    list_append(&link->author->links, &link->in_author);
    return 0;
}

static void link_free(struct home *home, struct link *link)
{
    list_remove(&link->author->links, &link->in_author);
    author_drop_if_unwanted(home, link->author);
    mem_free(link);
}

static void feed_remove(struct home *home, struct home_feed *feed, struct sl_slice id)
{
    struct link *link = hash_map_remove(feed->links, id);

    if (link)
        link_free(home, link);
}

static void forget_waiting(struct home_feed *feed)
{
    for (size_t i = 0; i < feed->waiting_count; i++)
        event_unref(feed->waiting[i]);
    mem_free(feed->waiting);
    feed->waiting = NULL;
    feed->waiting_count = feed->waiting_capacity = feed->waiting_bytes = 0;
}

static void stop_loading(struct home *home, struct home_feed *feed)
{
    if (list_contains(&feed->loading))
        list_remove(&home->loading, &feed->loading);
    forget_waiting(feed);
}

static void feed_free(struct home *home, struct home_feed *feed)
{
    void *link;

    if (!feed)
        return;
    stop_loading(home, feed);
    if (feed->links) {
        for (size_t at = 0; hash_map_next(feed->links, &at, NULL, &link);)
            link_free(home, link);
        hash_map_free(feed->links);
    }
    mem_free(feed->user);
    mem_free(feed);
}

static struct home_feed *feed_new(struct home *home, struct sl_slice user)
{
    struct home_feed *feed = mem_zalloc(sizeof(*feed));

    if (!feed)
        return NULL;
    list_init(&feed->watches);
    feed->user = mem_strndup(user.data, user.size);
    feed->links = hash_map_new();
    if (!feed->user || !feed->links || feed_add(home, feed, user) < 0 ||
        hash_map_add(home->feeds, user, feed) < 0) {
        feed_free(home, feed);
        return NULL;
    }
    return feed;
}

static struct home_feed *feed_start(struct home *home, struct sl_slice user)
{
    struct home_feed *feed = feed_new(home, user);

    if (!feed)
        return NULL;
    feed->load = ++home->loads;
    list_append(&home->loading, &feed->loading);
    home->load(home->owner, feed->user, feed->load);
    return feed;
}

int home_watch(struct home *home, struct sl_slice user, struct home_watch *watch)
{
    struct home_feed *feed = hash_map_get(home->feeds, user);

    if (!feed)
        feed = feed_start(home, user);
    if (!feed)
        return -ENOMEM;
    if (feed->stage == FEED_FAILED) {
        feed_free(home, feed);
        return -EIO;
    }
    watch->feed = feed;
    list_append(&feed->watches, &watch->node);
    return 0;
}

void home_unwatch(struct home *home, struct home_watch *watch)
{
    struct home_feed *feed = watch->feed;

    if (!feed)
        return; /* never watched */
    list_remove(&feed->watches, &watch->node);
    watch->feed = NULL;
    if (!list_is_empty(&feed->watches))
        return;
    if (feed->stage != FEED_FAILED)
        hash_map_remove(home->feeds, sl_slice_str(feed->user));
    feed_free(home, feed);
}

bool home_is_loaded(const struct home_watch *watch)
{
    return watch->feed->stage == FEED_LOADED;
}

/* Nobody finds the feed any more: whoever comes next begins anew. It goes with its last watcher. */
static void feed_fail(struct home *home, struct home_feed *feed)
{
    feed->stage = FEED_FAILED;
    hash_map_remove(home->feeds, sl_slice_str(feed->user));
    stop_loading(home, feed);
    LIST_EACH(&feed->watches, node)
    {
        struct home_watch *watch = LIST_OWNER(node, struct home_watch, node);

        watch->on_failed(watch->watcher);
    }
}

static void feed_match(struct home_feed *feed, struct event *event)
{
    bool is_own = sl_slice_is(event->subject.user, feed->user);

    if (event->subject.restricted && !is_own)
        return;
    LIST_EACH(&feed->watches, node)
    {
        struct home_watch *watch = LIST_OWNER(node, struct home_watch, node);

        if (watch->types & (1u << event->subject.type))
            watch->on_match(watch->watcher, event);
    }
}

/* What this event changes in the set of a loaded feed, then whether it belongs on it. */
static void feed_judge(struct home *home, struct home_feed *feed, struct event *event)
{
    bool is_actor = sl_slice_is(event->subject.user, feed->user);

    switch (event->kind) {
    case EVENT_POST:
    case EVENT_DELETE:
        if (hash_map_get(feed->links, event->subject.user))
            feed_match(feed, event);
        break;
    case EVENT_FOLLOW:
    case EVENT_UNFOLLOW:
        if (is_actor && event->kind == EVENT_FOLLOW &&
            feed_add(home, feed, event->subject.target) < 0) {
            feed_fail(home, feed);
            return;
        }
        if (is_actor && event->kind == EVENT_UNFOLLOW &&
            !sl_slice_is(event->subject.target, feed->user))
            feed_remove(home, feed, event->subject.target);
        if (is_actor || sl_slice_is(event->subject.target, feed->user))
            feed_match(feed, event);
        break;
    default:
        break;
    }
}

static void feed_wait(struct home *home, struct home_feed *feed, struct event *event)
{
    if (feed->waiting_count == feed->waiting_capacity) {
        size_t capacity = feed->waiting_capacity ? feed->waiting_capacity * 2 : 16;
        struct event **waiting = mem_realloc(feed->waiting, capacity * sizeof(struct event *));

        if (!waiting) {
            feed_fail(home, feed);
            return;
        }
        feed->waiting = waiting;
        feed->waiting_capacity = capacity;
    }
    feed->waiting[feed->waiting_count++] = event_ref(event);
    feed->waiting_bytes += event->bytes;
    if (feed->waiting_bytes > home->max_waiting_bytes)
        feed_fail(home, feed);
}

static struct home_feed *find_loading(struct home *home, const char *user, uint64_t load)
{
    struct home_feed *feed = hash_map_get(home->feeds, sl_slice_str(user));

    return feed && feed->stage == FEED_LOADING && feed->load == load ? feed : NULL;
}

void home_loaded(struct home *home, const char *user, uint64_t load,
                 const struct sl_slice *followed, size_t count)
{
    struct home_feed *feed = find_loading(home, user, load);

    if (!feed)
        return;
    for (size_t i = 0; i < count; i++) {
        if (feed_add(home, feed, followed[i]) < 0) {
            feed_fail(home, feed);
            return;
        }
    }
    feed->stage = FEED_LOADED;
    for (size_t i = 0; i < feed->waiting_count && feed->stage == FEED_LOADED; i++)
        feed_judge(home, feed, feed->waiting[i]);
    if (feed->stage == FEED_FAILED)
        return;
    stop_loading(home, feed);
    LIST_EACH(&feed->watches, node)
    {
        struct home_watch *watch = LIST_OWNER(node, struct home_watch, node);

        watch->on_loaded(watch->watcher);
    }
}

void home_load_failed(struct home *home, const char *user, uint64_t load)
{
    struct home_feed *feed = find_loading(home, user, load);

    if (feed)
        feed_fail(home, feed);
}

static void judge_if_loaded(struct home *home, struct sl_slice user, struct event *event)
{
    struct home_feed *feed = hash_map_get(home->feeds, user);

    if (feed && feed->stage == FEED_LOADED)
        feed_judge(home, feed, event);
}

/* A post concerns the feeds that want its author, a graph event those of its two users. */
void home_event(struct home *home, struct event *event)
{
    const struct sl_subject *subject = &event->subject;
    struct author *author;

    LIST_EACH(&home->loading, node)
    feed_wait(home, LIST_OWNER(node, struct home_feed, loading), event);

    switch (event->kind) {
    case EVENT_POST:
    case EVENT_DELETE:
        author = hash_map_get(home->authors, subject->user);
        if (!author)
            return;
        LIST_EACH(&author->links, node)
        {
            struct home_feed *feed = LIST_OWNER(node, struct link, in_author)->feed;

            if (feed->stage == FEED_LOADED)
                feed_match(feed, event);
        }
        break;
    case EVENT_FOLLOW:
    case EVENT_UNFOLLOW:
        judge_if_loaded(home, subject->user, event);
        if (!sl_slice_equal(subject->user, subject->target))
            judge_if_loaded(home, subject->target, event);
        break;
    default:
        break;
    }
}
