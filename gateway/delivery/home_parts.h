/* gateway/delivery/home_parts.h - inside home: what its files share.
 *
 *     home.c        feeds are watched and loaded, events are judged for them
 *     home_ties.c   whom a feed's user follows, has muted, or is hidden from */
#pragma once

#include "base/hash_map.h"
#include "gateway/delivery/home.h"

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
    size_t bytes; /* what it takes, without authors, which others share, and events */
    char *user;
};

struct home {
    struct hash_map *feeds;   /* user id -> struct home_feed, but those that have failed */
    struct hash_map *authors; /* user id -> struct author */
    struct list loading;      /* feeds whose sets have not come yet */
    uint64_t loads;           /* asked for so far */
    size_t max_waiting_bytes;
    size_t bytes, max_bytes; /* of all feeds and authors */
    home_load_fn load;
    void *owner;
};

/* The feed takes so much more, or less. */
void feed_grow(struct home *home, struct home_feed *feed, size_t bytes);
void feed_shrink(struct home *home, struct home_feed *feed, size_t bytes);
/* 0; -EDQUOT: it, or all together, take more than they may. */
int feed_check_bytes(const struct home *home, const struct home_feed *feed);

/* Ties the author to the feed's user, or unties them, by the event `at`; 0: an event that is in no
 * log, or none. 0; -ENOMEM. */
int feed_tie(struct home *home, struct home_feed *feed, struct sl_slice id, enum tie tie, bool on,
             uint64_t at);
/* Ties them all, as they stand now. 0; -ENOMEM, -EDQUOT: some are tied. */
int feed_tie_all(struct home *home, struct home_feed *feed, const struct home_set *set,
                 enum tie tie);
/* Before the sets come again, behind a gap. */
void feed_untie_all(struct home_feed *feed);
/* Behind feed_untie_all(), when the sets are there: lets go of who is in none of them. */
void feed_sweep(struct home *home, struct home_feed *feed);
void feed_free_ties(struct home *home, struct home_feed *feed);

/* Is the author's post, or its deletion, for the feed's user? */
bool link_wants(const struct link *link, const struct event *event);
