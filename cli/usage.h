/* cli/usage.h - what commands take, for people: the texts of --help and of usage errors. */
#pragma once

#include <stdio.h>

#include "base/slice.h"
#include "cli/cli.h"

/* All commands, and the options that all of them take. */
void usage_print_all(FILE *file, const struct command_table *table);

/* The commands alone, a line each. */
void usage_print_commands(FILE *file, const struct command_table *table);

/* The commands whose first word this is. */
void usage_print_group(FILE *file, const struct command_table *table, const char *word);

/* All there is to be said about one. */
void usage_print_command(FILE *file, const struct command *command);

/* The words of the next paragraph; `text` moves behind it. false: there is none. */
bool usage_next_paragraph(struct sl_slice *text, struct sl_slice *ret_paragraph);

/* The next line; `text` moves behind its end. false: there is none. */
bool usage_next_line(struct sl_slice *text, struct sl_slice *ret_line);
