/* refusal.c - prints the message of an error, and a caret under the position in the given value.
 *
 * The position is counted in characters, the caret is printed in a column: East Asian characters
 * take two, combining ones none. Control characters are shown as blanks. */
#include "cli/refusal.h"

#include <jansson.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <wchar.h>

#include "base/printable.h"

enum { SHOWN_BEFORE = 40, SHOWN_BEHIND = 30 }; /* characters */

static size_t columns_of(const struct printable *character)
{
    int columns = character->is_shown ? wcwidth((wchar_t)character->code_point) : 1;

    return columns < 0 ? 1 : (size_t)columns;
}

/* Prints the characters from `from` to before `to`. Returns the number of columns before `at`. */
static size_t print_value(struct sl_slice value, size_t from, size_t to, size_t at)
{
    size_t columns = 0;

    for (size_t i = 0; i < to && value.size > 0; i++) {
        struct printable character = printable_first(value);

        if (i >= from) {
            if (character.is_shown)
                fprintf(stderr, "%.*s", (int)character.size, value.data);
            else
                fputc(' ', stderr);
            if (i < at)
                columns += columns_of(&character);
        }
        value = sl_slice_from(value, character.size);
    }
    fputs(value.size > 0 ? "...\n" : "\n", stderr);
    return columns;
}

static void print_caret(struct sl_slice value, size_t at)
{
    size_t from = at > SHOWN_BEFORE ? at - SHOWN_BEFORE : 0, columns;
    const char *cut = from > 0 ? "..." : "";
    locale_t widths = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0), before = (locale_t)0;

    if (widths)
        before = uselocale(widths);
    fprintf(stderr, "    %s", cut);
    columns = strlen(cut) + print_value(value, from, at + SHOWN_BEHIND, at);
    fprintf(stderr, "    %*s^\n", (int)columns, "");
    if (widths) {
        uselocale(before);
        freelocale(widths);
    }
}

void refusal_tell(const struct cli *cli, long status, struct sl_slice answer,
                  refusal_value_fn value_of, const void *owner)
{
    json_t *json = json_loadb(answer.data ? answer.data : "", answer.size, 0, NULL);
    const json_t *error = json_object_get(json, "error"), *at = json_object_get(error, "at");
    const char *message = json_string_value(json_object_get(error, "message"));
    const char *param = json_string_value(json_object_get(error, "param"));
    const char *option = NULL, *value = param ? value_of(owner, param, &option) : NULL;

    cli_failed_with(cli, "refused with status %ld: %s%s%s%s", status, option ? "--" : "",
                    option  ? option
                    : param ? param
                            : "",
                    param ? ": " : "", message ? message : "no reason given");
    if (value && json_is_integer(at) && json_integer_value(at) >= 0 &&
        (size_t)json_integer_value(at) <= strlen(value))
        print_caret(sl_slice_str(value), (size_t)json_integer_value(at));
    json_decref(json);
}
