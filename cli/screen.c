#include "cli/screen.h"

#include <errno.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* Sequences of ECMA-48, and three private modes that all terminals have had since the VT220 or
 * xterm: alternate screen (1049), cursor (25), wrapping of long lines (7). */
#define ENTER    "\033[?1049h\033[?25l\033[?7l"
#define LEAVE    "\033[0m\033[?7h\033[?25h\033[?1049l"
#define HOME     "\033[H"
#define INVERSE  "\033[7m"
#define NORMAL   "\033[0m"
#define REST     "\033[K" /* clears the rest of the line */
#define ALL_REST "\033[J" /* clears the rest of the screen */

enum { USUAL_ROWS = 24, USUAL_COLUMNS = 80 };

void screen_enter(struct screen *screen)
{
    struct termios own;

    screen->keys = -1;
    if (tcgetattr(STDIN_FILENO, &screen->before) == 0) {
        screen->keys = STDIN_FILENO;
        own = screen->before;
        own.c_lflag &= ~(tcflag_t)(ICANON | ECHO | ISIG);
        own.c_cc[VMIN] = 1;
        own.c_cc[VTIME] = 0;
        tcsetattr(STDIN_FILENO, TCSANOW, &own);
    }
    fputs(ENTER, stdout);
    fflush(stdout);
    screen->is_entered = true;
}

void screen_leave(struct screen *screen)
{
    if (!screen->is_entered)
        return;
    fputs(LEAVE, stdout);
    fflush(stdout);
    if (screen->keys >= 0)
        tcsetattr(screen->keys, TCSANOW, &screen->before);
    screen->is_entered = false;
}

void screen_size(size_t *ret_rows, size_t *ret_columns)
{
    struct winsize size = {0};

    ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    *ret_rows = size.ws_row > 0 ? size.ws_row : USUAL_ROWS;
    *ret_columns = size.ws_col > 0 ? size.ws_col : USUAL_COLUMNS;
}

int screen_draw(struct sl_slice text, bool is_alarm)
{
    size_t left, columns;

    screen_size(&left, &columns);
    fputs(is_alarm ? HOME INVERSE : HOME, stdout);
    while (text.size > 0 && left-- > 0) {
        const char *end = memchr(text.data, '\n', text.size);
        struct sl_slice line = sl_slice(text.data, end ? (size_t)(end - text.data) : text.size);

        fwrite(line.data, 1, line.size, stdout);
        fputs(NORMAL REST, stdout);
        text = sl_slice_from(text, end ? line.size + 1 : line.size);
        if (text.size > 0 && left > 0)
            putchar('\n');
    }
    fputs(ALL_REST, stdout);
    return fflush(stdout) == 0 ? 0 : -errno;
}
