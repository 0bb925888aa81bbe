#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "gateway/config/config.h"
#include "tests/support/cmocka_all.h"

enum { MAX_ARGUMENTS = 160 };

/* Splits `line`, in place, into words after a program name. */
static int split(char *line, char *ret_argv[MAX_ARGUMENTS])
{
    static char program[] = "sluiced";
    int argc = 0;
    char *rest = NULL;

    ret_argv[argc++] = program;
    for (char *word = strtok_r(line, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        ret_argv[argc++] = word;
    return argc;
}

static void write_file(const char *text, size_t size)
{
    FILE *file = fopen("sluiced.conf", "w");

    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* `file`: content of ./sluiced.conf, which --config names; NULL: none. `variable` may be NULL,
 * too. */
static int read_config(const char *file, const char *variable, const char *arguments,
                       struct config **ret_config, struct failure *failure)
{
    char *environment[] = {(char[]){"PATH=/bin"}, NULL, NULL};
    char *argv[MAX_ARGUMENTS];
    char *line = NULL;
    int argc, r;

    assert_true(asprintf(&line, "%s %s", arguments, file ? "--config sluiced.conf" : "") >= 0);
    argc = split(line, argv);
    if (variable)
        environment[1] = strdup(variable);
    if (file)
        write_file(file, strlen(file));
    r = config_read(argc, argv, environment, ret_config, failure);
    free(environment[1]);
    free(line);
    return r;
}

static struct config *good_config(const char *file, const char *variable, const char *arguments)
{
    struct config *config = NULL;
    struct failure failure = {""};
    int r = read_config(file, variable, arguments, &config, &failure);

    if (r < 0)
        fail_msg("refused: %s", failure.text);
    return config;
}

static void test_without_settings_there_are_defaults(void **state)
{
    struct config *config = good_config(NULL, NULL, "");

    (void)state;
    assert_int_equal(config->action, CONFIG_ACTION_RUN);
    assert_string_equal(config->listen, "127.0.0.1:8080");
    assert_null(config->redis);
    assert_int_equal(config->workers, 0);
    assert_int_equal(config->gather_ms, 10);
    assert_int_equal(config->max_event_bytes, 1 << 20);
    assert_int_equal(config->allow_origins.count, 0);
    assert_false(config->dev);
    config_free(config);
}

static void test_command_line_goes_before_environment_before_file(void **state)
{
    static const char file[] = "workers = 2\ngather-ms = 20\nkeepalive-ms = 20\n";
    struct config *config = good_config(file, "SLUICE_GATHER_MS=30", "--workers=4");

    (void)state;
    assert_int_equal(config->workers, 4);
    assert_int_equal(config->gather_ms, 30);
    assert_int_equal(config->keepalive_ms, 20);
    config_free(config);

    config = good_config(file, "SLUICE_WORKERS=3", "");
    assert_int_equal(config->workers, 3);
    config_free(config);
}

static void test_file_may_have_comments_quotes_and_spaces(void **state)
{
    struct config *config = good_config("# the first line\n"
                                        "\n"
                                        "\t listen=[::1]:0   # anywhere\r\n"
                                        "  # indented\n"
                                        "jwt-issuer = a#b\n"
                                        "jwt-audience = \" # \"  # not this\n"
                                        "dev = true\n"
                                        "max-owed-bytes = 3M",
                                        NULL, "");

    (void)state;
    assert_string_equal(config->listen, "[::1]:0");
    assert_string_equal(config->jwt_issuer, "a#b");
    assert_string_equal(config->jwt_audience, " # ");
    assert_true(config->dev);
    assert_int_equal(config->max_owed_bytes, 3 << 20);
    config_free(config);
}

static void test_lists_collect_within_a_source_and_replace_across_sources(void **state)
{
    static const char file[] = "allow-origin = https://a.org\nallow-origin = https://b.org\n";
    struct config *config = good_config(file, NULL, "");

    (void)state;
    assert_int_equal(config->allow_origins.count, 2);
    assert_string_equal(config->allow_origins.items[1], "https://b.org");
    config_free(config);

    config = good_config(file, "SLUICE_ALLOW_ORIGIN=https://c.org, https://d.org", "");
    assert_int_equal(config->allow_origins.count, 2);
    assert_string_equal(config->allow_origins.items[0], "https://c.org");
    assert_string_equal(config->allow_origins.items[1], "https://d.org");
    config_free(config);

    config = good_config(file, "SLUICE_ALLOW_ORIGIN=https://c.org",
                         "--allow-origin https://e.org --allow-origin=http://f.org:8080");
    assert_int_equal(config->allow_origins.count, 2);
    assert_string_equal(config->allow_origins.items[0], "https://e.org");
    assert_string_equal(config->allow_origins.items[1], "http://f.org:8080");
    config_free(config);
}

static void test_flag_is_switched_on_and_off(void **state)
{
    struct config *config = good_config("dev = yes\n", NULL, "--dev=no");

    (void)state;
    assert_false(config->dev);
    config_free(config);
    config = good_config(NULL, NULL, "--dev --workers 2");
    assert_true(config->dev);
    assert_int_equal(config->workers, 2);
    config_free(config);
}

static void test_file_is_found_through_the_environment(void **state)
{
    struct config *config;

    (void)state;
    write_file("workers = 7\n", 12);
    config = good_config(NULL, "SLUICE_CONFIG=sluiced.conf", "");
    assert_int_equal(config->workers, 7);
    config_free(config);
}

static void test_sizes_take_units(void **state)
{
    struct config *config = good_config(NULL, "SLUICE_MAX_EVENT_BYTES=64K",
                                        "--max-owed-bytes 1G --max-request-bytes 1024");

    (void)state;
    assert_int_equal(config->max_event_bytes, 65536);
    assert_int_equal(config->max_owed_bytes, 1 << 30);
    assert_int_equal(config->max_request_bytes, 1024);
    config_free(config);
}

static void test_times_take_units_and_are_seconds_without(void **state)
{
    static const struct {
        const char *arguments;
        uint64_t ms;
    } cases[] = {
        {"--drain-timeout 0", 0},       {"--drain-timeout 3", 3000},
        {"--drain-timeout 250ms", 250}, {"--drain-timeout 90s", 90000},
        {"--drain-timeout 2m", 120000}, {"--drain-timeout 1h", 3600000},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct config *config = good_config(NULL, NULL, cases[i].arguments);

        assert_int_equal(config->drain_timeout_ms, cases[i].ms);
        config_free(config);
    }
}

static void test_who_may_wait_for_ever_says_so(void **state)
{
    struct config *config = good_config(NULL, NULL, "--order-wait forever");
    struct buffer text = BUFFER_INIT;

    (void)state;
    assert_true(config->order_wait_ms == CONFIG_FOREVER);
    config_free(config);
    config_print_help(&text);
    assert_non_null(strstr(buffer_str(&text), "forever."));
    buffer_done(&text);
}

static void test_help_and_version_go_before_everything_else(void **state)
{
    struct config *config = good_config("nonsense\n", "SLUICE_WORKERS=x", "--workers y --help");

    (void)state;
    assert_int_equal(config->action, CONFIG_ACTION_HELP);
    config_free(config);
    config = good_config("nonsense\n", NULL, "--version");
    assert_int_equal(config->action, CONFIG_ACTION_VERSION);
    config_free(config);
}

static void test_bad_settings_are_named_with_their_place(void **state)
{
    static const struct {
        const char *file, *variable, *arguments, *message;
    } cases[] = {
        {"\nlisten\n", NULL, "", "sluiced.conf:2: not a line of the form key = value"},
        {"lisen = 1\n", NULL, "", "sluiced.conf:1: there is no option \"lisen\""},
        {"a\x01 = 1\n", NULL, "", "sluiced.conf:1: there is no option \"a\\x01\""},
        {"= 1\n", NULL, "", "sluiced.conf:1: there is no option \"\""},
        {"config = x\n", NULL, "", "sluiced.conf:1: config: a file cannot include another one"},
        {"workers = 2\nworkers = 2\n", NULL, "",
         "sluiced.conf:2: workers: already given in line 1"},
        {"data-dir = \"/x\n", NULL, "", "sluiced.conf:1: data-dir: the quotes do not match"},
        {"data-dir = \"/x\" y\n", NULL, "", "sluiced.conf:1: data-dir: the quotes do not match"},
        {"data-dir = # nothing\n", NULL, "", "sluiced.conf:1: data-dir: is empty"},
        {"data-dir =\n", NULL, "", "sluiced.conf:1: data-dir: is empty"},
        {"\n\nworkers = four\n", NULL, "",
         "sluiced.conf:3: workers: \"four\" is not a whole number"},
        {"dev = maybe\n", NULL, "", "sluiced.conf:1: dev: \"maybe\" is neither yes nor no"},
        {NULL, "SLUICE_WORKERS=0", "", "SLUICE_WORKERS: 0 is out of range, 1 to 256 is allowed"},
        {NULL, "SLUICE_WORKERS=-1", "", "SLUICE_WORKERS: \"-1\" is not a whole number"},
        {NULL, "SLUICE_LOG_LEVEL=loud", "",
         "SLUICE_LOG_LEVEL: \"loud\" is not one of error, warn, info, debug"},
        {NULL, "SLUICE_LOG_LEVEL=warnings", "",
         "SLUICE_LOG_LEVEL: \"warnings\" is not one of error, warn, info, debug"},
        {NULL, "SLUICE_ALLOW_ORIGIN=https://a.org,,https://b.org", "",
         "SLUICE_ALLOW_ORIGIN: is empty"},
        {NULL, "SLUICE_CONFIG=/no/such/file", "",
         "SLUICE_CONFIG: cannot read '/no/such/file': No such file or directory"},
        {NULL, NULL, "--config .", "--config: cannot read '.': Is a directory"},
        {NULL, NULL, "--config=", "--config: is empty"},
        {NULL, "SLUICE_REDIS=", "", "SLUICE_REDIS: is empty"},
        {NULL, "SLUICE_CONFIG= ", "", "SLUICE_CONFIG: is empty"},
        {NULL, NULL, "stray", "unexpected argument \"stray\" (see --help)"},
        {NULL, NULL, "-v", "unexpected argument \"-v\" (see --help)"},
        {NULL, NULL, "--", "there is no option \"--\" (see --help)"},
        {NULL, NULL, "--work=3", "there is no option \"--work\" (see --help)"},
        {NULL, NULL, "--redis", "--redis: needs a value, URL"},
        {NULL, "SLUICE_REDIS=http://u:secret@h", "",
         "SLUICE_REDIS: a Redis URL is redis://[user:password@]host[:port][/db], unix:///path, "
         "redis+sentinel://host[:port],.../master-name or redis+cluster://host[:port],...; over "
         "TLS it begins with rediss"},
        {NULL, NULL, "--workers 257", "--workers: 257 is out of range, 1 to 256 is allowed"},
        {NULL, NULL, "--workers 99999999999999999999999",
         "--workers: 99999999999999999999999 is out of range, 1 to 256 is allowed"},
        {NULL, NULL, "--workers 2K", "--workers: \"2K\" is not a whole number"},
        {NULL, NULL, "--max-event-bytes 1X",
         "--max-event-bytes: \"1X\" is not a size like 65536, 64K, 2M or 1G"},
        {NULL, NULL, "--max-event-bytes K",
         "--max-event-bytes: \"K\" is not a size like 65536, 64K, 2M or 1G"},
        {NULL, NULL, "--max-event-bytes 18446744073709551615G",
         "--max-event-bytes: 18446744073709551615G is out of range, 1024 to 67108864 is allowed"},
        {NULL, NULL, "--drain-timeout 5d",
         "--drain-timeout: \"5d\" is not a time like 500ms, 5s, 2m or 1h"},
        {NULL, NULL, "--drain-timeout s",
         "--drain-timeout: \"s\" is not a time like 500ms, 5s, 2m or 1h"},
        {NULL, NULL, "--drain-timeout forever",
         "--drain-timeout: forever is out of range, 0ms to 3600000ms is allowed"},
        {NULL, NULL, "--drain-timeout 2h",
         "--drain-timeout: 2h is out of range, 0ms to 3600000ms is allowed"},
        {NULL, NULL, "--listen 8080", "--listen: \"8080\" has no port"},
        {NULL, NULL, "--listen :80",
         "--listen: the host in \":80\" is empty; * means every address"},
        {NULL, NULL, "--listen ::1:80",
         "--listen: the IPv6 address in \"::1:80\" needs brackets, as in [::1]:80"},
        {NULL, NULL, "--listen a:65536",
         "--listen: the port in \"a:65536\" is not a number from 0 to 65535"},
        {NULL, NULL, "--listen a:-1",
         "--listen: the port in \"a:-1\" is not a number from 0 to 65535"},
        {NULL, NULL, "--listen a:", "--listen: the port in \"a:\" is not a number from 0 to 65535"},
        {NULL, NULL, "--allow-origin example.org",
         "--allow-origin: \"example.org\" is not an origin like https://example.org"},
        {NULL, NULL, "--allow-origin https://example.org/",
         "--allow-origin: \"https://example.org/\" is not an origin like https://example.org"},
        {NULL, NULL, "--allow-origin ://",
         "--allow-origin: \"://\" is not an origin like https://example.org"},
        {"tls-cert = c.pem\n", NULL, "", "sluiced.conf:1: tls-cert: needs tls-key too"},
        {NULL, NULL, "--tls-key k.pem", "--tls-key: needs tls-cert too"},
        {NULL, "SLUICE_MAX_GATHER_MS=5", "", "gather-ms: 10 is more than max-gather-ms, 5"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct config *config = NULL;
        struct failure failure = {""};
        int r =
            read_config(cases[i].file, cases[i].variable, cases[i].arguments, &config, &failure);

        assert_string_equal(failure.text, cases[i].message);
        assert_true(r < 0);
        assert_null(config);
    }
}

static void test_nul_byte_in_a_value_is_refused(void **state)
{
    static const char file[] = "jwt-issuer = a\0b\n";
    char *argv[] = {(char[]){"sluiced"}, (char[]){"--config=sluiced.conf"}};
    char *environment[] = {NULL};
    struct config *config = NULL;
    struct failure failure = {""};

    (void)state;
    write_file(file, sizeof(file) - 1);
    assert_int_equal(config_read(2, argv, environment, &config, &failure), -EINVAL);
    assert_string_equal(failure.text, "sluiced.conf:1: jwt-issuer: holds a NUL byte");
}

static void test_a_list_has_an_end(void **state)
{
    char arguments[(CONFIG_LIST_MAX + 1) * 24] = "";
    struct config *config = NULL;
    struct failure failure = {""};

    (void)state;
    for (int i = 0; i < CONFIG_LIST_MAX; i++)
        strcat(arguments, "--jwt-public-key k.pem ");
    config = good_config(NULL, NULL, arguments);
    assert_int_equal(config->jwt_public_keys.count, CONFIG_LIST_MAX);
    config_free(config);
    strcat(arguments, "--jwt-public-key k.pem");
    assert_int_equal(read_config(NULL, NULL, arguments, &config, &failure), -EINVAL);
    assert_string_equal(failure.text, "--jwt-public-key: given more than 64 times");
}

static void test_later_refusals_name_the_place_too(void **state)
{
    struct config *config =
        good_config("\nlisten = a:1\n", "SLUICE_DATA_DIR=/x", "--redis redis://a");
    struct failure failure;

    (void)state;
    assert_int_equal(config_refuse(config, CONFIG_OPTION_listen, &failure, -EIO, "port %d", 1),
                     -EIO);
    assert_string_equal(failure.text, "sluiced.conf:2: listen: port 1");
    config_refuse(config, CONFIG_OPTION_data_dir, &failure, -EIO, "full");
    assert_string_equal(failure.text, "SLUICE_DATA_DIR: full");
    config_refuse(config, CONFIG_OPTION_redis, &failure, -EIO, "away");
    assert_string_equal(failure.text, "--redis: away");
    config_refuse(config, CONFIG_OPTION_workers, &failure, -EIO, "many");
    assert_string_equal(failure.text, "workers: many");
    config_free(config);
}

static void test_config_survives_each_failed_allocation(void **state)
{
    (void)state;
    for (uint64_t n = 0;; n++) {
        struct config *config = NULL;
        struct failure failure = {""};
        int r;

        mem_fail_after(n);
        r = read_config("jwt-public-key = a\njwt-issuer = b\n", "SLUICE_LISTEN=a:1",
                        "--redis redis://a --allow-origin http://a --allow-origin http://b",
                        &config, &failure);
        mem_fail_never();
        if (r == 0) {
            assert_false(mem_failed());
            config_free(config);
            break;
        }
        assert_int_equal(r, -ENOMEM);
        assert_non_null(strstr(failure.text, "memory"));
        assert_null(config);
    }
}

static void test_help_tells_every_option_within_80_columns(void **state)
{
    static const char *const names[] = {
#define SECTION(title)
#define TEXT(field, name, ...)   "  --" name " ",
#define LIST(field, name, ...)   "  --" name " ",
#define NUMBER(field, name, ...) "  --" name " ",
#define BYTES(field, name, ...)  "  --" name " ",
#define TIME(field, name, ...)   "  --" name " ",
#define FLAG(field, name, ...)   "  --" name "\n",
#include "gateway/config/config_table.def"
    };
    struct buffer text = BUFFER_INIT;
    char *rest = NULL;
    char *copy;

    (void)state;
    config_print_help(&text);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        assert_non_null(strstr(buffer_str(&text), names[i]));
    copy = strdup(buffer_str(&text));
    for (char *line = strtok_r(copy, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        assert_true(strlen(line) <= 80);
    free(copy);
    buffer_done(&text);
}

static void test_manual_has_each_option_of_a_file(void **state)
{
    struct buffer text = BUFFER_INIT;

    (void)state;
    config_print_manual(CONFIG_MANUAL_FILE, &text);
    assert_non_null(strstr(buffer_str(&text), ".It Cm listen No = Ar HOST:PORT\n"));
    assert_non_null(strstr(buffer_str(&text), ".It Cm dev No = Ar yes | no\n"));
    assert_non_null(strstr(buffer_str(&text), ".Ev SLUICE_MAX_OWED_BYTES .\n"));
    assert_non_null(strstr(buffer_str(&text), "\nDefault 10, from 0 to 1000.\n"));
    assert_non_null(strstr(buffer_str(&text), "\nDefault 4M, from 4K to 1G.\n"));
    assert_non_null(strstr(buffer_str(&text), "\nDefault 5s, from 0ms to 1h.\n"));
    assert_non_null(strstr(buffer_str(&text), "\nFrom 1 to 256.\n"));
    assert_non_null(strstr(buffer_str(&text), "\nDefault 127.0.0.1:8080.\n"));
    assert_null(strstr(buffer_str(&text), ".It Cm config"));
    buffer_clear(&text);
    config_print_manual(CONFIG_MANUAL_COMMAND_LINE, &text);
    assert_non_null(strstr(buffer_str(&text), ".It Fl -config Ar FILE\n"));
    assert_non_null(strstr(buffer_str(&text), ".It Fl -dev\n"));
    assert_non_null(strstr(buffer_str(&text), "\\(ti/.local"));
    buffer_done(&text);
}

static int enter_folder(void **state)
{
    static char folder[] = "/tmp/sluice-test-config-XXXXXX";

    *state = mkdtemp(folder);
    return *state ? chdir(folder) : -1;
}

static int leave_folder(void **state)
{
    unlink("sluiced.conf");
    return rmdir(*state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_settings_there_are_defaults),
        cmocka_unit_test(test_command_line_goes_before_environment_before_file),
        cmocka_unit_test(test_file_may_have_comments_quotes_and_spaces),
        cmocka_unit_test(test_lists_collect_within_a_source_and_replace_across_sources),
        cmocka_unit_test(test_flag_is_switched_on_and_off),
        cmocka_unit_test(test_file_is_found_through_the_environment),
        cmocka_unit_test(test_sizes_take_units),
        cmocka_unit_test(test_times_take_units_and_are_seconds_without),
        cmocka_unit_test(test_who_may_wait_for_ever_says_so),
        cmocka_unit_test(test_help_and_version_go_before_everything_else),
        cmocka_unit_test(test_bad_settings_are_named_with_their_place),
        cmocka_unit_test(test_nul_byte_in_a_value_is_refused),
        cmocka_unit_test(test_a_list_has_an_end),
        cmocka_unit_test(test_later_refusals_name_the_place_too),
        cmocka_unit_test(test_config_survives_each_failed_allocation),
        cmocka_unit_test(test_help_tells_every_option_within_80_columns),
        cmocka_unit_test(test_manual_has_each_option_of_a_file),
    };

    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
