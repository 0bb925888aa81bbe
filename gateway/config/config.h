/* gateway/config/config.h - the settings of sluiced, and the source of each.
 *
 * config_table.def has a row for each option. Sources in ascending precedence: the default, the
 * configuration file (`key = value` lines), the environment (SLUICE_...), the command line. A
 * repeatable option from one source replaces the values of lower sources. An invalid setting is
 * refused with a message that begins with its position: `sluiced.conf:3: workers: ...`,
 * `SLUICE_WORKERS: ...`, `--workers: ...`. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/failure.h"

enum { CONFIG_LIST_MAX = 64 };

#define CONFIG_FOREVER UINT64_MAX /* a time that never comes */

struct config_list {
    unsigned count;
    char *items[CONFIG_LIST_MAX];
};

enum config_option {
#define SECTION(title)
#define TEXT(field, ...)   CONFIG_OPTION_##field,
#define LIST(field, ...)   CONFIG_OPTION_##field,
#define NUMBER(field, ...) CONFIG_OPTION_##field,
#define BYTES(field, ...)  CONFIG_OPTION_##field,
#define TIME(field, ...)   CONFIG_OPTION_##field,
#define FLAG(field, ...)   CONFIG_OPTION_##field,
#include "gateway/config/config_table.def"
    CONFIG_OPTION_COUNT
};

enum config_source {
    CONFIG_SOURCE_DEFAULT,
    CONFIG_SOURCE_FILE,
    CONFIG_SOURCE_ENVIRONMENT,
    CONFIG_SOURCE_COMMAND_LINE
};

enum config_action { CONFIG_ACTION_RUN, CONFIG_ACTION_HELP, CONFIG_ACTION_VERSION };

struct config {
    enum config_action action; /* the action requested on the command line; unless RUN, nothing is
                                  set */
#define SECTION(title)
#define TEXT(field, ...)   char *field; /* NULL: not set and without a default */
#define LIST(field, ...)   struct config_list field;
#define NUMBER(field, ...) uint64_t field;
#define BYTES(field, ...)  uint64_t field;
#define TIME(field, ...)   uint64_t field; /* ms */
#define FLAG(field, ...)   bool field;
#include "gateway/config/config_table.def"
    struct {
        enum config_source source;
        unsigned line; /* in the file, if that is the source */
    } origins[CONFIG_OPTION_COUNT];
    struct {
        int argc;
        char *const *argv, *const *environment; /* borrowed */
    } sources;                                  /* for config_reload() */
};

/* `environment` is like environ(7); it and `argv` must outlive the configuration. 0; -EINVAL and
 * other errnos: *reterr names the setting. */
int config_read(int argc, char *const argv[], char *const environment[], struct config **ret_config,
                struct failure *reterr);
void config_free(struct config *config);

/* The file named by `audit-log`; NULL: off. */
const char *config_audit_log(const struct config *config);

/* Sets level and format of the process's log. */
void config_set_log(const struct config *config);

/* Refuses a setting after config_read() (a port in use, a missing file): sets *reterr to the
 * position of the setting and the message, and returns `error`. */
int config_refuse(const struct config *config, enum config_option option, struct failure *reterr,
                  int error, const char *format, ...) __attribute__((format(printf, 5, 6)));

enum { CONFIG_VARIABLE_SIZE = 64 };

/* Writes the name of the variable: CONFIG_OPTION_max_event_bytes -> "SLUICE_MAX_EVENT_BYTES".
 * Returns `room`. */
const char *config_variable_name(enum config_option option, char room[static CONFIG_VARIABLE_SIZE]);

/* The following are in config_help.c. */
void config_print_help(struct buffer *ret_text);

/* Prints the options as mdoc(7) list items, for sluiced(8) and sluiced.conf(5). */
enum config_manual { CONFIG_MANUAL_COMMAND_LINE, CONFIG_MANUAL_FILE };
void config_print_manual(enum config_manual manual, struct buffer *ret_text);
