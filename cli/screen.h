/* cli/screen.h - uses the whole terminal, and restores it at the end.
 *
 * Between screen_enter() and screen_leave() the terminal shows its alternate screen, keys are read
 * without Enter and not echoed, and Ctrl-C and Ctrl-Z are keys. */
#pragma once

#include <stdbool.h>
#include <termios.h>

#include "base/slice.h"

struct screen {
    int keys; /* descriptor of the keyboard; -1: none */
    bool is_entered;
    struct termios before;
};

/* Uses standard output, and standard input if that is a terminal, too. */
void screen_enter(struct screen *screen);
void screen_leave(struct screen *screen);

/* The size of standard output; 24 and 80 if that is not a terminal, or unknown. */
void screen_size(size_t *ret_rows, size_t *ret_columns);

/* Draws `text` from the top, as much as there is room for; the first line is highlighted if
 * `is_alarm`. 0 or a negative errno. */
int screen_draw(struct sl_slice text, bool is_alarm);
