/* gateway/front/admission.h - how many streams may there be: in all, of one subject, from one
 * address?
 *
 * The answer holds across workers, so the list of all streams lies in memory that they share. It
 * is guarded by one lock, taken when a stream begins and when it ends; a worker that dies holding
 * it leaves a list that the next one repairs. Subjects and addresses are kept as keyed hashes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

struct admission; /* the shared list */

struct admission_limits {
    uint32_t streams;     /* in all; at most what the list was made for */
    uint32_t per_subject; /* 0: no limit */
    uint32_t per_address; /* 0: no limit */
    bool replace;         /* at the subject's limit its oldest stream goes */
};

enum admission_verdict {
    ADMISSION_GRANTED,
    ADMISSION_FULL,
    ADMISSION_SUBJECT_FULL,
    ADMISSION_ADDRESS_FULL
};

/* A stream's index in the list: smaller than the list's size, so that an array can go with it. */
typedef uint32_t admission_ticket;

/* For all workers, before they are forked. NULL: out of memory or descriptors. */
struct admission *admission_new(uint32_t max_streams, unsigned workers);
void admission_free(struct admission *admission);
uint32_t admission_size(const struct admission *admission);

/* An empty subject or address is not counted. */
enum admission_verdict admission_enter(struct admission *admission,
                                       const struct admission_limits *limits, unsigned worker,
                                       struct sl_slice subject, struct sl_slice address,
                                       admission_ticket *ret_ticket);
/* How many there are of the subject, or, if that is empty, from the address. */
uint32_t admission_streams(struct admission *admission, struct sl_slice subject,
                           struct sl_slice address);
void admission_leave(struct admission *admission, admission_ticket ticket);

/* The worker is dead: its streams are gone. */
void admission_forget_worker(struct admission *admission, unsigned worker);

/* Readable when streams of this worker have been replaced. */
int admission_wake_fd(const struct admission *admission, unsigned worker);
/* Calls `replaced` for each of them that has not left yet. */
void admission_take_replaced(struct admission *admission, unsigned worker,
                             void (*replaced)(void *owner, admission_ticket ticket), void *owner);
