/* cli/command_table.h - searches the table of commands (commands.h). */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "cli/cli.h"

/* Commands in the order of the help; a title begins a group. */
struct command_entry {
    const char *title; /* NULL: in the group of the one before */
    const struct command *command;
};

struct command_table {
    const struct command_entry *entries;
    size_t count;
};

/* The command that the words begin with; if several match, the longest ("tasks retry" rather than
 * "tasks"). *ret_words is the number of words in its name. NULL: none. */
const struct command *command_table_find(const struct command_table *table, int argc,
                                         char *const *argv, int *ret_words);

/* Whether the word is the first word of two-word commands, such as "user". */
bool command_table_is_group(const struct command_table *table, const char *word);

/* A command with an option of this name; NULL: none. */
const struct command *command_table_with_option(const struct command_table *table,
                                                const char *name);

enum { COMMAND_NAME_SIZE = 32 };

/* The command, or first word of several, that is closest to unknown words; written to `room`. NULL:
 * none is close. */
const char *command_table_nearest(const struct command_table *table, const char *words,
                                  char room[static COMMAND_NAME_SIZE]);
