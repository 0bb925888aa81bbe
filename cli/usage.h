/* cli/usage.h - prints what commands take, for --help and usage errors. */
#pragma once

#include <stdio.h>

#include "base/slice.h"
#include "cli/cli.h"

/* All commands, and the options of all commands. */
void usage_print_all(FILE *file, const struct command_table *table);

/* Only the commands, a line each. */
void usage_print_commands(FILE *file, const struct command_table *table);

/* The commands with this first word. */
void usage_print_group(FILE *file, const struct command_table *table, const char *word);

/* Everything about a command. */
void usage_print_command(FILE *file, const struct command *command);

/* The next paragraph; advances `text`. false: there is none. */
bool usage_next_paragraph(struct sl_slice *text, struct sl_slice *ret_paragraph);

/* The next line; advances `text`. false: there is none. */
bool usage_next_line(struct sl_slice *text, struct sl_slice *ret_line);
