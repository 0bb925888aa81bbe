/* cli/layout.h - fits parts of text into a window, one below the other or in two columns. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"

/* Lines, the first of which is the part's title. */
struct layout_part {
    struct buffer text;
    struct buffer shorter; /* most of the content in fewer lines; empty: there is no such text */
    bool is_list;          /* its last lines may be left out, and are then counted */
    bool is_second;        /* in the second column, if there is one */
};

struct layout_form {
    size_t rows, columns; /* of the window; 0 rows: unlimited, in one column */
    bool has_styles;      /* highlight titles */
};

enum { LAYOUT_COLUMN_WIDTH = 80, LAYOUT_COLUMN_GAP = 3 };

/* At most 8 parts. There are two columns if both fit; the first one must then be ASCII. If there
 * are too many rows, shorter forms are used, then the empty lines between the parts are removed,
 * then the ends of the longest lists; the rest is cut off by the window. */
void layout_print(const struct layout_part *parts, size_t count, const struct layout_form *form,
                  struct buffer *ret_text);
