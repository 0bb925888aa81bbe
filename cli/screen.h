/* cli/screen.h - the whole terminal for a program that draws it anew, and gives it back as it was.
 *
 * Between screen_enter() and screen_leave() the terminal shows its alternate screen, keys come
 * without Enter and are not shown, and Ctrl-C and Ctrl-Z are keys. */
#pragma once

#include <stdbool.h>
#include <termios.h>

#include "base/slice.h"

struct screen {
    int keys; /* descriptor of the keyboard; -1: there is none */
    bool is_entered;
    struct termios before;
};

/* Standard output, and standard input where that is a terminal as well. */
void screen_enter(struct screen *screen);
void screen_leave(struct screen *screen);

/* Of standard output: 24 and 80 where that is no terminal, or does not know. */
void screen_size(size_t *ret_rows, size_t *ret_columns);

/* Draws `text` from the top, as much of it as there is room for; the first line stands out when
 * `is_alarm`. 0 or a negative errno. */
int screen_draw(struct sl_slice text, bool is_alarm);
