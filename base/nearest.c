#include "base/nearest.h"

#include <string.h>

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The number of letters to insert, delete, replace or swap with their neighbour. */
static size_t distance(const char *a, size_t a_size, const char *b, size_t b_size)
{
    size_t rows[3][NEAREST_WORD_MAX + 1];
    size_t *above = rows[0], *row = rows[1], *two_above = rows[2], *spare;

    for (size_t j = 0; j <= b_size; j++)
        row[j] = j;
    for (size_t i = 1; i <= a_size; i++) {
        spare = two_above;
        two_above = above;
        above = row;
        row = spare;
        row[0] = i;
        for (size_t j = 1; j <= b_size; j++) {
            row[j] = least(least(above[j], row[j - 1]) + 1, above[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least(row[j], two_above[j - 2] + 1);
        }
    }
    return row[b_size];
}

/* A third of the letters may be wrong; a prefix of a word is near, too. */
void nearest_see(struct nearest *search, const char *word)
{
    size_t text_size = strlen(search->text), word_size = strlen(word), changes;

    if (text_size == 0 || text_size > NEAREST_WORD_MAX || word_size > NEAREST_WORD_MAX)
        return;
    changes = distance(search->text, text_size, word, word_size);
    if (text_size >= 3 && strncmp(search->text, word, text_size) == 0)
        changes = 1;
    if (changes > 1 + text_size / 4 || changes >= text_size)
        return;
    if (!search->best || changes < search->changes) {
        search->best = word;
        search->changes = changes;
    }
}
