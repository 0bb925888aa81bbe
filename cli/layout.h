/* cli/layout.h - parts of text, one below the other or side by side, made to fit a window. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"

/* Lines, the first of them the part's title. */
struct layout_part {
    struct buffer text;
    struct buffer shorter; /* says the most of it in fewer lines; empty: there is no such text */
    bool is_list;          /* its last lines may be left out, and are counted then */
    bool is_second;        /* stands in the second column, where there is one */
};

struct layout_form {
    size_t rows, columns; /* of the window; 0 rows: as many as it takes, and one column */
    bool has_styles;      /* titles stand out */
};

enum { LAYOUT_COLUMN_WIDTH = 80, LAYOUT_COLUMN_GAP = 3 };

/* At most 8 parts. There are two columns where there is room for both; what stands in the first one
 * is ASCII then. What is too much for the rows is made shorter, then loses the empty lines between
 * the parts, then the ends of the longest lists; what is still too much is for the window to cut
 * off. */
void layout_print(const struct layout_part *parts, size_t count, const struct layout_form *form,
                  struct buffer *ret_text);
