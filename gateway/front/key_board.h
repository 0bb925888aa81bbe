/* gateway/front/key_board.h - what the process that fetches key sets and the workers tell each
 * other, in memory that they share.
 *
 * A worker that meets a key it does not know wants the set of that issuer fetched; the fetching
 * process is woken, and decides how soon. It says when a set was last got and found good. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gateway/front/key_source.h"

struct key_board;

/* In memory that fork() shares. NULL: no memory, or no descriptor. */
struct key_board *key_board_new(void);
void key_board_free(struct key_board *board);

/* --- workers --- */

/* A token names a key that no set of this source's issuer has. Costs nothing when somebody has said
 * so already. */
void key_board_want(struct key_board *board, uint64_t source_id);
/* clock_monotonic_ms() when a good answer was got last; 0: none since the server began. */
uint64_t key_board_good_ms(const struct key_board *board, uint64_t source_id);

/* --- the fetching process --- */

/* Whoever begins to fetch says what. */
void key_board_begin(struct key_board *board, const struct key_sources *sources);
/* Readable when something became wanted; key_board_heard() makes it unreadable. */
int key_board_fd(const struct key_board *board);
void key_board_heard(struct key_board *board);
bool key_board_is_wanted(const struct key_board *board, unsigned source);
/* It is being fetched: who wants it from now on wants it again. */
void key_board_begun(struct key_board *board, unsigned source);
void key_board_set_good(struct key_board *board, unsigned source, uint64_t now_ms);
