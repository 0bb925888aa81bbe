/* gateway/delivery/home.h - whose posts belong on whose home stream?
 *
 * A feed is one user's home stream, shared by all its connections: the user's own posts, and those
 * of everyone followed that the user may see. Its sets (who is followed, who hides from the user,
 * who is muted) are read from Redis once, when the feed is made, and kept current by the follow,
 * unfollow, hide, unhide, mute and unmute events that pass by. What happens between the two is kept
 * (bounded) and judged, in order, when the sets have come: an old event that they already contain
 * does no harm, for the events end where the sets do. Events that are lost for good (a gap) may
 * have changed the sets, so all feeds read theirs again then.
 *
 * A post is for a feed when its author is shown there and its audience allows the user. A deletion
 * goes where its post did: if the author has been unfollowed or muted or has hidden meanwhile, to
 * the feeds that had shown the author when the post passed. What changes of a user (`user` events)
 * goes where that user's posts go. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/slice.h"
#include "gateway/intake/event.h"

struct home;
struct home_feed;

/* What a feed asks of the owner: read the sets of `user` and answer with home_loaded() or
 * home_load_failed(), naming the `load`. A feed may have gone by then, and even come again. */
typedef void (*home_load_fn)(void *owner, const char *user, uint64_t load);
/* The event belongs to whoever watches the feed. */
typedef void (*home_match_fn)(void *watcher, struct event *event);
/* The user follows somebody from now on, or not any more, or hides, or mutes: what of the past
 * belongs on the feed has changed, too. */
typedef void (*home_changed_fn)(void *watcher);
/* The sets are being read again: nothing comes until the next home_loaded_fn. */
typedef void (*home_loading_fn)(void *watcher);
/* All that passed while the sets were read has been judged: from now on events come as they pass.
 */
typedef void (*home_loaded_fn)(void *watcher);
/* Nothing comes any more, and the watcher must go. -EIO: the sets could not be read, or too much
 * happened before they came; -ENOMEM; -EDQUOT: they take more memory than they may. */
typedef void (*home_failed_fn)(void *watcher, int why);

struct home_watch {
    struct home_feed *feed;
    struct list_node node;
    unsigned types; /* bits 1 << SL_EVENT_... */
    home_match_fn on_match;
    home_changed_fn on_changed; /* NULL: nobody asks */
    home_loading_fn on_loading;
    home_loaded_fn on_loaded;
    home_failed_fn on_failed;
    void *watcher;
};

/* `max_waiting_bytes`: what a feed may keep while its sets are being read. `max_bytes`: what all
 * feeds together may take beside those events; one has a quarter of it. NULL: out of memory. */
struct home *home_new(size_t max_waiting_bytes, size_t max_bytes);
void home_free(struct home *home); /* nobody watches any more */
/* As in home_new(); what is there already stays. */
void home_set_max_bytes(struct home *home, size_t max_bytes);
/* What the feeds take, in bytes: at least the truth. */
size_t home_bytes(const struct home *home);
/* May `user` be watched? Yes where somebody does so already. */
bool home_has_room(const struct home *home, struct sl_slice user);
void home_on_load(struct home *home, home_load_fn load, void *owner);

/* Starts watching; the first watcher of a user makes the feed. What the owner answers at once is
 * not called back. 0; -ENOMEM; -EIO: the sets cannot be read now. */
int home_watch(struct home *home, struct sl_slice user, struct home_watch *watch);
void home_unwatch(struct home *home, struct home_watch *watch); /* or never watched */
/* Whose feed it is; as long as it is watched. */
struct sl_slice home_watch_user(const struct home_watch *watch);
/* No call of on_loaded is to come. */
bool home_is_loaded(const struct home_watch *watch);

/* Does the event belong on the feed, as its sets stand now? Loaded feeds only. */
bool home_wants(const struct home_watch *watch, const struct event *event);

struct home_set {
    const struct sl_slice *users;
    size_t count;
};

struct home_sets {
    struct home_set followed;  /* by the user */
    struct home_set hidden_by; /* these hide from the user */
    struct home_set muted;     /* by the user */
};

void home_loaded(struct home *home, const char *user, uint64_t load, const struct home_sets *sets);
void home_load_failed(struct home *home, const char *user, uint64_t load);

/* Every event passes here: those of graph and privacy change the sets, posts and deletes find
 * feeds. */
void home_event(struct home *home, struct event *event);

/* Events behind `cursor` have been lost: all feeds read their sets again. */
void home_reload(struct home *home, uint64_t cursor);
