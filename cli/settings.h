/* cli/settings.h - reads and changes the settings of a database in all its shards. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/database.h"
#include "src/database/settings.h"

/* The names of all settings, each preceded by a space. */
extern const char settings_names[];

/* Reads the settings of all shards. If they differ, reports it: CLI_FAILED. */
int settings_read(struct database *database, const struct cli *cli,
                  struct sl_settings *ret_settings);

struct setting_change {
    size_t which;
    bool to_default;
    uint64_t value;
};

/* Parses a value or the word "default"; anything else ends the program. */
struct setting_change setting_change_parse(const struct cli *cli, size_t which, const char *text);

/* Changes every shard; if interrupted it may be repeated. */
int settings_change(struct database *database, const struct cli *cli,
                    const struct setting_change *change);
