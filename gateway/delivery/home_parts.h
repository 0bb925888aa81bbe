/* gateway/delivery/home_parts.h - internal to home: what its files share.
 *
 *     home.c        watching and loading feeds, matching events
 *     home_links.c   relations of a feed's user: follows, mutes, hides */
#pragma once

#include "base/hash_map.h"
#include "gateway/delivery/home.h"

/* A user who has a relation to the users of some feeds. */
struct author {
    struct list links;
    size_t id_size;
    char id[];
};

/* Relations between a feed's user and an author, as bits. */
enum relation {
    RELATION_OWN = 1,     /* the same user */
    RELATION_FOLLOWS = 2, /* the user follows the author */
    RELATION_HIDDEN = 4,  /* the author hides from the user */
    RELATION_MUTED = 8,   /* the user has muted the author */
};

struct link {
    struct author *author;
    struct home_feed *feed;
    struct list_node in_author;
    struct list_node in_former; /* in home_feed.former: was shown before, but not now */
    unsigned relations;
    uint64_t shown_from, shown_until; /* in `former`: ids between which it was shown last */
};

enum feed_stage { FEED_LOADING, FEED_LOADED, FEED_FAILED };

struct home_feed {
    struct list watches;
    struct hash_map *links; /* author id -> struct link */
    struct list former;     /* links; the one that was shown longest ago is first */
    enum feed_stage stage;
    bool is_again;            /* it was loaded before, and the following events are newer */
    uint64_t reload_cursor;   /* then: up to this cursor */
    uint64_t load;            /* number of the current load */
    struct list_node loading; /* in home.loading */
    struct event **waiting;   /* events that wait until it is loaded, in order */
    size_t waiting_count, waiting_capacity, waiting_bytes;
    size_t bytes; /* its memory, without authors, which are shared, and events */
    char *user;
};

struct home {
    struct hash_map *feeds;   /* user id -> struct home_feed, without failed ones */
    struct hash_map *authors; /* user id -> struct author */
    struct list loading;      /* feeds whose sets are being read */
    uint64_t loads;           /* number of loads so far */
    size_t max_waiting_bytes;
    size_t bytes, max_bytes; /* of all feeds and authors */
    home_load_fn load;
    void *owner;
};

/* Add to or subtract from the memory of the feed. */
void feed_grow(struct home *home, struct home_feed *feed, size_t bytes);
void feed_shrink(struct home *home, struct home_feed *feed, size_t bytes);
/* 0; -EDQUOT: the feed, or all together, exceed the limit. */
int feed_check_bytes(const struct home *home, const struct home_feed *feed);

/* Adds or removes a relation between the author and the feed's user, because of the event `at`; 0:
 * an event in no log, or no event. 0; -ENOMEM. */
int feed_set_relation(struct home *home, struct home_feed *feed, struct sl_slice id,
                      enum relation relation, bool on, uint64_t at);
/* Adds this relation to all users of the set. 0; -ENOMEM, -EDQUOT: some were added. */
int feed_add_relations(struct home *home, struct home_feed *feed, const struct home_set *set,
                       enum relation relation);
/* Removes all relations before the sets are read again after a gap. */
void feed_remove_relations(struct home_feed *feed);
/* After the sets were read again: removes authors without relations. */
void feed_sweep(struct home *home, struct home_feed *feed);
void feed_free_links(struct home *home, struct home_feed *feed);

/* Whether the author's post, or its deletion, belongs to the feed. */
bool link_wants(const struct link *link, const struct event *event);
