/* home.c - maps users to feeds, and authors to feeds.
 *
 * Events are looked up in `authors`: it contains every user with a relation to the user of some
 * feed, and links to these feeds. The cost of an event is one look-up, plus the feeds that follow
 * its author or must not show the author. */
#include "gateway/delivery/home.h"

#include <assert.h>
#include <errno.h>

#include "base/alloc.h"
#include "gateway/delivery/home_parts.h"

enum { FEED_BYTES = sizeof(struct home_feed) + 1024 /* with an empty map and the id */ };

struct home *home_new(size_t max_waiting_bytes, size_t max_bytes)
{
    struct home *home = mem_zalloc(sizeof(*home));

    if (!home)
        return NULL;
    home->max_waiting_bytes = max_waiting_bytes;
    home->max_bytes = max_bytes;
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
    assert(home->bytes == 0);
    hash_map_free(home->feeds);
    hash_map_free(home->authors);
    mem_free(home);
}

void home_set_max_bytes(struct home *home, size_t max_bytes)
{
    home->max_bytes = max_bytes;
}

size_t home_bytes(const struct home *home)
{
    return home->bytes;
}

bool home_has_room(const struct home *home, struct sl_slice user)
{
    return home->bytes < home->max_bytes || hash_map_get(home->feeds, user);
}

void home_on_load(struct home *home, home_load_fn load, void *owner)
{
    home->load = load;
    home->owner = owner;
}

static void forget_waiting(struct home *home, struct home_feed *feed)
{
    feed_shrink(home, feed, feed->waiting_capacity * sizeof(struct event *));
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
    forget_waiting(home, feed);
}

static void feed_free(struct home *home, struct home_feed *feed)
{
    if (!feed)
        return;
    stop_loading(home, feed);
    feed_free_links(home, feed);
    feed_shrink(home, feed, FEED_BYTES);
    mem_free(feed->user);
    mem_free(feed);
}

static struct home_feed *feed_new(struct home *home, struct sl_slice user)
{
    struct home_feed *feed = mem_zalloc(sizeof(*feed));

    if (!feed)
        return NULL;
    feed_grow(home, feed, FEED_BYTES);
    list_init(&feed->watches);
    list_init(&feed->former);
    feed->user = mem_strndup(user.data, user.size);
    feed->links = hash_map_new();
    if (!feed->user || !feed->links ||
        feed_set_relation(home, feed, user, RELATION_OWN, true, 0) < 0 ||
        hash_map_add(home->feeds, user, feed) < 0) {
        feed_free(home, feed);
        return NULL;
    }
    return feed;
}

static void feed_load(struct home *home, struct home_feed *feed)
{
    assert(feed->stage != FEED_FAILED && home->load);
    feed->stage = FEED_LOADING;
    feed->load = ++home->loads;
    if (!list_contains(&feed->loading))
        list_append(&home->loading, &feed->loading);
    home->load(home->owner, feed->user, feed->load);
}

int home_watch(struct home *home, struct sl_slice user, struct home_watch *watch)
{
    struct home_feed *feed = hash_map_get(home->feeds, user);

    if (!feed) {
        feed = feed_new(home, user);
        if (!feed)
            return -ENOMEM;
        feed_load(home, feed);
    }
    if (feed->stage == FEED_FAILED) {
        feed_free(home, feed);
        return -EIO;
    }
    assert(!watch->feed);
    watch->feed = feed;
    list_append(&feed->watches, &watch->node);
    return 0;
}

void home_unwatch(struct home *home, struct home_watch *watch)
{
    struct home_feed *feed = watch->feed;

    if (!feed)
        return; /* it never watched */
    list_remove(&feed->watches, &watch->node);
    watch->feed = NULL;
    if (!list_is_empty(&feed->watches))
        return;
    if (feed->stage != FEED_FAILED)
        hash_map_remove(home->feeds, sl_slice_str(feed->user));
    feed_free(home, feed);
}

struct sl_slice home_watch_user(const struct home_watch *watch)
{
    return sl_slice_str(watch->feed->user);
}

bool home_is_loaded(const struct home_watch *watch)
{
    return watch->feed->stage == FEED_LOADED;
}

/* The feed can no longer be found, so the next watcher creates a new one. It is freed with its last
 * watcher. */
static void feed_fail(struct home *home, struct home_feed *feed, int why)
{
    assert(feed->stage != FEED_FAILED); /* a failed feed cannot be found */
    feed->stage = FEED_FAILED;
    hash_map_remove(home->feeds, sl_slice_str(feed->user));
    stop_loading(home, feed);
    LIST_EACH(&feed->watches, node)
    {
        struct home_watch *watch = LIST_OWNER(node, struct home_watch, node);

        watch->on_failed(watch->watcher, why);
    }
}

static bool has_type(const struct home_watch *watch, const struct event *event)
{
    return watch->types & (1u << event->view.type);
}

static void feed_tell(struct home_feed *feed, struct event *event)
{
    LIST_EACH(&feed->watches, node)
    {
        struct home_watch *watch = LIST_OWNER(node, struct home_watch, node);

        if (has_type(watch, event))
            watch->on_match(watch->watcher, event);
    }
}

/* Whether it goes to those who are shown its author's posts. */
static bool is_of_author(const struct event *event)
{
    return event->kind == EVENT_POST || event->kind == EVENT_DELETE || event->kind == EVENT_USER;
}

bool home_wants(const struct home_watch *watch, const struct event *event)
{
    const struct home_feed *feed = watch->feed;
    const struct link *link;

    if (!has_type(watch, event))
        return false;
    if (!is_of_author(event))
        return sl_slice_is(event->view.user, feed->user) ||
               sl_slice_is(event->view.target, feed->user);
    link = hash_map_get(feed->links, event->view.user);
    return link && link_wants(link, event);
}

/* Changes a relation of the feed's user. */
static void feed_change(struct home *home, struct home_feed *feed, struct sl_slice author,
                        enum relation relation, bool on, uint64_t at)
{
    int r;

    if (sl_slice_is(author, feed->user))
        return;
    r = feed_set_relation(home, feed, author, relation, on, at);
    if (r == 0 && on)
        r = feed_check_bytes(home, feed);
    if (r < 0) {
        feed_fail(home, feed, r);
        return;
    }
    LIST_EACH(&feed->watches, node)
    {
        struct home_watch *watch = LIST_OWNER(node, struct home_watch, node);

        if (watch->on_changed)
            watch->on_changed(watch->watcher);
    }
}

/* Applies the event to the sets of a loaded feed, then checks whether it belongs to the feed. */
static void feed_judge(struct home *home, struct home_feed *feed, struct event *event)
{
    const struct sl_event_view *view = &event->view;
    bool is_actor = sl_slice_is(view->user, feed->user);
    bool is_target = sl_slice_is(view->target, feed->user);
    bool on = event->kind == EVENT_FOLLOW || event->kind == EVENT_HIDE || event->kind == EVENT_MUTE;
    struct link *link;

    switch (event->kind) {
    case EVENT_POST:
    case EVENT_DELETE:
    case EVENT_USER:
        link = hash_map_get(feed->links, view->user);
        if (link && link_wants(link, event))
            feed_tell(feed, event);
        break;
    case EVENT_FOLLOW:
    case EVENT_UNFOLLOW:
        if (is_actor)
            feed_change(home, feed, view->target, RELATION_FOLLOWS, on, event->id);
        if ((is_actor || is_target) && feed->stage == FEED_LOADED)
            feed_tell(feed, event);
        break;
    case EVENT_HIDE:
    case EVENT_UNHIDE:
        if (is_target)
            feed_change(home, feed, view->user, RELATION_HIDDEN, on, event->id);
        break;
    case EVENT_MUTE:
    case EVENT_UNMUTE:
        if (is_actor)
            feed_change(home, feed, view->target, RELATION_MUTED, on, event->id);
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
            feed_fail(home, feed, -ENOMEM);
            return;
        }
        feed_grow(home, feed, (capacity - feed->waiting_capacity) * sizeof(struct event *));
        feed->waiting = waiting;
        feed->waiting_capacity = capacity;
    }
    feed->waiting[feed->waiting_count++] = event_ref(event);
    feed->waiting_bytes += event->bytes;
    if (feed->waiting_bytes > home->max_waiting_bytes)
        feed_fail(home, feed, -EIO);
    else if (feed_check_bytes(home, feed) < 0)
        feed_fail(home, feed, -EDQUOT);
}

static struct home_feed *find_loading(struct home *home, const char *user, uint64_t load)
{
    struct home_feed *feed = hash_map_get(home->feeds, sl_slice_str(user));

    return feed && feed->stage == FEED_LOADING && feed->load == load ? feed : NULL;
}

void home_loaded(struct home *home, const char *user, uint64_t load, const struct home_sets *sets)
{
    struct home_feed *feed = find_loading(home, user, load);
    int r;

    if (!feed)
        return;
    if (feed->is_again)
        feed_remove_relations(feed);
    r = feed_add_relations(home, feed, &sets->hidden_by, RELATION_HIDDEN);
    if (r == 0)
        r = feed_add_relations(home, feed, &sets->muted, RELATION_MUTED);
    if (r == 0)
        r = feed_add_relations(home, feed, &sets->followed, RELATION_FOLLOWS);
    if (r < 0) {
        feed_fail(home, feed, r);
        return;
    }
    feed_sweep(home, feed);
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
        feed_fail(home, feed, -EIO);
}

static void judge_if_loaded(struct home *home, struct sl_slice user, struct event *event)
{
    struct home_feed *feed = hash_map_get(home->feeds, user);

    if (feed && feed->stage == FEED_LOADED)
        feed_judge(home, feed, event);
}

/* Posts and changes of users concern the feeds of their author; events between two users concern
 * the feeds of these two. */
void home_event(struct home *home, struct event *event)
{
    const struct sl_event_view *view = &event->view;
    struct author *author;

    LIST_EACH(&home->loading, node)
    feed_wait(home, LIST_OWNER(node, struct home_feed, loading), event);

    if (!is_of_author(event)) {
        judge_if_loaded(home, view->user, event);
        if (!sl_slice_equal(view->user, view->target))
            judge_if_loaded(home, view->target, event);
        return;
    }
    author = hash_map_get(home->authors, view->user);
    if (!author)
        return;
    LIST_EACH(&author->links, node)
    {
        struct link *link = LIST_OWNER(node, struct link, in_author);

        if (link->feed->stage == FEED_LOADED && link_wants(link, event))
            feed_tell(link->feed, event);
    }
}

void home_rewind(struct home *home, uint32_t shard, uint64_t from)
{
    LIST_EACH(&home->loading, node)
    {
        struct home_feed *feed = LIST_OWNER(node, struct home_feed, loading);
        size_t count = feed->waiting_count;

        feed->waiting_count = 0;
        for (size_t i = 0; i < count; i++) {
            struct event *event = feed->waiting[i];

            if (event->shard != shard || event->id <= from) {
                feed->waiting[feed->waiting_count++] = event;
                continue;
            }
            feed->waiting_bytes -= event->bytes;
            event_unref(event);
        }
    }
}

/* Feeds that are being loaded are loaded again, too, because the answer may be older than the
 * loss. */
void home_reload(struct home *home, uint64_t cursor)
{
    void *value;

    for (size_t at = 0; hash_map_next(home->feeds, &at, NULL, &value);) {
        struct home_feed *feed = value;

        if (feed->stage == FEED_LOADED) {
            feed->is_again = true;
            feed->reload_cursor = cursor;
            LIST_EACH(&feed->watches, node)
            {
                struct home_watch *watch = LIST_OWNER(node, struct home_watch, node);

                watch->on_loading(watch->watcher);
            }
        }
        feed_load(home, feed);
    }
}
