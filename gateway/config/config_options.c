/* config_options.c - a row for each option, generated from config_table.def.
 *
 * Every value from every source is set by config_set(), which checks it by its row and stores it in
 * the row's field, together with its source. So there is one error message, which begins with the
 * place where the user wrote the value. */
#include "gateway/front/dialect.h"
#include "gateway/config/config_options.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/ip_address.h"
#include "base/listen_address.h"
#include "base/log.h"
#include "gateway/front/key_source.h"
#include "src/archive/archive.h"
#include "src/cache/cache.h"
#include "src/redis/redis_address.h"
#include "src/redis/redis_tls.h"

/* Says what is wrong with a value that is not empty; the caller adds the position. */
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

static int check_networks(struct sl_slice value, struct failure *reterr)
{
    struct ip_networks networks;

    return ip_networks_parse(value, &networks, reterr);
}

static int check_client_address(struct sl_slice value, struct failure *reterr)
{
    char room[LOG_QUOTE_SIZE];

    if (!sl_slice_is(value, "x-forwarded-for") && !sl_slice_is(value, "forwarded"))
        return failure_set(reterr, -EINVAL, "%s is neither x-forwarded-for nor forwarded",
                           log_quote(value, room));
    return 0;
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

/* As browsers send it: scheme, host, port, nothing after. */
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

static int check_dialects(struct sl_slice value, struct failure *reterr)
{
    unsigned dialects;

    return dialects_parse(value, &dialects, reterr);
}

static int check_keys_removed(struct sl_slice value, struct failure *reterr)
{
    char room[LOG_QUOTE_SIZE];

    if (!sl_slice_is(value, "end") && !sl_slice_is(value, "keep"))
        return failure_set(reterr, -EINVAL, "%s is neither end nor keep", log_quote(value, room));
    return 0;
}

static int check_key_url(struct sl_slice value, struct failure *reterr)
{
    char room[LOG_QUOTE_SIZE];
    struct failure why;

    if (key_url_check(value, &why) == 0)
        return 0;
    return failure_set(reterr, -EINVAL, "%s is %s", log_quote(value, room), why.text);
}

static int check_on_off(struct sl_slice value, struct failure *reterr)
{
    char room[LOG_QUOTE_SIZE];

    if (!sl_slice_is(value, "on") && !sl_slice_is(value, "off"))
        return failure_set(reterr, -EINVAL, "%s is neither on nor off", log_quote(value, room));
    return 0;
}

static int check_compression(struct sl_slice value, struct failure *reterr)
{
    char room[LOG_QUOTE_SIZE];

    if (!sl_slice_is(value, "all") && !sl_slice_is(value, "zstd") && !sl_slice_is(value, "off"))
        return failure_set(reterr, -EINVAL, "%s is not one of all, zstd, off",
                           log_quote(value, room));
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

struct row {
    enum config_kind kind;
    size_t offset; /* of the field in struct config */
    const char *name;
    const char *argument;     /* NULL: takes no value */
    const char *default_text; /* texts; NULL: none */
    config_check_fn check;    /* texts and lists; NULL: anything is valid */
    uint64_t default_number, lowest, highest;
};

#define AT(field) offsetof(struct config, field)

static const struct row rows[CONFIG_OPTION_COUNT] = {
#define SECTION(title)
#define TEXT(field, name, argument, fallback, check, text)                                         \
    {CONFIG_KIND_TEXT, AT(field), name, argument, fallback, check, 0, 0, 0},
#define LIST(field, name, argument, check, text)                                                   \
    {CONFIG_KIND_LIST, AT(field), name, argument, NULL, check, 0, 0, 0},
#define NUMBER(field, name, argument, fallback, lowest, highest, text)                             \
    {CONFIG_KIND_NUMBER, AT(field), name, argument, NULL, NULL, fallback, lowest, highest},
#define BYTES(field, name, fallback, lowest, highest, text)                                        \
    {CONFIG_KIND_BYTES, AT(field), name, "BYTES", NULL, NULL, fallback, lowest, highest},
#define TIME(field, name, fallback, lowest, highest, text)                                         \
    {CONFIG_KIND_TIME, AT(field), name, "TIME", NULL, NULL, fallback, lowest, highest},
#define FLAG(field, name, text) {CONFIG_KIND_FLAG, AT(field), name, NULL, NULL, NULL, 0, 0, 0},
#include "gateway/config/config_table.def"
};

enum config_kind config_option_kind(enum config_option option)
{
    return rows[option].kind;
}

const char *config_option_name(enum config_option option)
{
    return rows[option].name;
}

const char *config_option_argument(enum config_option option)
{
    return rows[option].argument;
}

bool config_option_find(struct sl_slice name, enum config_option *ret_option)
{
    for (unsigned i = 0; i < CONFIG_OPTION_COUNT; i++) {
        if (sl_slice_is(name, rows[i].name)) {
            *ret_option = (enum config_option)i;
            return true;
        }
    }
    return false;
}

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
        if (rows[i].kind == CONFIG_KIND_TEXT)
            mem_free(*text_field(config, &rows[i]));
        else if (rows[i].kind == CONFIG_KIND_LIST)
            list_clear(list_field(config, &rows[i]));
    }
    mem_free(config);
}

static bool holds_number(enum config_kind kind)
{
    return kind == CONFIG_KIND_NUMBER || kind == CONFIG_KIND_BYTES || kind == CONFIG_KIND_TIME;
}

struct config *config_new(void)
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

/* The units that may follow the digits, for each kind; the first is used without a unit. */
static const struct unit plain_units[] = {{"", 1}, {NULL, 0}};
static const struct unit byte_units[] = {
    {"", 1}, {"K", 1 << 10}, {"M", 1 << 20}, {"G", 1 << 30}, {NULL, 0}};
static const struct unit time_units[] = {{"", 1000},   {"ms", 1},      {"s", 1000},
                                         {"m", 60000}, {"h", 3600000}, {NULL, 0}};

static const struct {
    const struct unit *units;
    const char *form;
} number_forms[] = {
    [CONFIG_KIND_NUMBER] = {plain_units, "a whole number"},
    [CONFIG_KIND_BYTES] = {byte_units, "a size like 65536, 64K, 2M or 1G"},
    [CONFIG_KIND_TIME] = {time_units, "a time like 500ms, 5s, 2m or 1h"},
};

static int parse_number(enum config_kind kind, struct sl_slice value, uint64_t *ret_number,
                        struct failure *reterr)
{
    const struct unit *unit = number_forms[kind].units;
    uint64_t number = 0;
    size_t digits = 0;
    char room[LOG_QUOTE_SIZE];

    if (kind == CONFIG_KIND_TIME && sl_slice_is(value, "forever")) {
        *ret_number = CONFIG_FOREVER;
        return 0;
    }
    while (digits < value.size && isdigit((unsigned char)value.data[digits])) {
        if (__builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, value.data[digits] - '0', &number))
            number = UINT64_MAX; /* above every bound, and stays there */
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
                           row->kind == CONFIG_KIND_TIME ? "ms" : "",
                           (unsigned long long)row->highest,
                           row->kind == CONFIG_KIND_TIME ? "ms" : "");
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
    case CONFIG_KIND_TEXT:
        return set_text(config, row, value);
    case CONFIG_KIND_LIST:
        return add_to_list(config, row, value, reterr);
    case CONFIG_KIND_NUMBER:
    case CONFIG_KIND_BYTES:
    case CONFIG_KIND_TIME:
        return set_number(config, row, value, reterr);
    case CONFIG_KIND_FLAG:
        return set_flag(config, row, value, reterr);
    }
    return -EINVAL;
}

int config_set(struct config *config, enum config_option option, enum config_source source,
               unsigned line, struct sl_slice value, struct failure *reterr)
{
    const struct row *row = &rows[option];
    struct failure complaint = {""};
    int r;

    if (row->kind == CONFIG_KIND_LIST && config->origins[option].source != source)
        list_clear(list_field(config, row));
    config->origins[option].source = source;
    config->origins[option].line = line;
    r = set_checked(config, row, value, &complaint);
    if (r == -EINVAL)
        return config_refuse(config, option, reterr, r, "%s", complaint.text);
    return r;
}
