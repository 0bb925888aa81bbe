/* layout.c - fits parts of text into a window of some rows and columns.
 *
 * If the window is wide enough there are two columns. A column that is too high is shortened in
 * steps: parts that have a shorter form use it, the empty lines between parts are removed, then the
 * longest list loses a line at a time until everything fits or no list has more than two; its last
 * line says how many rows are missing. */
#include "cli/layout.h"

#include <stdint.h>
#include <string.h>

enum { PARTS_MAX = 8, LIST_MIN_LINES = 2 };

#define BOLD   "\033[1m"
#define NORMAL "\033[0m"

/* A column: its parts, and how much of each is shown. */
struct column {
    const struct layout_part *parts[PARTS_MAX];
    bool is_short[PARTS_MAX];
    size_t lines[PARTS_MAX]; /* number of lines shown */
    size_t count;
    bool is_dense; /* without empty lines between the parts */
};

static struct sl_slice text_of(const struct column *column, size_t part)
{
    return buffer_slice(column->is_short[part] ? &column->parts[part]->shorter
                                               : &column->parts[part]->text);
}

static size_t count_lines(struct sl_slice text)
{
    size_t lines = 0;

    for (size_t i = 0; i < text.size; i++)
        lines += text.data[i] == '\n';
    return lines;
}

static struct sl_slice take_line(struct sl_slice *text)
{
    const char *end = memchr(text->data, '\n', text->size);
    struct sl_slice line = sl_slice(text->data, end ? (size_t)(end - text->data) : text->size);

    *text = sl_slice_from(*text, end ? line.size + 1 : line.size);
    return line;
}

static size_t height(const struct column *column)
{
    size_t lines = column->is_dense || column->count == 0 ? 0 : column->count - 1;

    for (size_t i = 0; i < column->count; i++)
        lines += column->lines[i];
    return lines;
}

static void shorten_parts(struct column *column)
{
    for (size_t i = 0; i < column->count; i++) {
        column->is_short[i] = column->parts[i]->shorter.size > 0;
        column->lines[i] = count_lines(text_of(column, i));
    }
}

/* The longest list; SIZE_MAX: none can lose a line. */
static size_t find_longest(const struct column *column)
{
    size_t longest = SIZE_MAX;

    for (size_t i = 0; i < column->count; i++) {
        if (column->parts[i]->is_list && column->lines[i] > LIST_MIN_LINES &&
            (longest == SIZE_MAX || column->lines[i] > column->lines[longest]))
            longest = i;
    }
    return longest;
}

static void fit(struct column *column, size_t rows)
{
    size_t longest;

    for (size_t i = 0; i < column->count; i++)
        column->lines[i] = count_lines(text_of(column, i));
    if (rows == 0)
        return;
    if (height(column) > rows)
        shorten_parts(column);
    column->is_dense = height(column) > rows;
    while (height(column) > rows && (longest = find_longest(column)) != SIZE_MAX)
        column->lines[longest]--;
}

static void print_line(struct sl_slice line, bool is_title, struct buffer *text)
{
    if (is_title)
        buffer_append_str(text, BOLD);
    buffer_append_slice(text, line);
    if (is_title)
        buffer_append_str(text, NORMAL);
    buffer_append_char(text, '\n');
}

static void print_part(const struct column *column, size_t part, bool has_styles,
                       struct buffer *text)
{
    struct sl_slice left = text_of(column, part);
    size_t all = count_lines(left), shown = column->lines[part];

    if (shown < all)
        shown--; /* one line is needed for the count */
    for (size_t i = 0; i < shown; i++)
        print_line(take_line(&left), has_styles && i == 0, text);
    if (shown < all)
        buffer_append_format(text, "... and %zu more\n", all - shown);
}

static void print_column(const struct column *column, bool has_styles, struct buffer *text)
{
    for (size_t i = 0; i < column->count; i++) {
        if (i > 0 && !column->is_dense)
            buffer_append_char(text, '\n');
        print_part(column, i, has_styles, text);
    }
}

/* The visible width: style sequences have none. */
static size_t width(struct sl_slice line)
{
    size_t width = 0;

    for (size_t i = 0; i < line.size; i++) {
        if (line.data[i] == '\033')
            while (i < line.size && line.data[i] != 'm')
                i++;
        else
            width++;
    }
    return width;
}

static void print_side_by_side(struct sl_slice first, struct sl_slice second, struct buffer *text)
{
    while (first.size > 0 || second.size > 0) {
        struct sl_slice left = take_line(&first);

        buffer_append_slice(text, left);
        if (second.size > 0 && *second.data != '\n')
            buffer_append_format(text, "%*s",
                                 width(left) < LAYOUT_COLUMN_WIDTH
                                     ? (int)(LAYOUT_COLUMN_WIDTH + LAYOUT_COLUMN_GAP - width(left))
                                     : LAYOUT_COLUMN_GAP,
                                 "");
        buffer_append_slice(text, take_line(&second));
        buffer_append_char(text, '\n');
    }
}

void layout_print(const struct layout_part *parts, size_t count, const struct layout_form *form,
                  struct buffer *ret_text)
{
    bool is_wide = form->rows > 0 && form->columns >= 2 * LAYOUT_COLUMN_WIDTH + LAYOUT_COLUMN_GAP;
    struct column columns[2] = {{.count = 0}};
    struct buffer texts[2] = {BUFFER_INIT, BUFFER_INIT};

    for (size_t i = 0; i < count; i++) {
        struct column *column = &columns[is_wide && parts[i].is_second];

        column->parts[column->count++] = &parts[i];
    }
    for (size_t i = 0; i < 2; i++) {
        fit(&columns[i], form->rows);
        print_column(&columns[i], form->has_styles, &texts[i]);
    }
    print_side_by_side(buffer_slice(&texts[0]), buffer_slice(&texts[1]), ret_text);
    if (texts[0].failed || texts[1].failed)
        ret_text->failed = true;
    for (size_t i = 0; i < 2; i++)
        buffer_done(&texts[i]);
}
