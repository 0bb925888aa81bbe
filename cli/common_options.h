/* cli/common_options.h - the options of all commands, which may also precede the command's name. */
#pragma once

#include "cli/cli.h"

/* Their keys. */
enum {
    COMMON_REDIS = 1,
    COMMON_ARCHIVE,
    COMMON_CACHE,
    COMMON_WAIT_REPLICAS,
    COMMON_HELP,
    COMMON_VERSION
};

extern const struct cli_option common_options[];
