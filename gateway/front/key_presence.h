/* gateway/front/key_presence.h - detects keys that were removed for good.
 *
 * The caller reports the present keys repeatedly; a key that is not reported is missing. It counts
 * as removed when it has been missing for `after_ms` and a second valid answer of its publisher
 * confirmed that, because a single answer may be a mistake. A key is identified by its number, not
 * by its name: another key with the same name does not replace it. The time, and the times of
 * answers, are parameters.
 *
 *     key_presence_begin(presence);
 *     key_presence_see(presence, &key);     ... for each present key
 *     key_presence_end(presence, &now);
 *     if (key_presence_is_gone(presence, &key, &since_ms)) ...
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct key_presence;

struct key_presence_key {
    const char *issuer, *kid; /* by token_name() */
    uint64_t number;          /* token_key_number() */
};

struct key_presence_now {
    uint64_t ms;
    uint64_t after_ms; /* how long a key must be missing */
    /* When all keys of this issuer were last known; for keys that are not fetched: now. */
    uint64_t (*known_ms)(void *context, const char *issuer, uint64_t now_ms);
    /* Requests a second answer. */
    void (*want)(void *context, const char *issuer);
    void *context;
};

/* NULL: out of memory. */
struct key_presence *key_presence_new(void);
void key_presence_free(struct key_presence *presence);

void key_presence_begin(struct key_presence *presence);
/* 0; -ENOMEM: it counts as seen only from the next time on. */
int key_presence_see(struct key_presence *presence, const struct key_presence_key *key);
/* Returns the number of removed keys. */
unsigned key_presence_end(struct key_presence *presence, const struct key_presence_now *now);

/* *ret_since_ms: when the removal was detected. With number 0, which no key has: true if all keys
 * with this name were removed. */
bool key_presence_is_gone(const struct key_presence *presence, const struct key_presence_key *key,
                          uint64_t *ret_since_ms);
/* Keys removed at that time, or before, have been handled. */
void key_presence_forget(struct key_presence *presence, uint64_t since_ms);
