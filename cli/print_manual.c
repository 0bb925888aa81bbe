/* print_manual.c - fills in the generated parts of sluice(1), when Sluice is built.
 *
 *     print-sluice-manual TEMPLATE > PAGE
 *
 * A line @SYNOPSIS@, @OPTIONS@, @COMMANDS@ or @SETTINGS@ of the template is replaced by the text
 * from the tables. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/manual.h"

static const struct {
    const char *line;
    void (*print)(FILE *file, const struct command_table *table);
} parts[] = {
    {"@SYNOPSIS@\n", manual_print_synopsis},
    {"@OPTIONS@\n", manual_print_options},
    {"@COMMANDS@\n", manual_print_commands},
    {"@SETTINGS@\n", manual_print_settings},
};

static void fill(const char *line)
{
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (strcmp(line, parts[i].line) == 0) {
            parts[i].print(stdout, &commands);
            return;
        }
    }
    fputs(line, stdout);
}

int main(int argc, char *argv[])
{
    char *line = NULL;
    size_t size = 0;
    FILE *template;
    bool is_good;

    template = argc == 2 ? fopen(argv[1], "r") : NULL;
    if (!template) {
        fprintf(stderr, "usage: print-sluice-manual TEMPLATE > PAGE\n");
        return EXIT_FAILURE;
    }
    while (getline(&line, &size, template) > 0)
        fill(line);
    is_good = !ferror(template) && fflush(stdout) == 0 && !ferror(stdout);
    free(line);
    fclose(template);
    return is_good ? EXIT_SUCCESS : EXIT_FAILURE;
}
