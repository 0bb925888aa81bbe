/* gateway/front/admission.h - limits the number of streams: in total, of a subject, from an
 * address.
 *
 * The limits hold across workers, so the list of all streams is in shared memory. It is protected
 * by one lock, taken when a stream begins and when it ends; if a worker dies holding it, the next
 * one repairs the list. Subjects and addresses are stored as keyed hashes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

struct admission; /* the shared list */

struct admission_limits {
    uint32_t streams;     /* in total; at most the size of the list */
    uint32_t per_subject; /* 0: no limit */
    uint32_t per_address; /* 0: no limit */
    bool replace;         /* at the subject's limit, end its oldest stream */
};

enum admission_verdict {
    ADMISSION_GRANTED,
    ADMISSION_FULL,
    ADMISSION_SUBJECT_FULL,
    ADMISSION_ADDRESS_FULL
};

/* A stream's index in the list: lower than the list's size, so that it can be used as an array
 * index. */
typedef uint32_t admission_ticket;

/* For all workers; create it before they are forked. NULL: out of memory or descriptors. */
struct admission *admission_new(uint32_t max_streams, unsigned workers);
void admission_free(struct admission *admission);
uint32_t admission_size(const struct admission *admission);

/* An empty subject or address is not counted. */
enum admission_verdict admission_enter(struct admission *admission,
                                       const struct admission_limits *limits, unsigned worker,
                                       struct sl_slice subject, struct sl_slice address,
                                       admission_ticket *ret_ticket);
/* The number of streams of the subject, or, if that is empty, from the address. */
uint32_t admission_streams(struct admission *admission, struct sl_slice subject,
                           struct sl_slice address);
void admission_leave(struct admission *admission, admission_ticket ticket);

/* The worker has died, and its streams with it. */
void admission_forget_worker(struct admission *admission, unsigned worker);

/* Readable when streams of this worker were replaced. */
int admission_wake_fd(const struct admission *admission, unsigned worker);
/* Calls `replaced` for each of them that has not left yet. */
void admission_take_replaced(struct admission *admission, unsigned worker,
                             void (*replaced)(void *owner, admission_ticket ticket), void *owner);
