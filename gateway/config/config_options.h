/* gateway/config/config_options.h - the individual options: which values are valid, and setting
 * them in struct config. For the files of this folder. */
#pragma once

#include "base/slice.h"
#include "gateway/config/config.h"

enum config_kind {
    CONFIG_KIND_TEXT,
    CONFIG_KIND_LIST,
    CONFIG_KIND_NUMBER,
    CONFIG_KIND_BYTES,
    CONFIG_KIND_TIME,
    CONFIG_KIND_FLAG
};

enum config_kind config_option_kind(enum config_option option);
const char *config_option_name(enum config_option option);     /* "max-event-bytes" */
const char *config_option_argument(enum config_option option); /* NULL: it takes no value */
bool config_option_find(struct sl_slice name, enum config_option *ret_option);

/* Creates a configuration with all defaults. NULL: out of memory. */
struct config *config_new(void);

/* Sets the option to `value`; for a list adds an item, and the first item of another source
 * replaces the list. `line`: in the file, else 0. 0; -EINVAL: *reterr has the position and the
 * reason; -ENOMEM. */
int config_set(struct config *config, enum config_option option, enum config_source source,
               unsigned line, struct sl_slice value, struct failure *reterr);
