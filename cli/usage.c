/* usage.c - prints rows of the table of commands, wrapped at 80 columns.
 *
 * Words are filled into indented lines; a word that is longer than a line gets its own. Examples
 * are not wrapped, so that they can be copied. */
#include "cli/usage.h"

#include <string.h>

#include "cli/command_table.h"
#include "cli/common_options.h"

enum { COLUMNS = 80, NAME_WIDTH = 19, OPTION_INDENT = 6 };

bool usage_next_line(struct sl_slice *text, struct sl_slice *ret_line)
{
    const char *end = text->size > 0 ? memchr(text->data, '\n', text->size) : NULL;

    if (text->size == 0)
        return false;
    *ret_line = sl_slice(text->data, end ? (size_t)(end - text->data) : text->size);
    *text = sl_slice_from(*text, ret_line->size + (end != NULL));
    return true;
}

bool usage_next_paragraph(struct sl_slice *text, struct sl_slice *ret_paragraph)
{
    const char *end = text->size > 0 ? memmem(text->data, text->size, "\n\n", 2) : NULL;

    if (text->size == 0)
        return false;
    *ret_paragraph = sl_slice(text->data, end ? (size_t)(end - text->data) : text->size);
    *text = sl_slice_from(*text, ret_paragraph->size + (end ? 2 : 0));
    return true;
}

/* --- wrapping ------------------------------------------------------------------------------ */

/* The current line. */
struct filling {
    FILE *file;
    int indent; /* of the following lines */
    int column;
};

static void add_word(struct filling *filling, struct sl_slice word)
{
    if (filling->column > filling->indent && filling->column + 1 + (int)word.size > COLUMNS) {
        fprintf(filling->file, "\n%*s", filling->indent, "");
        filling->column = filling->indent;
    } else if (filling->column > filling->indent) {
        fputc(' ', filling->file);
        filling->column++;
    }
    fwrite(word.data, 1, word.size, filling->file);
    filling->column += (int)word.size;
}

static void add_words(struct filling *filling, struct sl_slice text)
{
    while (text.size > 0) {
        size_t size = 0;

        while (size < text.size && text.data[size] != ' ' && text.data[size] != '\n')
            size++;
        if (size > 0)
            add_word(filling, sl_slice(text.data, size));
        text = sl_slice_from(text, size < text.size ? size + 1 : size);
    }
}

static void print_filled(FILE *file, int indent, struct sl_slice text)
{
    struct filling filling = {file, indent, indent};

    fprintf(file, "%*s", indent, "");
    add_words(&filling, text);
    fputc('\n', file);
}

static void print_paragraphs(FILE *file, const char *text)
{
    struct sl_slice rest = sl_slice_str(text), paragraph;

    while (usage_next_paragraph(&rest, &paragraph)) {
        fputc('\n', file);
        print_filled(file, 0, paragraph);
    }
}

/* --- commands ------------------------------------------------------------------------------ */

/* "[--limit N]", which is kept on one line. */
static void add_option(struct filling *filling, const struct cli_option *option)
{
    char word[128];
    const char *open = option->times == CLI_NEEDED ? "" : "[";
    const char *close = option->times == CLI_NEEDED ? "" : option->times == CLI_MANY ? "]..." : "]";
    int size;

    size = snprintf(word, sizeof(word), "%s--%s%s%s%s", open, option->name,
                    option->value ? " " : "", option->value ? option->value : "", close);
    add_word(filling, sl_slice(word, (size_t)size));
}

static void add_options(struct filling *filling, const struct cli_option *options, bool are_needed)
{
    for (; options && options->name; options++) {
        if ((options->times == CLI_NEEDED) == are_needed)
            add_option(filling, options);
    }
}

static void print_usage_line(FILE *file, const struct command *command)
{
    struct filling filling = {file, (int)strlen("usage: sluice "), 0};

    filling.column = filling.indent;
    fprintf(file, "usage: sluice ");
    add_words(&filling, sl_slice_str(command->name));
    add_options(&filling, command->options, true);
    add_options(&filling, command->options, false);
    add_words(&filling, sl_slice_str(command->arguments));
    fputc('\n', file);
}

static void print_options(FILE *file, const struct cli_option *options)
{
    for (; options && options->name; options++) {
        fprintf(file, "  --%s%s%s\n", options->name, options->value ? " " : "",
                options->value ? options->value : "");
        print_filled(file, OPTION_INDENT, sl_slice_str(options->help));
    }
}

static void print_examples(FILE *file, const char *examples)
{
    struct sl_slice rest = sl_slice_str(examples), line;

    fprintf(file, "\nExamples:\n");
    while (usage_next_line(&rest, &line))
        fprintf(file, "  $ %.*s\n", SL_SLICE_ARG(line));
}

/* Prints the summary as a sentence. */
static void print_summary(FILE *file, const struct command *command)
{
    char first = command->summary[0];

    if (first >= 'a' && first <= 'z')
        first = (char)(first - 'a' + 'A');
    fprintf(file, "\n%c%s.\n", first, command->summary + 1);
}

void usage_print_command(FILE *file, const struct command *command)
{
    print_usage_line(file, command);
    print_summary(file, command);
    if (command->help)
        print_paragraphs(file, command->help);
    if (command->options) {
        fputc('\n', file);
        print_options(file, command->options);
    }
    if (command->examples)
        print_examples(file, command->examples);
    fprintf(file, "\n"
                  "'sluice help' lists the options common to all commands.\n");
}

static void print_line(FILE *file, const struct command *command)
{
    fprintf(file, "  %-*s %s\n", NAME_WIDTH, command->name, command->summary);
}

void usage_print_commands(FILE *file, const struct command_table *table)
{
    for (size_t i = 0; i < table->count; i++) {
        if (table->entries[i].title)
            fprintf(file, "%s%s:\n", i > 0 ? "\n" : "", table->entries[i].title);
        print_line(file, table->entries[i].command);
    }
}

void usage_print_group(FILE *file, const struct command_table *table, const char *word)
{
    size_t length = strlen(word);

    fprintf(file, "usage: sluice %s COMMAND ...\n\n", word);
    for (size_t i = 0; i < table->count; i++) {
        const struct command *command = table->entries[i].command;

        if (strncmp(command->name, word, length) == 0 && command->name[length] == ' ')
            print_line(file, command);
    }
}

void usage_print_all(FILE *file, const struct command_table *table)
{
    fprintf(file, "usage: sluice [OPTION]... COMMAND [OPTION | ARGUMENT]...\n\n");
    usage_print_commands(file, table);
    fprintf(file, "\n"
                  "Options of every command, before or after its name:\n");
    print_options(file, common_options);
    fprintf(file, "\n"
                  "'sluice COMMAND --help' describes a command, with examples.\n"
                  "Exit status: 0 done, 1 failed, 2 wrong usage. See sluice(1).\n");
}
