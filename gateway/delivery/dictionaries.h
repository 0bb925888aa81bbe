/* gateway/delivery/dictionaries.h - a worker's copy of the database's compression dictionaries.
 *
 * The list is read every DICTIONARIES_ASK_MS, and the bytes of each dictionary once. So every
 * worker that reaches Redis has a new dictionary well before it counts as active, and stops using a
 * withdrawn one soon. Belongs to the thread of its loop. */
#pragma once

#include <stdbool.h>
#include <uv.h>

#include "base/buffer.h"
#include "gateway/delivery/dictionary.h"
#include "gateway/metrics/metrics.h"
#include "gateway/redis/redis_commands.h"

struct dictionaries;

enum { DICTIONARIES_ASK_MS = 5000, DICTIONARY_NEW_MS = 30000 };

/* `level`: of zstd. NULL: out of memory. */
struct dictionaries *dictionaries_new(uv_loop_t *loop, struct redis_commands *commands,
                                      struct metrics *metrics, int level);
/* The database is known: reads the list now and regularly. NULL is allowed. */
void dictionaries_begin(struct dictionaries *set);
/* Stops reading; to be called after freeing the commands. NULL is allowed. */
void dictionaries_stop(struct dictionaries *set);
/* No pointer to a dictionary may be left. NULL is allowed. */
void dictionaries_free(struct dictionaries *set);

/* Whether the list was read recently, so that a dictionary that is not in it does not exist. */
bool dictionaries_are_current(const struct dictionaries *set);
/* Also finds withdrawn ones, and those that have not been read yet. NULL: not in the list. */
struct dictionary *dictionaries_find(const struct dictionaries *set, uint32_t id);
/* Prints the list as JSON. `now_ms`: Unix time. */
void dictionaries_print(const struct dictionaries *set, uint64_t now_ms, struct buffer *json);
