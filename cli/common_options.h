/* cli/common_options.h - what every command takes, in front of its name as well. */
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
