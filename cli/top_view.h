/* cli/top_view.h - the output of `sluice top` as text: ASCII, except names of subjects.
 *
 * Text from servers and clients is printed without control characters. */
#pragma once

#include "base/buffer.h"
#include "cli/layout.h"
#include "cli/snapshots.h"

struct top_form {
    struct layout_form page;
    bool has_colors;
};

/* Lines for people: everything, the most important first. There must be a snapshot; rates are
 * unknown until there are two. */
void top_view_print(const struct snapshots *snapshots, const char *url, const struct top_form *form,
                    struct buffer *ret_text);

/* One line of key=value pairs for programs; a hyphen for unknown values. */
void top_view_print_line(const struct snapshots *snapshots, struct buffer *ret_line);
