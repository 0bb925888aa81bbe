/* completion.c - sluice completion: scripts for the completion of command lines in shells.
 *
 * Each script walks over the words before the cursor, skips options and their values, and so finds
 * the command; then it offers that command's options, the values of the option before the cursor,
 * or possible arguments. These are printed from the table of commands, so that no script has to run
 * a program while the user types. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/command_table.h"
#include "cli/common_options.h"

static bool is_file(const char *words)
{
    return words && strcmp(words, CLI_FILE) == 0;
}

/* Prints in single quotes. A quote in the text is printed as a typographic one. */
static void print_quoted(const char *text)
{
    putchar('\'');
    for (; *text; text++) {
        if (*text == '\'')
            fputs("’", stdout);
        else
            putchar(*text);
    }
    putchar('\'');
}

/* Prints the first sentence, for shells that show one. */
static void print_sentence(const char *text, bool has_colons)
{
    putchar('\'');
    for (; *text && !(text[0] == '.' && (text[1] == ' ' || text[1] == '\0')); text++) {
        if (*text == '\'')
            fputs("’", stdout);
        else if (*text == ':' && has_colons)
            fputs("\\:", stdout);
        else
            putchar(*text);
    }
    putchar('\'');
}

static void print_options(const struct cli_option *options)
{
    for (; options && options->name; options++)
        printf(" --%s", options->name);
}

/* Prints the options with a value of all commands, so that shells can skip both. Separated by
 * `between`. */
static void print_valued(const struct command_table *table, const char *between)
{
    const char *lead = "";

    for (size_t i = 0; i <= table->count; i++) {
        const struct cli_option *option =
            i < table->count ? table->entries[i].command->options : common_options;

        for (; option && option->name; option++) {
            if (!option->value)
                continue;
            printf("%s--%s", lead, option->name);
            lead = between;
        }
    }
}

/* Prints the words that may follow `prefix`, which is "" or the first word of two-word commands. */
static void print_next_words(const struct command_table *table, const char *prefix)
{
    size_t length = strlen(prefix);
    const char *last = "", *lead = "";
    size_t last_size = 0;

    for (size_t i = 0; i < table->count; i++) {
        const char *name = table->entries[i].command->name;
        size_t size;

        if (length > 0) {
            if (strncmp(name, prefix, length) != 0 || name[length] != ' ')
                continue;
            name += length + 1;
        }
        size = strcspn(name, " ");
        if (size == last_size && strncmp(name, last, size) == 0)
            continue;
        printf("%s%.*s", lead, (int)size, name);
        lead = " ";
        last = name;
        last_size = size;
    }
}

/* Calls `print` with the first words of two-word commands, each once. */
static void for_groups(const struct command_table *table,
                       void (*print)(const struct command_table *table, const char *word))
{
    char last[32] = "";

    for (size_t i = 0; i < table->count; i++) {
        const char *name = table->entries[i].command->name;
        char word[sizeof(last)];

        snprintf(word, sizeof(word), "%.*s", (int)strcspn(name, " "), name);
        if (!name[strlen(word)] || strcmp(word, last) == 0)
            continue;
        print(table, word);
        strcpy(last, word);
    }
}

/* --- bash ---------------------------------------------------------------------------------- */

static void bash_group(const struct command_table *table, const char *word)
{
    printf("    '%s') next='", word);
    print_next_words(table, word);
    printf("' ;;\n");
}

static void bash_command(const struct command *command)
{
    printf("    '%s')\n        options='", command->name);
    print_options(command->options);
    printf("'\n");
    if (is_file(command->words))
        printf("        files=1\n");
    else if (command->words)
        printf("        words='%s'\n", command->words);
    printf("        ;;\n");
}

static void bash_values(const char *name, const struct cli_option *options)
{
    for (; options && options->name; options++) {
        if (!options->words)
            continue;
        printf("    '%s --%s')", name, options->name);
        if (is_file(options->words))
            printf(" compopt -o default; return ;;\n");
        else
            printf(" COMPREPLY=($(compgen -W '%s' -- \"$cur\")); return ;;\n", options->words);
    }
}

static void print_bash(const struct command_table *table)
{
    printf("# bash completion of sluice(1); printed by 'sluice completion bash'\n"
           "_sluice() {\n"
           "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
           "    local command='' next='");
    print_next_words(table, "");
    printf("' options='' words='' files='' word i\n"
           "    COMPREPLY=()\n"
           "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
           "        word=${COMP_WORDS[i]}\n"
           "        case $word in\n"
           "        ");
    print_valued(table, " | ");
    printf(")\n"
           "            [[ ${COMP_WORDS[i + 1]-} == = ]] && ((i++))\n"
           "            ((i++)) ;;\n"
           "        -*) ;;\n"
           "        *)\n"
           "            if [[ \" $next \" == *\" $word \"* ]]; then\n"
           "                command=${command:+$command }$word\n"
           "                _sluice_next \"$command\"\n"
           "            fi ;;\n"
           "        esac\n"
           "    done\n"
           "    case \"$command $prev\" in\n");
    for (size_t i = 0; i < table->count; i++)
        bash_values(table->entries[i].command->name, table->entries[i].command->options);
    printf("    esac\n"
           "    case $prev in\n"
           "    ");
    print_valued(table, " | ");
    printf(") return ;;\n"
           "    esac\n"
           "    case $command in\n");
    for (size_t i = 0; i < table->count; i++)
        bash_command(table->entries[i].command);
    printf("    esac\n"
           "    if [[ $cur == -* ]]; then\n"
           "        COMPREPLY=($(compgen -W \"$options");
    print_options(common_options);
    printf("\" -- \"$cur\"))\n"
           "    else\n"
           "        COMPREPLY=($(compgen -W \"$next $words\" -- \"$cur\"))\n"
           "        [[ $files ]] && compopt -o default\n"
           "    fi\n"
           "}\n"
           "_sluice_next() {\n"
           "    case $1 in\n");
    for_groups(table, bash_group);
    printf("    *) next='' ;;\n"
           "    esac\n"
           "}\n"
           "complete -F _sluice sluice\n");
}

/* --- zsh ----------------------------------------------------------------------------------- */

static void zsh_options(const struct cli_option *options)
{
    for (; options && options->name; options++) {
        printf("            --%s:", options->name);
        print_sentence(options->help, true);
        printf("\n");
    }
}

static void zsh_command(const struct command *command)
{
    printf("    '%s')\n        options=(\n", command->name);
    zsh_options(command->options);
    printf("        )\n");
    if (is_file(command->words))
        printf("        files=1\n");
    else if (command->words)
        printf("        offered=(%s)\n", command->words);
    printf("        ;;\n");
}

static void zsh_values(const char *name, const struct cli_option *options)
{
    for (; options && options->name; options++) {
        if (!options->words)
            continue;
        printf("    '%s --%s') ", name, options->name);
        if (is_file(options->words))
            printf("_files; return ;;\n");
        else
            printf("compadd -- %s; return ;;\n", options->words);
    }
}

/* Prints "word:summary" for the words after `prefix`. The summary of a group is the list of its
 * commands. */
static void zsh_next(const struct command_table *table, const char *prefix)
{
    size_t length = strlen(prefix);

    for (size_t i = 0; i < table->count; i++) {
        const struct command *command = table->entries[i].command;
        const char *name = command->name;

        if (length > 0) {
            if (strncmp(name, prefix, length) != 0 || name[length] != ' ')
                continue;
            name += length + 1;
        } else if (strchr(name, ' ')) {
            continue;
        }
        printf("            %s:", name);
        print_sentence(command->summary, true);
        printf("\n");
    }
}

static void zsh_group_word(const struct command_table *table, const char *word)
{
    bool is_command = false;

    for (size_t i = 0; i < table->count; i++)
        is_command |= strcmp(table->entries[i].command->name, word) == 0;
    if (is_command)
        return;
    printf("            %s:'", word);
    print_next_words(table, word);
    printf(" ...'\n");
}

static void zsh_group(const struct command_table *table, const char *word)
{
    printf("            '%s')\n            next=(\n", word);
    zsh_next(table, word);
    printf("            ) ;;\n");
}

static void print_zsh(const struct command_table *table)
{
    printf("#compdef sluice\n"
           "# zsh completion of sluice(1); printed by 'sluice completion zsh'\n"
           "_sluice() {\n"
           "    local command='' word files=''\n"
           "    local -a next options common offered\n"
           "    local -i i\n"
           "    common=(\n");
    zsh_options(common_options);
    printf("    )\n"
           "    next=(\n");
    zsh_next(table, "");
    for_groups(table, zsh_group_word);
    printf("    )\n"
           "    for ((i = 2; i < CURRENT; i++)); do\n"
           "        word=${words[i]}\n"
           "        case $word in\n"
           "        ");
    print_valued(table, " | ");
    printf(") ((i++)) ;;\n"
           "        -*) ;;\n"
           "        *)\n"
           "            (( ${next[(I)$word:*]} )) || continue\n"
           "            command=${command:+$command }$word\n"
           "            case $command in\n");
    for_groups(table, zsh_group);
    printf("            *) next=() ;;\n"
           "            esac ;;\n"
           "        esac\n"
           "    done\n"
           "    case \"$command ${words[CURRENT - 1]}\" in\n");
    for (size_t i = 0; i < table->count; i++)
        zsh_values(table->entries[i].command->name, table->entries[i].command->options);
    printf("    esac\n"
           "    case ${words[CURRENT - 1]} in\n"
           "    ");
    print_valued(table, " | ");
    printf(") return 1 ;;\n"
           "    esac\n"
           "    case $command in\n");
    for (size_t i = 0; i < table->count; i++)
        zsh_command(table->entries[i].command);
    printf("    esac\n"
           "    if [[ ${words[CURRENT]} == -* ]]; then\n"
           "        options+=($common)\n"
           "        _describe -o option options\n"
           "        return\n"
           "    fi\n"
           "    (( ${#next} )) && _describe command next\n"
           "    (( ${#offered} )) && compadd -- $offered\n"
           "    [[ -n $files ]] && _files\n"
           "}\n"
           "_sluice \"$@\"\n");
}

/* --- fish ---------------------------------------------------------------------------------- */

static void fish_option(const char *condition, const struct cli_option *option)
{
    printf("complete -c sluice %s -l %s", condition, option->name);
    if (option->value)
        printf(is_file(option->words) ? " -r -F" : " -x");
    if (option->words && !is_file(option->words))
        printf(" -a '%s'", option->words);
    printf(" -d ");
    print_sentence(option->help, false);
    putchar('\n');
}

static void fish_command(const struct command *command)
{
    const char *space = strchr(command->name, ' ');
    char condition[64];

    printf("complete -c sluice -n '__sluice_at \"%.*s\"' -a %s -d ",
           space ? (int)(space - command->name) : 0, command->name,
           space ? space + 1 : command->name);
    print_quoted(command->summary);
    putchar('\n');
    snprintf(condition, sizeof(condition), "-n '__sluice_at \"%s\"'", command->name);
    for (const struct cli_option *option = command->options; option && option->name; option++)
        fish_option(condition, option);
    if (is_file(command->words))
        printf("complete -c sluice %s -F\n", condition);
    else if (command->words)
        printf("complete -c sluice %s -a '%s'\n", condition, command->words);
}

static void fish_group(const struct command_table *table, const char *word)
{
    printf("complete -c sluice -n '__sluice_at \"\"' -a %s -d '", word);
    print_next_words(table, word);
    printf(" ...'\n");
}

static void print_fish(const struct command_table *table)
{
    printf("# fish completion of sluice(1); printed by 'sluice completion fish'\n"
           "function __sluice_at -a wanted -d 'Is this the command in front of the cursor?'\n"
           "    set -l names");
    for (size_t i = 0; i < table->count; i++)
        printf(" '%s'", table->entries[i].command->name);
    printf("\n"
           "    set -l command ''\n"
           "    set -l is_value 0\n"
           "    for word in (commandline -opc)[2..-1]\n"
           "        if test $is_value = 1\n"
           "            set is_value 0\n"
           "        else if contains -- $word ");
    print_valued(table, " ");
    printf("\n"
           "            set is_value 1\n"
           "        else if not string match -q -- '-*' $word\n"
           "            set -l longer (string trim -- \"$command $word\")\n"
           "            if contains -- $longer $names; or string match -q -- \"$longer *\" $names\n"
           "                set command $longer\n"
           "            end\n"
           "        end\n"
           "    end\n"
           "    test \"$command\" = \"$wanted\"\n"
           "end\n"
           "complete -c sluice -f\n");
    for_groups(table, fish_group);
    for (const struct cli_option *option = common_options; option->name; option++)
        fish_option("", option);
    for (size_t i = 0; i < table->count; i++)
        fish_command(table->entries[i].command);
}

/* --- the command --------------------------------------------------------------------------- */

static const struct {
    const char *name;
    void (*print)(const struct command_table *table);
} shells[] = {{"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};

static int run(struct cli *cli, int argc, char **argv)
{
    cli_no_options(cli, argc, argv);
    for (size_t i = 0; argc - optind == 1 && i < sizeof(shells) / sizeof(shells[0]); i++) {
        if (strcmp(argv[optind], shells[i].name) == 0) {
            shells[i].print(cli->commands);
            return cli_done(cli);
        }
    }
    cli_usage(cli, "for which shell: bash, zsh or fish?");
}

const struct command command_completion = {
    .name = "completion",
    .arguments = "bash|zsh|fish",
    .summary = "print what a shell needs to complete command lines",
    .help = "Packages install it; elsewhere the shell reads it at its start.",
    .examples = "source <(sluice completion bash)\n"
                "sluice completion zsh >~/.zfunc/_sluice\n"
                "sluice completion fish >~/.config/fish/completions/sluice.fish\n",
    .words = "bash zsh fish",
    .run = run,
};
