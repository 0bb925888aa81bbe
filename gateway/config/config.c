/* config.c - a loop for each source: the file, the environment, the command line.
 *
 * The file is named by the environment or the command line but has lower precedence than both, so
 * the command line is processed twice: the first time only for --config, --help and --version. */
#include "gateway/config/config.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/listen_address.h"
#include "base/log.h"
#include "gateway/config/config_options.h"

enum { FILE_MAX_BYTES = 1 << 20 };

static struct sl_slice trim(struct sl_slice text)
{
    while (text.size > 0 && isspace((unsigned char)text.data[0]))
        text = sl_slice_from(text, 1);
    while (text.size > 0 && isspace((unsigned char)text.data[text.size - 1]))
        text.size--;
    return text;
}

/* A comment begins at a `#` at the beginning of a line or after a space; a value in quotes is taken
 * unchanged. */
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
    if (!config_option_find(key, &option))
        return failure_set(reterr, -EINVAL, "%s:%u: there is no option %s", config->config, line,
                           log_quote(key, room));
    if (option == CONFIG_OPTION_config)
        return failure_set(reterr, -EINVAL, "%s:%u: config: a file cannot include another one",
                           config->config, line);
    if (config_option_kind(option) != CONFIG_KIND_LIST &&
        config->origins[option].source == CONFIG_SOURCE_FILE)
        return failure_set(reterr, -EINVAL, "%s:%u: %s: already given in line %u", config->config,
                           line, config_option_name(option), config->origins[option].line);
    if (cut_value(sl_slice_from(text, (size_t)(equals + 1 - text.data)), &value) < 0)
        return failure_set(reterr, -EINVAL, "%s:%u: %s: the quotes do not match", config->config,
                           line, config_option_name(option));
    return config_set(config, option, CONFIG_SOURCE_FILE, line, value, reterr);
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

/* The items of a list are separated by commas. */
static int read_variable(struct config *config, enum config_option option, struct sl_slice value,
                         struct failure *reterr)
{
    while (config_option_kind(option) == CONFIG_KIND_LIST) {
        const char *comma = memchr(value.data, ',', value.size);
        int r;

        if (!comma)
            break;
        r = config_set(config, option, CONFIG_SOURCE_ENVIRONMENT, 0,
                       trim(sl_slice(value.data, (size_t)(comma - value.data))), reterr);
        if (r < 0)
            return r;
        value = sl_slice_from(value, (size_t)(comma + 1 - value.data));
    }
    return config_set(config, option, CONFIG_SOURCE_ENVIRONMENT, 0, trim(value), reterr);
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

/* Parses one argument: `--name=value`, `--name value`, `--flag`. Advances *at past it. */
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
    if (!config_option_find(name, ret_option))
        return failure_set(reterr, -EINVAL, "there is no option %s (see --help)",
                           log_quote(sl_slice(argument.data, name.size + 2), room));
    if (equals)
        *ret_value = sl_slice_str(equals + 1);
    else if (config_option_kind(*ret_option) == CONFIG_KIND_FLAG)
        *ret_value = SL_SLICE("yes");
    else if (*at < argc)
        *ret_value = sl_slice_str(argv[(*at)++]);
    else
        return failure_set(reterr, -EINVAL, "--%s: needs a value, %s",
                           config_option_name(*ret_option), config_option_argument(*ret_option));
    return 0;
}

/* The first pass: finds the file, or another action. */
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
            r = config_set(config, option, CONFIG_SOURCE_COMMAND_LINE, 0, value, reterr);
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
            r = config_set(config, option, CONFIG_SOURCE_COMMAND_LINE, 0, value, reterr);
        if (r < 0)
            return r;
    }
    return 0;
}

/* Otherwise nobody could connect. */
static int check_proxies(const struct config *config, enum config_option option, const char *text,
                         struct failure *reterr)
{
    struct listen_address address;

    if (!text || config->trusted_proxies ||
        listen_address_parse(sl_slice_str(text), &address, NULL) < 0 || !address.with_proxy)
        return 0;
    return config_refuse(config, option, reterr, -EINVAL,
                         "with proxy it needs trusted-proxies, the addresses of the proxies");
}

static int check_jwks(const struct config *config, struct failure *reterr)
{
    if (config->jwks_urls.count > 0 && !(config->jwt_issuer && config->jwt_issuer[0]))
        return config_refuse(config, CONFIG_OPTION_jwks_urls, reterr, -EINVAL,
                             "needs jwt-issuer too, the issuer of these keys");
    if (config->jwks_refresh_min_ms > config->jwks_refresh_max_ms)
        return config_refuse(config, CONFIG_OPTION_jwks_refresh_min_ms, reterr, -EINVAL,
                             "%llu ms is more than jwks-refresh-max, %llu ms",
                             (unsigned long long)config->jwks_refresh_min_ms,
                             (unsigned long long)config->jwks_refresh_max_ms);
    return 0;
}

/* Checks conditions on several settings. */
static int check_together(const struct config *config, struct failure *reterr)
{
    if (config->tls_cert && !config->tls_key)
        return config_refuse(config, CONFIG_OPTION_tls_cert, reterr, -EINVAL, "needs tls-key too");
    if (config->tls_key && !config->tls_cert)
        return config_refuse(config, CONFIG_OPTION_tls_key, reterr, -EINVAL, "needs tls-cert too");
    if (check_proxies(config, CONFIG_OPTION_listen, config->listen, reterr) < 0 ||
        check_proxies(config, CONFIG_OPTION_ops_listen, config->ops_listen, reterr) < 0)
        return -EINVAL;
    if (check_jwks(config, reterr) < 0)
        return -EINVAL;
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

const char *config_audit_log(const struct config *config)
{
    return strcmp(config->audit_log, "off") == 0 ? NULL : config->audit_log;
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
