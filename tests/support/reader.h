/* tests/support/reader.h - the reader of the home streams of a random history (history.h), whom the
 * events of the first shard let follow and mute authors and be hidden from by them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "tests/support/history.h"
#include "tests/support/wish.h"

/* Once `deliver` is there. */
void reader_begin(void);

/* The reader follows or mutes an author, or an author hides from the reader; or not any more. */
void reader_publish(struct fact *fact);

/* An event has passed, which may be one of those. */
void reader_note_passed(uint64_t id);

/* The home feed waits for the relations of the reader. */
bool reader_is_awaited(void);

/* The relations of the reader are read for its home feed; false: nobody waits for them. */
bool answer_home(void);

/* The authors that the reader is shown, and was shown when. */
const struct wish *reader_shown(void);
