/* home.c - users -> feeds, authors -> feeds.
 *
 * `authors` is the index an event is looked up in: for each user that somebody on a home stream
 * here has something to do with, the links to those feeds. The cost of an event is one look-up plus
 * the feeds that follow its author, or are kept from it. */
#include "gateway/delivery/home.h"

#include <assert.h>
#include <errno.h>

#include "base/alloc.h"
#include "base/hash_map.h"
#include "src/audience.h"

/* Of authors that are shown no more, so many are remembered for the deletions of their posts. */
enum { FORMER_MAX = 1000 };

/* Somebody whose posts some feeds want, or want to be kept from. */
struct author {
    struct list links;
    size_t id_size;
    char id[];
};

/* What there is between a feed's user and an author. */
enum tie {
    TIE_OWN = 1,     /* they are one */
    TIE_FOLLOWS = 2, /* the user follows the author */
    TIE_HIDDEN = 4,  /* the author hides from the user */
    TIE_MUTED = 8,   /* the user has muted the author */
};

struct link {
    struct author *author;
    struct home_feed *feed;
    struct list_node in_author;
    struct list_node in_former; /* of the feed: not shown any more, but was */
    unsigned ties;
    uint64_t shown_from, shown_until; /* in `former`: events of when the author was shown last */
};

enum feed_stage { FEED_LOADING, FEED_LOADED, FEED_FAILED };

struct home_feed {
    struct list watches;
    struct hash_map *links; /* author id -> struct link */
    struct list former;     /* links, the one that was shown longest ago first */
    enum feed_stage stage;
    bool is_again;            /* it has been loaded before, and what follows is of then */
    uint64_t reload_cursor;   /* then: up to here */
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

static bool is_shown(unsigned ties)
{
    return ties == TIE_FOLLOWS || (ties & TIE_OWN);
}

static struct link *link_new(struct home *home, struct home_feed *feed, struct sl_slice id)
{
    struct link *link = mem_zalloc(sizeof(*link));

    if (!link)
        return NULL;
    link->feed = feed;
    link->author = author_get_or_add(home, id);
    if (!link->author) {
        mem_free(link);
        return NULL;
    }
    if (hash_map_add(feed->links, id, link) < 0) {
        author_drop_if_unwanted(home, link->author);
        mem_free(link);
        return NULL;
    }
    list_append(&link->author->links, &link->in_author);
    return link;
}

static void link_free(struct home *home, struct link *link)
{
    list_remove(&link->author->links, &link->in_author);
    if (list_contains(&link->in_former))
        list_remove(&link->feed->former, &link->in_former);
    author_drop_if_unwanted(home, link->author);
    mem_free(link);
}

static void link_drop_if_void(struct home *home, struct link *link)
{
    if (link->ties != 0 || list_contains(&link->in_former))
        return;
    hash_map_remove(link->feed->links, sl_slice(link->author->id, link->author->id_size));
    link_free(home, link);
}

static void link_forget_former(struct home *home, struct link *link)
{
    list_remove(&link->feed->former, &link->in_former);
    link_drop_if_void(home, link);
}

/* The event `at` has changed whether the author is shown; 0: an event that is in no log, so that
 * what came before it cannot be told. */
static void link_turn(struct home *home, struct link *link, uint64_t at)
{
    struct home_feed *feed = link->feed;

    if (is_shown(link->ties)) {
        if (list_contains(&link->in_former))
            list_remove(&feed->former, &link->in_former);
        link->shown_from = at;
        return;
    }
    if (at == 0)
        return;
    link->shown_until = at;
    list_append(&feed->former, &link->in_former);
    if (feed->former.count > FORMER_MAX)
        link_forget_former(home, LIST_OWNER(list_first(&feed->former), struct link, in_former));
}

/* Ties the author to the feed's user, or unties them, by the event `at`. 0; -ENOMEM. */
static int feed_tie(struct home *home, struct home_feed *feed, struct sl_slice id, enum tie tie,
                    bool on, uint64_t at)
{
    struct link *link = hash_map_get(feed->links, id);
    unsigned before;

    if (!link && !on)
        return 0;
    if (!link)
        link = link_new(home, feed, id);
    if (!link)
        return -ENOMEM;
    before = link->ties;
    link->ties = on ? before | (unsigned)tie : before & ~(unsigned)tie;
    if (is_shown(before) != is_shown(link->ties))
        link_turn(home, link, at);
    link_drop_if_void(home, link);
    return 0;
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
    list_init(&feed->former);
    feed->user = mem_strndup(user.data, user.size);
    feed->links = hash_map_new();
    if (!feed->user || !feed->links || feed_tie(home, feed, user, TIE_OWN, true, 0) < 0 ||
        hash_map_add(home->feeds, user, feed) < 0) {
        feed_free(home, feed);
        return NULL;
    }
    return feed;
}

static void feed_load(struct home *home, struct home_feed *feed)
{
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

static bool has_type(const struct home_watch *watch, const struct event *event)
{
    return watch->types & (1u << event->subject.type);
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

/* Was the author shown when the post of this deletion passed, and is not any more? */
static bool was_shown(const struct link *link, const struct event *event)
{
    uint64_t post = event->subject.sample_id;

    return list_contains(&link->in_former) && post >= link->shown_from && post < link->shown_until;
}

/* The rule of who may see a post (src/audience.h), as a gateway knows it. */
static bool link_wants(const struct link *link, const struct event *event)
{
    if (link->ties & TIE_OWN)
        return true;
    if (!is_shown(link->ties) && !(event->kind == EVENT_DELETE && was_shown(link, event)))
        return false;
    return sl_audience_allows(event->audience, sl_slice_str(link->feed->user), true);
}

bool home_wants(const struct home_watch *watch, const struct event *event)
{
    const struct home_feed *feed = watch->feed;
    const struct link *link;

    if (!has_type(watch, event))
        return false;
    if (event->kind != EVENT_POST && event->kind != EVENT_DELETE)
        return sl_slice_is(event->subject.user, feed->user) ||
               sl_slice_is(event->subject.target, feed->user);
    link = hash_map_get(feed->links, event->subject.user);
    return link && link_wants(link, event);
}

/* Changes the tie between two users on the feed of one of them. */
static void feed_change(struct home *home, struct home_feed *feed, struct sl_slice author,
                        enum tie tie, bool on, uint64_t at)
{
    if (!sl_slice_is(author, feed->user) && feed_tie(home, feed, author, tie, on, at) < 0)
        feed_fail(home, feed);
}

/* What this event changes in the sets of a loaded feed, then whether it belongs on it. */
static void feed_judge(struct home *home, struct home_feed *feed, struct event *event)
{
    const struct sl_subject *subject = &event->subject;
    bool is_actor = sl_slice_is(subject->user, feed->user);
    bool is_target = sl_slice_is(subject->target, feed->user);
    bool on = event->kind == EVENT_FOLLOW || event->kind == EVENT_HIDE || event->kind == EVENT_MUTE;
    struct link *link;

    switch (event->kind) {
    case EVENT_POST:
    case EVENT_DELETE:
        link = hash_map_get(feed->links, subject->user);
        if (link && link_wants(link, event))
            feed_tell(feed, event);
        break;
    case EVENT_FOLLOW:
    case EVENT_UNFOLLOW:
        if (is_actor)
            feed_change(home, feed, subject->target, TIE_FOLLOWS, on, event->id);
        if ((is_actor || is_target) && feed->stage == FEED_LOADED)
            feed_tell(feed, event);
        break;
    case EVENT_HIDE:
    case EVENT_UNHIDE:
        if (is_target)
            feed_change(home, feed, subject->user, TIE_HIDDEN, on, event->id);
        break;
    case EVENT_MUTE:
    case EVENT_UNMUTE:
        if (is_actor)
            feed_change(home, feed, subject->target, TIE_MUTED, on, event->id);
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

static int feed_tie_all(struct home *home, struct home_feed *feed, const struct home_set *set,
                        enum tie tie)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < set->count; i++) {
        if (!sl_slice_is(set->users[i], feed->user))
            r = feed_tie(home, feed, set->users[i], tie, true, 0);
    }
    return r;
}

/* What was shown counts as shown up to the gap, and what comes now as shown from there on. */
static void feed_untie_all(struct home_feed *feed)
{
    void *value;

    for (size_t at = 0; hash_map_next(feed->links, &at, NULL, &value);) {
        struct link *link = value;

        if (link->ties & TIE_OWN)
            continue;
        if (is_shown(link->ties)) {
            link->shown_until = feed->reload_cursor + 1;
            list_append(&feed->former, &link->in_former);
        }
        link->ties = 0;
    }
}

/* Behind feed_untie_all(), when the sets are there: lets go of who is in none of them. */
static void feed_sweep(struct home *home, struct home_feed *feed)
{
    void *value;

    while (feed->former.count > FORMER_MAX)
        link_forget_former(home, LIST_OWNER(list_first(&feed->former), struct link, in_former));
    for (size_t at = 0; hash_map_next(feed->links, &at, NULL, &value);)
        link_drop_if_void(home, value);
}

void home_loaded(struct home *home, const char *user, uint64_t load, const struct home_sets *sets)
{
    struct home_feed *feed = find_loading(home, user, load);

    if (!feed)
        return;
    if (feed->is_again)
        feed_untie_all(feed);
    if (feed_tie_all(home, feed, &sets->hidden_by, TIE_HIDDEN) < 0 ||
        feed_tie_all(home, feed, &sets->muted, TIE_MUTED) < 0 ||
        feed_tie_all(home, feed, &sets->followed, TIE_FOLLOWS) < 0) {
        feed_fail(home, feed);
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
        feed_fail(home, feed);
}

static void judge_if_loaded(struct home *home, struct sl_slice user, struct event *event)
{
    struct home_feed *feed = hash_map_get(home->feeds, user);

    if (feed && feed->stage == FEED_LOADED)
        feed_judge(home, feed, event);
}

/* A post concerns the feeds that want its author, what changes between two users theirs. */
void home_event(struct home *home, struct event *event)
{
    const struct sl_subject *subject = &event->subject;
    struct author *author;

    LIST_EACH(&home->loading, node)
    feed_wait(home, LIST_OWNER(node, struct home_feed, loading), event);

    if (event->kind != EVENT_POST && event->kind != EVENT_DELETE) {
        judge_if_loaded(home, subject->user, event);
        if (!sl_slice_equal(subject->user, subject->target))
            judge_if_loaded(home, subject->target, event);
        return;
    }
    author = hash_map_get(home->authors, subject->user);
    if (!author)
        return;
    LIST_EACH(&author->links, node)
    {
        struct link *link = LIST_OWNER(node, struct link, in_author);

        if (link->feed->stage == FEED_LOADED && link_wants(link, event))
            feed_tell(link->feed, event);
    }
}

/* Feeds that are being loaded ask again, too: their answer may be from before the loss. */
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
