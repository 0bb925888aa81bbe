/* base/nearest.h - finds the known word that is closest to a misspelled one. */
#pragma once

#include <stddef.h>

enum { NEAREST_WORD_MAX = 40 }; /* bytes; longer words have no nearest word */

/* A search: initialize with {.text = the written word}, call nearest_see() for each known word,
 * then read `best`. */
struct nearest {
    const char *text;
    const char *best; /* NULL: no word is near enough */
    size_t changes;   /* edit distance of `text` and `best` */
};

void nearest_see(struct nearest *search, const char *word);
