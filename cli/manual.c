/* manual.c - the table of commands in mdoc(7), for the template of sluice(1).
 *
 * Texts of the table are plain: control characters of roff are escaped here, and each text is one
 * input line. Runs when Sluice is built (print_manual.c). */
#include "cli/manual.h"

#include <string.h>

#include "cli/command_table.h"
#include "cli/common_options.h"
#include "cli/usage.h"
#include "src/database/settings.h"

/* Prints text for roff: no character has a special meaning, and no line breaks. */
static void print_text(FILE *file, struct sl_slice text)
{
    for (size_t i = 0; i < text.size; i++) {
        char c = text.data[i];

        if (c == '\\')
            fputs("\\e", file);
        else if (c == '~')
            fputs("\\(ti", file);
        else if (c == '-' && i + 1 < text.size && (text.data[i + 1] == '-' || i == 0))
            fputs("\\-", file);
        else if (i == 0 && (c == '.' || c == '\''))
            fprintf(file, "\\&%c", c);
        else
            fputc(c == '\n' ? ' ' : c, file);
    }
}

static void print_line(FILE *file, const char *text)
{
    print_text(file, sl_slice_str(text));
    fputc('\n', file);
}

/* Prints words after a macro, each quoted, so that none is taken for one. */
static void print_words(FILE *file, const char *words)
{
    struct sl_slice rest = sl_slice_str(words);

    while (rest.size > 0) {
        const char *space = memchr(rest.data, ' ', rest.size);
        size_t size = space ? (size_t)(space - rest.data) : rest.size;

        fputs(" \"", file);
        print_text(file, sl_slice(rest.data, size));
        fputc('"', file);
        rest = sl_slice_from(rest, space ? size + 1 : size);
    }
}

static void print_option(FILE *file, const char *macro, const struct cli_option *option)
{
    fprintf(file, ".%s \\-\\-%s", macro, option->name);
    if (option->value) {
        fputs(" Ar", file);
        print_words(file, option->value);
    }
    fputs(option->times == CLI_MANY && option->value ? " ...\n" : "\n", file);
}

static void print_usage(FILE *file, const struct command *command)
{
    const struct cli_option *option;

    fputs(".Nm\n.Cm", file);
    print_words(file, command->name);
    fputc('\n', file);
    for (option = command->options; option && option->name; option++) {
        if (option->times == CLI_NEEDED)
            print_option(file, "Cm", option);
    }
    for (option = command->options; option && option->name; option++) {
        if (option->times != CLI_NEEDED)
            print_option(file, "Op Cm", option);
    }
    if (command->arguments[0]) {
        fputs(".Ar", file);
        print_words(file, command->arguments);
        fputc('\n', file);
    }
}

void manual_print_synopsis(FILE *file, const struct command_table *table)
{
    for (size_t i = 0; i < table->count; i++)
        print_usage(file, table->entries[i].command);
}

static void print_option_list(FILE *file, const struct cli_option *options)
{
    fputs(".Bl -tag -width Ds\n", file);
    for (; options->name; options++) {
        print_option(file, "It Cm", options);
        print_line(file, options->help);
    }
    fputs(".El\n", file);
}

void manual_print_options(FILE *file, const struct command_table *table)
{
    (void)table;
    print_option_list(file, common_options);
}

static void print_examples(FILE *file, const char *examples)
{
    struct sl_slice rest = sl_slice_str(examples), line;

    fputs(".Pp\n.Bd -literal -offset indent -compact\n", file);
    while (usage_next_line(&rest, &line)) {
        fputs("$ ", file);
        print_text(file, line);
        fputc('\n', file);
    }
    fputs(".Ed\n", file);
}

static void print_command(FILE *file, const struct command *command)
{
    struct sl_slice rest = sl_slice_str(command->help ? command->help : ""), paragraph;

    fprintf(file, ".Ss %s\n", command->name);
    fprintf(file, "%c", command->summary[0] - 'a' + 'A');
    print_text(file, sl_slice_str(command->summary + 1));
    fputs(".\n", file);
    while (usage_next_paragraph(&rest, &paragraph)) {
        fputs(".Pp\n", file);
        print_text(file, paragraph);
        fputc('\n', file);
    }
    if (command->options)
        print_option_list(file, command->options);
    if (command->examples)
        print_examples(file, command->examples);
}

void manual_print_commands(FILE *file, const struct command_table *table)
{
    for (size_t i = 0; i < table->count; i++)
        print_command(file, table->entries[i].command);
}

void manual_print_settings(FILE *file, const struct command_table *table)
{
    char text[SL_SETTING_TEXT_SIZE];

    (void)table;
    fputs(".Bl -tag -width Ds\n", file);
    for (size_t i = 0; i < sl_setting_count(); i++) {
        const struct sl_setting *setting = sl_setting_at(i);

        fprintf(file, ".It Cm %s\n", setting->name);
        print_text(file, sl_slice_str(setting->meaning));
        fprintf(file, "; %s unless set.\n", sl_setting_print(setting, setting->fallback, text));
    }
    fputs(".El\n", file);
}
