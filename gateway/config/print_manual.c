/* print_manual.c - fills in the generated parts of a manual page, when Sluice is built.
 *
 *     print-manual TEMPLATE > PAGE
 *
 * A line @COMMAND_LINE@, @FILE@ or @METRICS@ of the template is replaced by the text from the
 * tables. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/config/config.h"
#include "gateway/metrics/metrics.h"

static void fill(const char *line, struct buffer *text)
{
    if (strcmp(line, "@COMMAND_LINE@\n") == 0)
        config_print_manual(CONFIG_MANUAL_COMMAND_LINE, text);
    else if (strcmp(line, "@FILE@\n") == 0)
        config_print_manual(CONFIG_MANUAL_FILE, text);
    else if (strcmp(line, "@METRICS@\n") == 0)
        metrics_print_manual(text);
    else
        buffer_append_str(text, line);
}

int main(int argc, char *argv[])
{
    struct buffer text = BUFFER_INIT;
    char *line = NULL;
    size_t size = 0;
    FILE *template;
    bool good;

    template = argc == 2 ? fopen(argv[1], "r") : NULL;
    if (!template) {
        fprintf(stderr, "usage: print-manual TEMPLATE > PAGE\n");
        return EXIT_FAILURE;
    }
    while (getline(&line, &size, template) > 0)
        fill(line, &text);
    good = !ferror(template) && !text.failed &&
           fwrite(text.data, 1, text.size, stdout) == text.size && fflush(stdout) == 0;
    free(line);
    fclose(template);
    buffer_done(&text);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
