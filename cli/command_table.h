/* cli/command_table.h - looking for commands in the table of them (commands.h). */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "cli/cli.h"

/* Commands in the order of the help; a title begins a group of them. */
struct command_entry {
    const char *title; /* NULL: in the group of the one before */
    const struct command *command;
};

struct command_table {
    const struct command_entry *entries;
    size_t count;
};

/* The command that the words begin with, the longest where several fit ("tasks retry" rather than
 * "tasks"); *ret_words is how many of the words are its name. NULL: none. */
const struct command *command_table_find(const struct command_table *table, int argc,
                                         char *const *argv, int *ret_words);

/* The first word of commands of two, such as "user". */
bool command_table_is_group(const struct command_table *table, const char *word);

/* The command that has an option of this name; NULL: none. */
const struct command *command_table_with_option(const struct command_table *table,
                                                const char *name);

enum { COMMAND_NAME_SIZE = 32 };

/* Which command, or first word of several, was probably meant by words that are none; it is written
 * into `room`. NULL: nothing is near. */
const char *command_table_nearest(const struct command_table *table, const char *words,
                                  char room[static COMMAND_NAME_SIZE]);
