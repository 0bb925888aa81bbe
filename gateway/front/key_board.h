/* gateway/front/key_board.h - communication between the process that fetches key sets and the
 * workers, in shared memory.
 *
 * A worker that encounters an unknown key requests the set of that issuer; the fetching process is
 * woken, and decides when to fetch it. It records when a valid set was last received. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gateway/front/key_source.h"

struct key_board;

/* In memory that fork() shares. NULL: out of memory, or no descriptor. */
struct key_board *key_board_new(void);
void key_board_free(struct key_board *board);

/* --- workers --- */

/* A token names a key that no set of this source's issuer contains. Cheap if it was already
 * reported. */
void key_board_want(struct key_board *board, uint64_t source_id);
/* clock_monotonic_ms() of the last valid answer; 0: none since the server started. */
uint64_t key_board_good_ms(const struct key_board *board, uint64_t source_id);

/* --- the fetching process --- */

/* Called when fetching begins: sets the sources. */
void key_board_begin(struct key_board *board, const struct key_sources *sources);
/* Readable when a set was requested; key_board_heard() makes it unreadable. */
int key_board_fd(const struct key_board *board);
void key_board_heard(struct key_board *board);
bool key_board_is_wanted(const struct key_board *board, unsigned source);
/* The set is being fetched: later requests count as new ones. */
void key_board_begun(struct key_board *board, unsigned source);
void key_board_set_good(struct key_board *board, unsigned source, uint64_t now_ms);
