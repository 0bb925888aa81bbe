/* cli/top_view.h - what `sluice top` shows, as text: ASCII, but for the names of subjects.
 *
 * What a server or a client has made up is printed without control characters: a terminal would
 * obey them. */
#pragma once

#include "base/buffer.h"
#include "cli/layout.h"
#include "cli/snapshots.h"

struct top_form {
    struct layout_form page;
    bool has_colors;
};

/* Lines for a person: everything, the most important first. There must be a snapshot; rates are
 * unknown until there are two. */
void top_view_print(const struct snapshots *snapshots, const char *url, const struct top_form *form,
                    struct buffer *ret_text);

/* One line of key=value pairs for a program; a hyphen for what is not known. */
void top_view_print_line(const struct snapshots *snapshots, struct buffer *ret_line);
