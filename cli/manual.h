/* cli/manual.h - prints the parts of sluice(1) that come from the table of commands, in mdoc(7). */
#pragma once

#include <stdio.h>

#include "cli/command_table.h"

/* A usage line for each command. */
void manual_print_synopsis(FILE *file, const struct command_table *table);

/* The options of all commands, as a list. */
void manual_print_options(FILE *file, const struct command_table *table);

/* A section for each command. */
void manual_print_commands(FILE *file, const struct command_table *table);

/* The settings of the database, as a list. */
void manual_print_settings(FILE *file, const struct command_table *table);
