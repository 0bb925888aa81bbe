/* cli/settings.h - the settings of a database, read and changed in all its shards. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/database.h"
#include "src/database/settings.h"

/* The names of all settings, a space before each. */
extern const char settings_names[];

/* What the shards have. Reports where they differ: CLI_FAILED. */
int settings_read(struct database *database, const struct cli *cli,
                  struct sl_settings *ret_settings);

struct setting_change {
    size_t which;
    bool to_default;
    uint64_t value;
};

/* Reads a value or the word "default"; one that is neither ends the program. */
struct setting_change setting_change_parse(const struct cli *cli, size_t which, const char *text);

/* Changes every shard; when that broke off it may be done once more. */
int settings_change(struct database *database, const struct cli *cli,
                    const struct setting_change *change);
