/* gateway/delivery/dictionaries.h - the dictionaries of the database, as a worker has them.
 *
 * The list is read every DICTIONARIES_ASK_MS, and the bytes of what is new in it once. So a new
 * dictionary is known to every worker that reaches Redis well before it counts as active, and a
 * withdrawn one is used no more soon after. */
#pragma once

#include <stdbool.h>
#include <uv.h>

#include "base/buffer.h"
#include "gateway/delivery/dictionary.h"
#include "gateway/metrics/metrics.h"
#include "gateway/redis/redis_commands.h"

struct dictionaries;

enum { DICTIONARIES_ASK_MS = 5000, DICTIONARY_NEW_MS = 30000 };

/* `level`: how hard zstd tries. NULL: out of memory. */
struct dictionaries *dictionaries_new(uv_loop_t *loop, struct redis_commands *commands,
                                      struct metrics *metrics, int level);
/* The database is known: asks at once, and from then on. NULL is fine. */
void dictionaries_begin(struct dictionaries *set);
/* Nothing is asked any more; after the commands. NULL is fine. */
void dictionaries_stop(struct dictionaries *set);
/* Nobody points to one any more. NULL is fine. */
void dictionaries_free(struct dictionaries *set);

/* Has the list been read lately, so that what is not in it is unknown? */
bool dictionaries_are_current(const struct dictionaries *set);
/* Also one that is withdrawn, or not read yet. NULL: not in the list. */
struct dictionary *dictionaries_find(const struct dictionaries *set, uint32_t id);
/* The list as JSON. `now_ms`: Unix time. */
void dictionaries_print(const struct dictionaries *set, uint64_t now_ms, struct buffer *json);
