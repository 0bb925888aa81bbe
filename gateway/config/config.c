/* config.c - one loop over the table for each source.
 *
 * The file is named by the environment or the command line but comes before both, so the command
 * line is walked twice: the first time only --config, --help and --version count. */
#include "gateway/config/config.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/listen_address.h"
#include "base/log.h"
#include "src/archive/archive.h"
#include "src/cache/cache.h"
#include "src/redis/redis_address.h"
#include "src/redis/redis_tls.h"

enum { FILE_MAX_BYTES = 1 << 20 };

/* Says what is wrong with a value that is not empty; the caller says where it stood. */
typedef int (*config_check_fn)(struct sl_slice value, struct failure *reterr);

static int check_listen(struct sl_slice value, struct failure *reterr)
{
    struct listen_address address;

    return listen_address_parse(value, &address, reterr);
}

static int check_redis(struct sl_slice value, struct failure *reterr)
{
    struct sl_redis_address address;
    int r = sl_redis_address_parse(value, &address, reterr);

    return r == 0 ? sl_redis_tls_check(&address, reterr) : r;
}

static int check_url(struct sl_slice value, int (*check)(const char *url, struct failure *reterr),
                     struct failure *reterr)
{
    char *url = mem_strndup(value.data, value.size);
    int r = url ? check(url, reterr) : failure_set(reterr, -ENOMEM, "out of memory");

    mem_free(url);
    return r;
}

static int check_archive(struct sl_slice value, struct failure *reterr)
{
    return check_url(value, sl_archive_check, reterr);
}

static int check_cache(struct sl_slice value, struct failure *reterr)
{
    return check_url(value, sl_cache_check, reterr);
}

/* What browsers send: scheme, host, port, nothing behind. */
static int check_origin(struct sl_slice value, struct failure *reterr)
{
    const char *host = memmem(value.data, value.size, "://", 3);
    char room[LOG_QUOTE_SIZE];
    size_t host_size;

    host_size = host ? (size_t)(value.data + value.size - (host + 3)) : 0;
    if (host_size == 0 || host == value.data || memchr(host + 3, '/', host_size) ||
        memchr(value.data, ' ', value.size))
        return failure_set(reterr, -EINVAL, "%s is not an origin like https://example.org",
                           log_quote(value, room));
    return 0;
}

static int check_on_off(struct sl_slice value, struct failure *reterr)
{
    char room[LOG_QUOTE_SIZE];

    if (!sl_slice_is(value, "on") && !sl_slice_is(value, "off"))
        return failure_set(reterr, -EINVAL, "%s is neither on nor off", log_quote(value, room));
    return 0;
}

static int check_all_off(struct sl_slice value, struct failure *reterr)
{
    char room[LOG_QUOTE_SIZE];

    if (!sl_slice_is(value, "all") && !sl_slice_is(value, "off"))
        return failure_set(reterr, -EINVAL, "%s is neither all nor off", log_quote(value, room));
    return 0;
}

static int check_log_format(struct sl_slice value, struct failure *reterr)
{
    char room[LOG_QUOTE_SIZE];

    if (!sl_slice_is(value, "logfmt") && !sl_slice_is(value, "json"))
        return failure_set(reterr, -EINVAL, "%s is neither logfmt nor json",
                           log_quote(value, room));
    return 0;
}

static int check_run_tasks(struct sl_slice value, struct failure *reterr)
{
    char room[LOG_QUOTE_SIZE];

    if (sl_slice_is(value, "auto") || sl_slice_is(value, "on") || sl_slice_is(value, "off"))
        return 0;
    return failure_set(reterr, -EINVAL, "%s is not one of auto, on, off", log_quote(value, room));
}

static int check_log_level(struct sl_slice value, struct failure *reterr)
{
    char room[LOG_QUOTE_SIZE];
    enum log_level level;
    char text[8];

    snprintf(text, sizeof(text), "%.*s", SL_SLICE_ARG(value));
    if (value.size >= sizeof(text) || log_parse_level(text, &level) < 0)
        return failure_set(reterr, -EINVAL, "%s is not one of error, warn, info, debug",
                           log_quote(value, room));
    return 0;
}

enum kind { KIND_TEXT, KIND_LIST, KIND_NUMBER, KIND_BYTES, KIND_TIME, KIND_FLAG };

struct row {
    enum kind kind;
    size_t offset; /* of the field in struct config */
    const char *name;
    const char *argument;     /* NULL: takes none */
    const char *default_text; /* texts; NULL: none */
    config_check_fn check;    /* texts and lists; NULL: anything goes */
    uint64_t default_number, lowest, highest;
};

#define AT(field) offsetof(struct config, field)

static const struct row rows[CONFIG_OPTION_COUNT] = {
#define SECTION(title)
#define TEXT(field, name, argument, fallback, check, text)                                         \
    {KIND_TEXT, AT(field), name, argument, fallback, check, 0, 0, 0},
#define LIST(field, name, argument, check, text)                                                   \
    {KIND_LIST, AT(field), name, argument, NULL, check, 0, 0, 0},
#define NUMBER(field, name, argument, fallback, lowest, highest, text)                             \
    {KIND_NUMBER, AT(field), name, argument, NULL, NULL, fallback, lowest, highest},
#define BYTES(field, name, fallback, lowest, highest, text)                                        \
    {KIND_BYTES, AT(field), name, "BYTES", NULL, NULL, fallback, lowest, highest},
#define TIME(field, name, fallback, lowest, highest, text)                                         \
    {KIND_TIME, AT(field), name, "TIME", NULL, NULL, fallback, lowest, highest},
#define FLAG(field, name, text) {KIND_FLAG, AT(field), name, NULL, NULL, NULL, 0, 0, 0},
#include "gateway/config/config_table.def"
};

const char *config_variable_name(enum config_option option, char room[static CONFIG_VARIABLE_SIZE])
{
    snprintf(room, CONFIG_VARIABLE_SIZE, "SLUICE_%s", rows[option].name);
    for (char *c = room; *c; c++)
        *c = *c == '-' ? '_' : (char)toupper((unsigned char)*c);
    return room;
}

static char **text_field(struct config *config, const struct row *row)
{
    return (char **)((char *)config + row->offset);
}

static struct config_list *list_field(struct config *config, const struct row *row)
{
    return (struct config_list *)((char *)config + row->offset);
}

static uint64_t *number_field(struct config *config, const struct row *row)
{
    return (uint64_t *)((char *)config + row->offset);
}

static bool *flag_field(struct config *config, const struct row *row)
{
    return (bool *)((char *)config + row->offset);
}

int config_refuse(const struct config *config, enum config_option option, struct failure *reterr,
                  int error, const char *format, ...)
{
    const struct row *row = &rows[option];
    char variable[CONFIG_VARIABLE_SIZE];
    struct failure sentence;
    va_list args;

    va_start(args, format);
    vsnprintf(sentence.text, sizeof(sentence.text), format, args);
    va_end(args);

    switch (config->origins[option].source) {
    case CONFIG_SOURCE_DEFAULT:
        return failure_set(reterr, error, "%s: %s", row->name, sentence.text);
    case CONFIG_SOURCE_FILE:
        return failure_set(reterr, error, "%s:%u: %s: %s", config->config,
                           config->origins[option].line, row->name, sentence.text);
    case CONFIG_SOURCE_ENVIRONMENT:
        return failure_set(reterr, error, "%s: %s", config_variable_name(option, variable),
                           sentence.text);
    case CONFIG_SOURCE_COMMAND_LINE:
        return failure_set(reterr, error, "--%s: %s", row->name, sentence.text);
    }
    return error;
}

static void list_clear(struct config_list *list)
{
    while (list->count > 0)
        mem_free(list->items[--list->count]);
}

void config_free(struct config *config)
{
    if (!config)
        return;
    for (unsigned i = 0; i < CONFIG_OPTION_COUNT; i++) {
        if (rows[i].kind == KIND_TEXT)
            mem_free(*text_field(config, &rows[i]));
        else if (rows[i].kind == KIND_LIST)
            list_clear(list_field(config, &rows[i]));
    }
    mem_free(config);
}

static bool holds_number(enum kind kind)
{
    return kind == KIND_NUMBER || kind == KIND_BYTES || kind == KIND_TIME;
}

static struct config *config_new(void)
{
    struct config *config = mem_zalloc(sizeof(*config));

    if (!config)
        return NULL;
    for (unsigned i = 0; i < CONFIG_OPTION_COUNT; i++) {
        const struct row *row = &rows[i];

        if (holds_number(row->kind)) {
            *number_field(config, row) = row->default_number;
        } else if (row->default_text) {
            *text_field(config, row) = mem_strndup(row->default_text, strlen(row->default_text));
            if (!*text_field(config, row)) {
                config_free(config);
                return NULL;
            }
        }
    }
    return config;
}

struct unit {
    const char *name;
    uint64_t factor;
};

/* What may stand behind the digits of each kind; the first is what no unit means. */
static const struct unit plain_units[] = {{"", 1}, {NULL, 0}};
static const struct unit byte_units[] = {
    {"", 1}, {"K", 1 << 10}, {"M", 1 << 20}, {"G", 1 << 30}, {NULL, 0}};
static const struct unit time_units[] = {{"", 1000},   {"ms", 1},      {"s", 1000},
                                         {"m", 60000}, {"h", 3600000}, {NULL, 0}};

static const struct {
    const struct unit *units;
    const char *form;
} number_forms[] = {
    [KIND_NUMBER] = {plain_units, "a whole number"},
    [KIND_BYTES] = {byte_units, "a size like 65536, 64K, 2M or 1G"},
    [KIND_TIME] = {time_units, "a time like 500ms, 5s, 2m or 1h"},
};

static int parse_number(enum kind kind, struct sl_slice value, uint64_t *ret_number,
                        struct failure *reterr)
{
    const struct unit *unit = number_forms[kind].units;
    uint64_t number = 0;
    size_t digits = 0;
    char room[LOG_QUOTE_SIZE];

    if (kind == KIND_TIME && sl_slice_is(value, "forever")) {
        *ret_number = CONFIG_FOREVER;
        return 0;
    }
    while (digits < value.size && isdigit((unsigned char)value.data[digits])) {
        if (__builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, value.data[digits] - '0', &number))
            number = UINT64_MAX; /* past every bound, and stays there */
        digits++;
    }
    while (unit->name && !sl_slice_is(sl_slice_from(value, digits), unit->name))
        unit++;
    if (digits == 0 || !unit->name)
        return failure_set(reterr, -EINVAL, "%s is not %s", log_quote(value, room),
                           number_forms[kind].form);
    if (__builtin_mul_overflow(number, unit->factor, ret_number))
        *ret_number = UINT64_MAX;
    return 0;
}

static int set_number(struct config *config, const struct row *row, struct sl_slice value,
                      struct failure *reterr)
{
    uint64_t number = 0;
    int r;

    r = parse_number(row->kind, value, &number, reterr);
    if (r < 0)
        return r;
    if (number < row->lowest || number > row->highest)
        return failure_set(reterr, -EINVAL, "%.*s is out of range, %llu%s to %llu%s is allowed",
                           SL_SLICE_ARG(value), (unsigned long long)row->lowest,
                           row->kind == KIND_TIME ? "ms" : "", (unsigned long long)row->highest,
                           row->kind == KIND_TIME ? "ms" : "");
    *number_field(config, row) = number;
    return 0;
}

static int set_flag(struct config *config, const struct row *row, struct sl_slice value,
                    struct failure *reterr)
{
    static const struct {
        const char *word;
        bool flag;
    } words[] = {{"yes", true}, {"true", true}, {"no", false}, {"false", false}};
    char room[LOG_QUOTE_SIZE];

    for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (sl_slice_is(value, words[i].word)) {
            *flag_field(config, row) = words[i].flag;
            return 0;
        }
    }
    return failure_set(reterr, -EINVAL, "%s is neither yes nor no", log_quote(value, room));
}

static int set_text(struct config *config, const struct row *row, struct sl_slice value)
{
    char *copy = mem_strndup(value.data, value.size);

    if (!copy)
        return -ENOMEM;
    mem_free(*text_field(config, row));
    *text_field(config, row) = copy;
    return 0;
}

static int add_to_list(struct config *config, const struct row *row, struct sl_slice value,
                       struct failure *reterr)
{
    struct config_list *list = list_field(config, row);
    char *copy;

    if (list->count == CONFIG_LIST_MAX)
        return failure_set(reterr, -EINVAL, "given more than %d times", CONFIG_LIST_MAX);
    copy = mem_strndup(value.data, value.size);
    if (!copy)
        return -ENOMEM;
    list->items[list->count++] = copy;
    return 0;
}

static int set_checked(struct config *config, const struct row *row, struct sl_slice value,
                       struct failure *reterr)
{
    int r;

    if (value.size == 0)
        return failure_set(reterr, -EINVAL, "is empty");
    if (memchr(value.data, '\0', value.size))
        return failure_set(reterr, -EINVAL, "holds a NUL byte");
    if (row->check) {
        r = row->check(value, reterr);
        if (r < 0)
            return r;
    }
    switch (row->kind) {
    case KIND_TEXT:
        return set_text(config, row, value);
    case KIND_LIST:
        return add_to_list(config, row, value, reterr);
    case KIND_NUMBER:
    case KIND_BYTES:
    case KIND_TIME:
        return set_number(config, row, value, reterr);
    case KIND_FLAG:
        return set_flag(config, row, value, reterr);
    }
    return -EINVAL;
}

/* Every value from every source comes through here. */
static int set(struct config *config, enum config_option option, enum config_source source,
               unsigned line, struct sl_slice value, struct failure *reterr)
{
    const struct row *row = &rows[option];
    struct failure complaint = {""};
    int r;

    if (row->kind == KIND_LIST && config->origins[option].source != source)
        list_clear(list_field(config, row));
    config->origins[option].source = source;
    config->origins[option].line = line;
    r = set_checked(config, row, value, &complaint);
    if (r == -EINVAL)
        return config_refuse(config, option, reterr, r, "%s", complaint.text);
    return r;
}

static bool find_option(struct sl_slice name, enum config_option *ret_option)
{
    for (unsigned i = 0; i < CONFIG_OPTION_COUNT; i++) {
        if (sl_slice_is(name, rows[i].name)) {
            *ret_option = (enum config_option)i;
            return true;
        }
    }
    return false;
}

static struct sl_slice trim(struct sl_slice text)
{
    while (text.size > 0 && isspace((unsigned char)text.data[0]))
        text = sl_slice_from(text, 1);
    while (text.size > 0 && isspace((unsigned char)text.data[text.size - 1]))
        text.size--;
    return text;
}

/* A comment starts at a `#` that begins the line or stands behind a space; between quotes a value
 * is taken as it is. */
static int cut_value(struct sl_slice rest, struct sl_slice *ret_value)
{
    struct sl_slice value = trim(rest);

    if (value.size > 0 && value.data[0] == '"') {
        const char *end = memchr(value.data + 1, '"', value.size - 1);
        struct sl_slice behind;

        if (!end)
            return -EINVAL;
        behind = trim(sl_slice_from(value, (size_t)(end + 1 - value.data)));
        if (behind.size > 0 && behind.data[0] != '#')
            return -EINVAL;
        *ret_value = sl_slice(value.data + 1, (size_t)(end - value.data - 1));
        return 0;
    }
    for (size_t i = 0; i < value.size; i++) {
        if (value.data[i] == '#' && (i == 0 || isspace((unsigned char)value.data[i - 1]))) {
            value.size = i;
            break;
        }
    }
    *ret_value = trim(value);
    return 0;
}

static int read_line(struct config *config, struct sl_slice text, unsigned line,
                     struct failure *reterr)
{
    struct sl_slice key, value;
    enum config_option option;
    char room[LOG_QUOTE_SIZE];
    const char *equals;

    text = trim(text);
    if (text.size == 0 || text.data[0] == '#')
        return 0;
    equals = memchr(text.data, '=', text.size);
    if (!equals)
        return failure_set(reterr, -EINVAL, "%s:%u: not a line of the form key = value",
                           config->config, line);
    key = trim(sl_slice(text.data, (size_t)(equals - text.data)));
    if (!find_option(key, &option))
        return failure_set(reterr, -EINVAL, "%s:%u: there is no option %s", config->config, line,
                           log_quote(key, room));
    if (option == CONFIG_OPTION_config)
        return failure_set(reterr, -EINVAL, "%s:%u: config: a file cannot name another",
                           config->config, line);
    if (rows[option].kind != KIND_LIST && config->origins[option].source == CONFIG_SOURCE_FILE)
        return failure_set(reterr, -EINVAL, "%s:%u: %s: was given in line %u already",
                           config->config, line, rows[option].name, config->origins[option].line);
    if (cut_value(sl_slice_from(text, (size_t)(equals + 1 - text.data)), &value) < 0)
        return failure_set(reterr, -EINVAL, "%s:%u: %s: the quotes do not match", config->config,
                           line, rows[option].name);
    return set(config, option, CONFIG_SOURCE_FILE, line, value, reterr);
}

static int load_file(const struct config *config, struct buffer *text, struct failure *reterr)
{
    ssize_t got = -1;
    int fd, r;

    fd = open(config->config, O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && buffer_reserve(text, 4096)) {
        got = read(fd, text->data + text->size, 4096);
        if (got <= 0)
            break;
        text->size += (size_t)got;
    }
    if (text->failed)
        r = text->size + 4096 > FILE_MAX_BYTES ? -E2BIG : -ENOMEM;
    else
        r = got < 0 ? -errno : 0;
    if (fd >= 0)
        close(fd);
    if (r < 0)
        return config_refuse(config, CONFIG_OPTION_config, reterr, r, "cannot read '%s': %s",
                             config->config, strerror(-r));
    return 0;
}

static int read_file(struct config *config, struct failure *reterr)
{
    struct buffer text = BUFFER_INIT;
    struct sl_slice rest;
    int r;

    text.limit = FILE_MAX_BYTES;
    r = load_file(config, &text, reterr);
    rest = buffer_slice(&text);
    for (unsigned line = 1; r == 0 && rest.size > 0; line++) {
        const char *end = memchr(rest.data, '\n', rest.size);
        size_t size = end ? (size_t)(end - rest.data) : rest.size;

        r = read_line(config, sl_slice(rest.data, size), line, reterr);
        rest = sl_slice_from(rest, end ? size + 1 : size);
    }
    buffer_done(&text);
    return r;
}

static struct sl_slice variable_value(char *const environment[], enum config_option option)
{
    char name[CONFIG_VARIABLE_SIZE];
    size_t size = strlen(config_variable_name(option, name));

    for (; *environment; environment++) {
        if (strncmp(*environment, name, size) == 0 && (*environment)[size] == '=')
            return sl_slice_str(*environment + size + 1);
    }
    return SL_SLICE_NONE;
}

/* The items of a list stand between commas. */
static int read_variable(struct config *config, enum config_option option, struct sl_slice value,
                         struct failure *reterr)
{
    while (rows[option].kind == KIND_LIST) {
        const char *comma = memchr(value.data, ',', value.size);
        int r;

        if (!comma)
            break;
        r = set(config, option, CONFIG_SOURCE_ENVIRONMENT, 0,
                trim(sl_slice(value.data, (size_t)(comma - value.data))), reterr);
        if (r < 0)
            return r;
        value = sl_slice_from(value, (size_t)(comma + 1 - value.data));
    }
    return set(config, option, CONFIG_SOURCE_ENVIRONMENT, 0, trim(value), reterr);
}

static int read_environment(struct config *config, char *const environment[],
                            struct failure *reterr)
{
    for (unsigned i = 0; i < CONFIG_OPTION_COUNT; i++) {
        struct sl_slice value = variable_value(environment, (enum config_option)i);
        int r;

        if (!value.data)
            continue;
        r = read_variable(config, (enum config_option)i, value, reterr);
        if (r < 0)
            return r;
    }
    return 0;
}

/* Takes one argument apart: `--name=value`, `--name value`, `--flag`. *at moves behind it. */
static int read_argument(int argc, char *const argv[], int *at, enum config_option *ret_option,
                         struct sl_slice *ret_value, struct failure *reterr)
{
    struct sl_slice argument = sl_slice_str(argv[(*at)++]), name;
    char room[LOG_QUOTE_SIZE];
    const char *equals;

    if (!sl_slice_starts_with(argument, SL_SLICE("--")))
        return failure_set(reterr, -EINVAL, "unexpected argument %s (see --help)",
                           log_quote(argument, room));
    equals = memchr(argument.data, '=', argument.size);
    name = sl_slice(argument.data + 2,
                    (equals ? (size_t)(equals - argument.data) : argument.size) - 2);
    if (!find_option(name, ret_option))
        return failure_set(reterr, -EINVAL, "there is no option %s (see --help)",
                           log_quote(sl_slice(argument.data, name.size + 2), room));
    if (equals)
        *ret_value = sl_slice_str(equals + 1);
    else if (rows[*ret_option].kind == KIND_FLAG)
        *ret_value = SL_SLICE("yes");
    else if (*at < argc)
        *ret_value = sl_slice_str(argv[(*at)++]);
    else
        return failure_set(reterr, -EINVAL, "--%s: needs a value, %s", rows[*ret_option].name,
                           rows[*ret_option].argument);
    return 0;
}

/* The first walk: which file, or is something else wanted? */
static int find_file(struct config *config, int argc, char *const argv[], struct failure *reterr)
{
    for (int at = 1; at < argc;) {
        enum config_option option;
        struct sl_slice value;
        int r;

        if (strcmp(argv[at], "--help") == 0 || strcmp(argv[at], "--version") == 0) {
            config->action = argv[at][2] == 'h' ? CONFIG_ACTION_HELP : CONFIG_ACTION_VERSION;
            return 0;
        }
        r = read_argument(argc, argv, &at, &option, &value, reterr);
        if (r == 0 && option == CONFIG_OPTION_config)
            r = set(config, option, CONFIG_SOURCE_COMMAND_LINE, 0, value, reterr);
        if (r < 0)
            return r;
    }
    return 0;
}

static int read_command_line(struct config *config, int argc, char *const argv[],
                             struct failure *reterr)
{
    for (int at = 1; at < argc;) {
        enum config_option option;
        struct sl_slice value;
        int r;

        r = read_argument(argc, argv, &at, &option, &value, reterr);
        if (r == 0)
            r = set(config, option, CONFIG_SOURCE_COMMAND_LINE, 0, value, reterr);
        if (r < 0)
            return r;
    }
    return 0;
}

/* What only the whole can tell. */
static int check_together(const struct config *config, struct failure *reterr)
{
    if (config->tls_cert && !config->tls_key)
        return config_refuse(config, CONFIG_OPTION_tls_cert, reterr, -EINVAL, "needs tls-key too");
    if (config->tls_key && !config->tls_cert)
        return config_refuse(config, CONFIG_OPTION_tls_key, reterr, -EINVAL, "needs tls-cert too");
    if (config->gather_ms > config->max_gather_ms)
        return config_refuse(config, CONFIG_OPTION_gather_ms, reterr, -EINVAL,
                             "%llu is more than max-gather-ms, %llu",
                             (unsigned long long)config->gather_ms,
                             (unsigned long long)config->max_gather_ms);
    return 0;
}

static int read_sources(struct config *config, int argc, char *const argv[],
                        char *const environment[], struct failure *reterr)
{
    struct sl_slice value = variable_value(environment, CONFIG_OPTION_config);
    int r;

    if (value.data) {
        r = read_variable(config, CONFIG_OPTION_config, value, reterr);
        if (r < 0)
            return r;
    }
    r = find_file(config, argc, argv, reterr);
    if (r < 0 || config->action != CONFIG_ACTION_RUN)
        return r;
    if (config->config) {
        r = read_file(config, reterr);
        if (r < 0)
            return r;
    }
    r = read_environment(config, environment, reterr);
    if (r < 0)
        return r;
    r = read_command_line(config, argc, argv, reterr);
    if (r < 0)
        return r;
    return check_together(config, reterr);
}

int config_read(int argc, char *const argv[], char *const environment[], struct config **ret_config,
                struct failure *reterr)
{
    struct config *config;
    int r;

    config = config_new();
    if (config) {
        config->sources.argc = argc;
        config->sources.argv = argv;
        config->sources.environment = environment;
    }
    r = config ? read_sources(config, argc, argv, environment, reterr) : -ENOMEM;
    if (r < 0) {
        config_free(config);
        return r == -ENOMEM ? failure_set(reterr, r, "out of memory") : r;
    }
    *ret_config = config;
    return 0;
}

void config_set_log(const struct config *config)
{
    enum log_level level;
    enum log_format format;

    if (log_parse_level(config->log_level, &level) == 0)
        log_set_level(level);
    if (log_parse_format(config->log_format, &format) == 0)
        log_set_format(format);
}
