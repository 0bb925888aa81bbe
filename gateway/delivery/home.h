/* gateway/delivery/home.h - decides which posts belong to which home streams.
 *
 * A feed is the home stream of one user, shared by all its connections: the user's own posts, and
 * those of followed users that the user may see. Its sets (followed users, users that hide from the
 * user, muted users) are read from Redis once, when the feed is created, and updated by follow,
 * unfollow, hide, unhide, mute and unmute events. Events that pass while the sets are being read
 * are kept (a limited amount) and processed in order afterwards. Repeating an event that the sets
 * already include does no harm, because the last event for each pair decides. If events are lost (a
 * gap), the sets may have changed, so all feeds read them again.
 *
 * A post belongs to a feed if its author is shown there and its audience includes the user. A
 * deletion goes where its post went: if the author has been unfollowed or muted or has hidden
 * since, to the feeds that showed the author when the post passed. Changes of a user (`user`
 * events) go where that user's posts go. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/slice.h"
#include "gateway/intake/event.h"

struct home;
struct home_feed;

/* Asks the owner to read the sets of `user` and to call home_loaded() or home_load_failed() with
 * the same `load`. The feed may have ended by then, and even been created again. */
typedef void (*home_load_fn)(void *owner, const char *user, uint64_t load);
/* The event belongs to the feed of the watcher. */
typedef void (*home_match_fn)(void *watcher, struct event *event);
/* The follows, hides or mutes have changed, so different past events belong to the feed now. */
typedef void (*home_changed_fn)(void *watcher);
/* The sets are being read again: no events until the next home_loaded_fn. */
typedef void (*home_loading_fn)(void *watcher);
/* Everything that passed during reading has been processed; from now on events arrive as they
 * pass. */
typedef void (*home_loaded_fn)(void *watcher);
/* No more events; the watcher must end. -EIO: the sets could not be read, or too much happened
 * meanwhile; -ENOMEM; -EDQUOT: they exceed the memory limit. */
typedef void (*home_failed_fn)(void *watcher, int why);

struct home_watch {
    struct home_feed *feed;
    struct list_node node;
    unsigned types; /* bits 1 << SL_EVENT_... */
    home_match_fn on_match;
    home_changed_fn on_changed; /* may be NULL */
    home_loading_fn on_loading;
    home_loaded_fn on_loaded;
    home_failed_fn on_failed;
    void *watcher;
};

/* `max_waiting_bytes`: events that a feed may keep while its sets are being read. `max_bytes`:
 * memory of all feeds without these events; one feed may use a quarter of it. NULL: out of
 * memory. */
struct home *home_new(size_t max_waiting_bytes, size_t max_bytes);
void home_free(struct home *home); /* nobody may watch any more */
/* See home_new(); existing feeds stay. */
void home_set_max_bytes(struct home *home, size_t max_bytes);
/* The memory of the feeds in bytes; never too low. */
size_t home_bytes(const struct home *home);
/* Whether `user` may be watched; true if the feed exists. */
bool home_has_room(const struct home *home, struct sl_slice user);
void home_on_load(struct home *home, home_load_fn load, void *owner);

/* Starts watching; the first watcher of a user creates the feed. If the owner answers at once, no
 * callback is called. 0; -ENOMEM; -EIO: the sets cannot be read now. */
int home_watch(struct home *home, struct sl_slice user, struct home_watch *watch);
void home_unwatch(struct home *home, struct home_watch *watch); /* also if it never watched */
/* The user of the feed; valid while it is watched. */
struct sl_slice home_watch_user(const struct home_watch *watch);
/* The sets have been read. */
bool home_is_loaded(const struct home_watch *watch);

/* Whether the event belongs to the feed according to its current sets. Only for loaded feeds. */
bool home_wants(const struct home_watch *watch, const struct event *event);

struct home_set {
    const struct sl_slice *users;
    size_t count;
};

struct home_sets {
    struct home_set followed;  /* by the user */
    struct home_set hidden_by; /* these users hide from the user */
    struct home_set muted;     /* by the user */
};

void home_loaded(struct home *home, const char *user, uint64_t load, const struct home_sets *sets);
void home_load_failed(struct home *home, const char *user, uint64_t load);

/* To be called for every event: graph and privacy events change the sets, posts and deletions are
 * matched with feeds. */
void home_event(struct home *home, struct event *event);

/* The log of the shard has lost what was logged after this id, and the watchers have been told:
 * none of it that waits for a feed is sent afterwards. */
void home_rewind(struct home *home, uint32_t shard, uint64_t from);
/* Events after `cursor` have been lost: all feeds read their sets again. */
void home_reload(struct home *home, uint64_t cursor);
