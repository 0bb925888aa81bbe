/* gateway/counts/pick_bucket.h - selects the posts of one bucket that are sent.
 *
 * The selection does not depend on the order of posts, except for PICK_FIRST, which sends them as
 * they arrive. Events that are not posts are all sent, in order; if there is a single bucket for
 * everything, none of them is sent, and a post that is deleted within it is not sent either. Keeps
 * at most as many posts as are sent, and references to other events. */
#pragma once

#include "base/hash.h"
#include "gateway/counts/told.h"
#include "gateway/front/pick_question.h"

struct pick_bucket {
    struct picked *picked; /* a heap; the first element is replaced first */
    size_t count, capacity;
    struct told_list others; /* events that are not posts */
    uint64_t matched;        /* posts, including those not selected */
    struct hash_key key;     /* for hashing users */
};

/* Initialize with {0}. */
void pick_bucket_done(struct pick_bucket *bucket);
bool pick_bucket_is_empty(const struct pick_bucket *bucket);

/* `is_had`: the client has the event; it takes part in the selection and is not sent. `told`
 * receives what is sent at once. 0; -ENOMEM: the bucket can no longer be used. */
int pick_bucket_add(struct pick_bucket *bucket, const struct pick_question *question,
                    struct event *event, struct sl_slice tail, bool is_had, struct told_list *told);
/* Ends the bucket: `told` receives what remains to be sent, in the order of ids, and the bucket is
 * empty. *ret_skipped: the number of posts not selected. 0; -ENOMEM. */
int pick_bucket_close(struct pick_bucket *bucket, const struct pick_question *question,
                      struct told_list *told, uint64_t *ret_skipped);
