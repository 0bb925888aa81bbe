/* base/nearest.h - which word was probably meant? */
#pragma once

#include <stddef.h>

enum { NEAREST_WORD_MAX = 40 }; /* bytes; to a longer word nothing is near */

/* A search: begin with {.text = what was written}, show it each word, read `best`. */
struct nearest {
    const char *text;
    const char *best; /* NULL: nothing is near enough */
    size_t changes;   /* between the two */
};

void nearest_see(struct nearest *search, const char *word);
