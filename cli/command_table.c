#include "cli/command_table.h"

#include <stdio.h>
#include <string.h>

#include "base/nearest.h"

/* The number of words in a command's name if the arguments begin with it, else 0. */
static int words_matched(const char *name, int argc, char *const *argv)
{
    int words = 0;

    while (words < argc) {
        size_t length = strlen(argv[words]);

        if (length == 0 || strncmp(name, argv[words], length) != 0)
            return 0;
        name += length;
        words++;
        if (*name == '\0')
            return words;
        if (*name++ != ' ')
            return 0;
    }
    return 0;
}

const struct command *command_table_find(const struct command_table *table, int argc,
                                         char *const *argv, int *ret_words)
{
    const struct command *found = NULL;
    int most = 0;

    for (size_t i = 0; i < table->count; i++) {
        int words = words_matched(table->entries[i].command->name, argc, argv);

        if (words > most) {
            most = words;
            found = table->entries[i].command;
        }
    }
    *ret_words = most;
    return found;
}

bool command_table_is_group(const struct command_table *table, const char *word)
{
    size_t length = strlen(word);

    for (size_t i = 0; length > 0 && i < table->count; i++) {
        const char *name = table->entries[i].command->name;

        if (strncmp(name, word, length) == 0 && name[length] == ' ')
            return true;
    }
    return false;
}

const struct command *command_table_with_option(const struct command_table *table, const char *name)
{
    for (size_t i = 0; i < table->count; i++) {
        const struct cli_option *option = table->entries[i].command->options;

        for (; option && option->name; option++) {
            if (strcmp(option->name, name) == 0)
                return table->entries[i].command;
        }
    }
    return NULL;
}

const char *command_table_nearest(const struct command_table *table, const char *words,
                                  char room[static COMMAND_NAME_SIZE])
{
    struct nearest search = {.text = words};
    char first[COMMAND_NAME_SIZE];

    for (size_t i = 0; i < table->count; i++) {
        const char *name = table->entries[i].command->name;

        snprintf(first, sizeof(first), "%.*s", (int)strcspn(name, " "), name);
        nearest_see(&search, name);
        nearest_see(&search, first);
        if (search.best == first || search.best == name)
            search.best = strcpy(room, search.best);
    }
    return search.best;
}
