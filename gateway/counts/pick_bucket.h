/* gateway/counts/pick_bucket.h - which posts of one bucket are sent.
 *
 * The same posts give the same pick, in whatever order they come, but for PICK_FIRST, which sends
 * them as they come. Events that are no posts are all sent, in their places; where there is one
 * bucket of all, none is, and a post that is deleted within it is not sent. Keeps at most as many
 * posts as are sent; of what else there is, references to events. */
#pragma once

#include "base/hash.h"
#include "gateway/counts/told.h"
#include "gateway/front/pick_question.h"

struct pick_bucket {
    struct picked *picked; /* a heap: the first that would go is at the front */
    size_t count, capacity;
    struct told_list others; /* what is no post */
    uint64_t matched;        /* posts, those that are left out, too */
    struct hash_key key;     /* of the hashes of users */
};

/* Begins as {0}. */
void pick_bucket_done(struct pick_bucket *bucket);
bool pick_bucket_is_empty(const struct pick_bucket *bucket);

/* `is_had`: it counts for the pick, and is not told. `told`: gets what is told at once. 0; -ENOMEM:
 * the bucket is no good any more. */
int pick_bucket_add(struct pick_bucket *bucket, const struct pick_question *question,
                    struct event *event, struct sl_slice tail, bool is_had, struct told_list *told);
/* The bucket is over: `told` gets what is left to tell, in the order of ids, and the bucket is as
 * new. *ret_skipped: how many posts are left out. 0; -ENOMEM. */
int pick_bucket_close(struct pick_bucket *bucket, const struct pick_question *question,
                      struct told_list *told, uint64_t *ret_skipped);
