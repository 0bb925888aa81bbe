/* config_help.c - the settings for people: --help and the option lists of the manual pages.
 *
 * Both are generated from the table of options, with its titles, defaults and bounds, so they
 * always agree with the parser. Text is wrapped at 80 columns here; for manual pages mdoc(7) does
 * that, and only what it would take for a control line is escaped. */
#include "gateway/config/config.h"

#include <string.h>

enum { HELP_COLUMNS = 80 };

enum measure { MEASURE_COUNT, MEASURE_BYTES, MEASURE_TIME };

/* The table in its order: titles between options. */
struct entry {
    const char *title; /* NULL: an option */
    enum config_option option;
    const char *name;
    const char *argument;     /* NULL: takes no value */
    const char *default_text; /* texts; NULL: none */
    enum measure measure;
    uint64_t default_number, lowest, highest; /* highest 0: not a number */
    const char *text;
};

#define OPTION(field) NULL, CONFIG_OPTION_##field

static const struct entry entries[] = {
#define SECTION(title) {title, CONFIG_OPTION_COUNT, NULL, NULL, NULL, 0, 0, 0, 0, NULL},
#define TEXT(field, name, argument, fallback, check, text)                                         \
    {OPTION(field), name, argument, fallback, 0, 0, 0, 0, text},
#define LIST(field, name, argument, check, text)                                                   \
    {OPTION(field), name, argument, NULL, 0, 0, 0, 0, text},
#define NUMBER(field, name, argument, fallback, lowest, highest, text)                             \
    {OPTION(field), name, argument, NULL, MEASURE_COUNT, fallback, lowest, highest, text},
#define BYTES(field, name, fallback, lowest, highest, text)                                        \
    {OPTION(field), name, "BYTES", NULL, MEASURE_BYTES, fallback, lowest, highest, text},
#define TIME(field, name, fallback, lowest, highest, text)                                         \
    {OPTION(field), name, "TIME", NULL, MEASURE_TIME, fallback, lowest, highest, text},
#define FLAG(field, name, text) {OPTION(field), name, NULL, NULL, 0, 0, 0, 0, text},
#include "gateway/config/config_table.def"
};

enum { ENTRY_COUNT = sizeof(entries) / sizeof(entries[0]) };

struct unit {
    const char *name;
    unsigned size; /* in units of the previous one */
};

static const struct unit no_units[] = {{"", 1}, {NULL, 0}};
static const struct unit byte_units[] = {{"", 1}, {"K", 1024}, {"M", 1024}, {"G", 1024}, {NULL, 0}};
static const struct unit time_units[] = {{"ms", 1}, {"s", 1000}, {"m", 60}, {"h", 60}, {NULL, 0}};

/* In the largest unit that represents it exactly. */
static void print_number(const struct entry *entry, uint64_t number, struct buffer *text)
{
    const struct unit *unit = entry->measure == MEASURE_BYTES  ? byte_units
                              : entry->measure == MEASURE_TIME ? time_units
                                                               : no_units;

    if (entry->measure == MEASURE_TIME && number == CONFIG_FOREVER) {
        buffer_append_str(text, "forever");
        return;
    }
    while (number > 0 && unit[1].name && number % unit[1].size == 0) {
        number /= unit[1].size;
        unit++;
    }
    buffer_append_format(text, "%llu%s", (unsigned long long)number, unit->name);
}

/* Prints "Default 10, from 0 to 1000." after `lead`, as far as it applies. */
static void print_bounds(const struct entry *entry, const char *lead, struct buffer *text)
{
    if (entry->default_text)
        buffer_append_format(text, "%sDefault %s.", lead, entry->default_text);
    if (entry->highest == 0)
        return;
    buffer_append_str(text, lead);
    if (entry->default_number >= entry->lowest) {
        buffer_append_str(text, "Default ");
        print_number(entry, entry->default_number, text);
        buffer_append_str(text, ", from ");
    } else {
        buffer_append_str(text, "From ");
    }
    print_number(entry, entry->lowest, text);
    buffer_append_str(text, " to ");
    print_number(entry, entry->highest, text);
    buffer_append_char(text, '.');
}

static void print_wrapped(struct sl_slice words, unsigned indent, struct buffer *text)
{
    unsigned column = 0;

    while (words.size > 0) {
        const char *space = memchr(words.data, ' ', words.size);
        unsigned size = (unsigned)(space ? (size_t)(space - words.data) : words.size);

        if (column > 0 && column + 1 + size > HELP_COLUMNS) {
            buffer_append_char(text, '\n');
            column = 0;
        }
        if (column == 0)
            buffer_append_format(text, "%*s", (int)indent, "");
        else
            buffer_append_char(text, ' ');
        column += column == 0 ? indent + size : 1 + size;
        buffer_append(text, words.data, size);
        words = sl_slice_from(words, space ? size + 1 : size);
    }
    buffer_append_char(text, '\n');
}

static void print_option_help(const struct entry *entry, struct buffer *text)
{
    struct buffer words = BUFFER_INIT;

    buffer_append_format(text, "  --%s%s%s\n", entry->name, entry->argument ? " " : "",
                         entry->argument ? entry->argument : "");
    buffer_append_str(&words, entry->text);
    print_bounds(entry, " ", &words);
    print_wrapped(buffer_slice(&words), 6, text);
    text->failed |= words.failed;
    buffer_done(&words);
}

void config_print_help(struct buffer *ret_text)
{
    buffer_append_str(ret_text, "Usage: sluiced [OPTION]...\n"
                                "       sluiced --help | --version\n\n"
                                "Serves live streams of what happens in Redis.\n");
    for (unsigned i = 0; i < ENTRY_COUNT; i++) {
        if (entries[i].title)
            buffer_append_format(ret_text, "\n%s:\n", entries[i].title);
        else
            print_option_help(&entries[i], ret_text);
    }
    buffer_append_str(ret_text,
                      "\nEvery option is also a variable in the environment (--max-event-bytes:\n"
                      "SLUICE_MAX_EVENT_BYTES; several values between commas) and a line in the\n"
                      "configuration file. See sluiced(8) and sluiced.conf(5).\n");
}

/* Prints plain text for roff(7): no line here begins with a control character. */
static void print_roff(struct sl_slice words, struct buffer *text)
{
    for (size_t i = 0; i < words.size; i++) {
        switch (words.data[i]) {
        case '\\':
            buffer_append_str(text, "\\e");
            break;
        case '~':
            buffer_append_str(text, "\\(ti");
            break;
        default:
            buffer_append_char(text, words.data[i]);
        }
    }
    buffer_append_char(text, '\n');
}

static void print_option_manual(const struct entry *entry, enum config_manual manual,
                                struct buffer *text)
{
    struct buffer bounds = BUFFER_INIT;
    char variable[CONFIG_VARIABLE_SIZE];

    if (manual == CONFIG_MANUAL_COMMAND_LINE)
        buffer_append_format(text, ".It Fl -%s", entry->name);
    else
        buffer_append_format(text, ".It Cm %s", entry->name);
    if (manual == CONFIG_MANUAL_FILE)
        buffer_append_format(text, " No = Ar %s\n", entry->argument ? entry->argument : "yes | no");
    else if (entry->argument)
        buffer_append_format(text, " Ar %s\n", entry->argument);
    else
        buffer_append_char(text, '\n');

    print_roff(sl_slice_str(entry->text), text);
    print_bounds(entry, "", &bounds);
    if (bounds.size > 0)
        print_roff(buffer_slice(&bounds), text);
    if (manual == CONFIG_MANUAL_FILE)
        buffer_append_format(text, "In the environment:\n.Ev %s .\n",
                             config_variable_name(entry->option, variable));
    text->failed |= bounds.failed;
    buffer_done(&bounds);
}

void config_print_manual(enum config_manual manual, struct buffer *ret_text)
{
    for (unsigned i = 0; i < ENTRY_COUNT; i++) {
        if (entries[i].title)
            buffer_append_format(ret_text, "%s.Ss %s\n.Bl -tag -width Ds\n", i > 0 ? ".El\n" : "",
                                 entries[i].title);
        else if (manual == CONFIG_MANUAL_COMMAND_LINE || entries[i].option != CONFIG_OPTION_config)
            print_option_manual(&entries[i], manual, ret_text);
    }
    buffer_append_str(ret_text, ".El\n");
}
