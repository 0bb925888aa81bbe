/* gateway/delivery/home.h - whose posts belong on whose home stream?
 *
 * A feed is one user's home stream, shared by all its connections: the user's own posts and those
 * of everyone followed. The set of followed users is read from Redis once, when the feed is made,
 * and kept current by the follow and unfollow events that pass by. What happens between the two is
 * kept (bounded) and judged, in order, when the set has come: an old event that the set already
 * contains does no harm, for the events end where the set does.
 *
 * Feeds carry public posts, and restricted ones of the user's own. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/slice.h"
#include "gateway/intake/event.h"

struct home;
struct home_feed;

/* What a new feed asks of the owner, once: read the set of `user` and answer with home_loaded() or
 * home_load_failed(), naming the `load`. A feed may have gone by then, and even come again. */
typedef void (*home_load_fn)(void *owner, const char *user, uint64_t load);
/* The event belongs to whoever watches the feed. */
typedef void (*home_match_fn)(void *watcher, struct event *event);
/* All that passed while the set was read has been judged: from now on events come as they pass. */
typedef void (*home_loaded_fn)(void *watcher);
/* The set could not be read or kept, or too much happened before it came: nothing comes any more,
 * and the watcher must go. */
typedef void (*home_failed_fn)(void *watcher);

struct home_watch {
    struct home_feed *feed;
    struct list_node node;
    unsigned types; /* bits 1 << SL_SUBJECT_... */
    home_match_fn on_match;
    home_loaded_fn on_loaded;
    home_failed_fn on_failed;
    void *watcher;
};

/* `max_waiting_bytes`: what a feed may keep while its set is being read. NULL: out of memory. */
struct home *home_new(size_t max_waiting_bytes);
void home_free(struct home *home); /* nobody watches any more */
void home_on_load(struct home *home, home_load_fn load, void *owner);

/* Starts watching; the first watcher of a user makes the feed. What the owner answers at once is
 * not called back. 0; -ENOMEM; -EIO: the set cannot be read now. */
int home_watch(struct home *home, struct sl_slice user, struct home_watch *watch);
void home_unwatch(struct home *home, struct home_watch *watch); /* or never watched */
/* No call of on_loaded is to come. */
bool home_is_loaded(const struct home_watch *watch);

void home_loaded(struct home *home, const char *user, uint64_t load,
                 const struct sl_slice *followed, size_t count);
void home_load_failed(struct home *home, const char *user, uint64_t load);

/* Every event passes here: follow and unfollow change the sets, posts and deletes find feeds. */
void home_event(struct home *home, struct event *event);
