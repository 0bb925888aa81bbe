/* gateway/streams/user_check.h - checks whether users with the logins in a filter exist.
 *
 * A filter with an unknown login matches nothing until a user takes that login; but events of other
 * producers may contain it. So the filter is accepted, and a warning follows when Redis has
 * answered. If Redis does not answer, there is no warning. */
#pragma once

#include <stdint.h>

#include "base/list.h"
#include "base/slice.h"

struct redis_commands;
struct sl_filter_login;
struct sl_filter_warnings;
struct user_checks;

/* The checks of all streams. NULL: out of memory. `commands` must be freed first, because that ends
 * outstanding commands. */
struct user_checks *user_checks_new(struct redis_commands *commands);
void user_checks_free(struct user_checks *checks);

/* Sets the number of shards; 0, as at the beginning: the database is unknown, and logins are not
 * checked. */
void user_checks_set_shards(struct user_checks *checks, uint32_t shards);

/* Called for a login that no user has. `id` is the subscription's; empty: none. */
typedef void (*user_unknown_fn)(void *owner, const char *id, const struct sl_filter_login *login);

/* The questions of a stream. */
struct user_questions {
    struct user_checks *checks; /* NULL: logins are not checked */
    struct list list;           /* the first has been sent */
    user_unknown_fn unknown;
    void *owner;
};

void user_questions_init(struct user_questions *questions, struct user_checks *checks,
                         user_unknown_fn unknown, void *owner);

/* Checks the logins in `warnings`, one after the other. `id` is the subscription's; without data:
 * none. Out of memory: they are not checked. */
void user_questions_add(struct user_questions *questions, struct sl_slice id,
                        const struct sl_filter_warnings *warnings);
/* The owner ends: `unknown` is not called any more. */
void user_questions_forget(struct user_questions *questions);
