/* gateway/streams/user_check.h - is there a user of each login that a filter names?
 *
 * A login that nobody has matches nothing until somebody takes it; the events of other producers
 * may have it all the same. So it is no reason to refuse a filter, but worth a word, once Redis has
 * answered. What Redis does not answer is not said. */
#pragma once

#include <stdint.h>

#include "base/list.h"
#include "base/slice.h"

struct redis_commands;
struct sl_filter_login;
struct sl_filter_warnings;
struct user_checks;

/* Who asks, for all streams. NULL: out of memory. `commands` must be freed first: it answers what
 * is under way. */
struct user_checks *user_checks_new(struct redis_commands *commands);
void user_checks_free(struct user_checks *checks);

/* Of the database; 0, as at the beginning: it is not known, and nobody is asked for. */
void user_checks_set_shards(struct user_checks *checks, uint32_t shards);

/* `id` is the subscription's; empty: none. */
typedef void (*user_unknown_fn)(void *owner, const char *id, const struct sl_filter_login *login);

/* What one stream asks. */
struct user_questions {
    struct user_checks *checks; /* NULL: nobody is asked for */
    struct list list;           /* the first is under way */
    user_unknown_fn unknown;
    void *owner;
};

void user_questions_init(struct user_questions *questions, struct user_checks *checks,
                         user_unknown_fn unknown, void *owner);

/* Asks for the logins in `warnings`, one after the other. `id` is the subscription's; without data:
 * none. Out of memory: nothing is said. */
void user_questions_add(struct user_questions *questions, struct sl_slice id,
                        const struct sl_filter_warnings *warnings);
/* The owner ends, and hears nothing any more. */
void user_questions_forget(struct user_questions *questions);
