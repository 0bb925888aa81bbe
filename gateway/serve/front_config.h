/* gateway/serve/front_config.h - the settings for clients: tokens, origins, limits. */
#pragma once

#include "base/failure.h"
#include "gateway/config/config.h"
#include "gateway/front/key_source.h"
#include "gateway/front/origin.h"
#include "gateway/front/stream_request.h"
#include "gateway/http/client_address.h"

struct front_config {
    struct front_settings front;
    struct origin_policy origins; /* borrows from the settings */
    struct client_trust trust;
    struct token_policy *policy;
    struct key_sources sources; /* of fetched keys */
    bool lacks_audience;        /* although keys of the options are fetched */
    /* To be set before reading. */
    struct metrics *metrics;
    bool allows_bad_sets; /* set files may have become invalid since the parent has read them */
};

/* Reads the settings and the key files, in any thread. 0; a negative errno: *reterr says why, and
 * there is nothing to free. */
int front_config_read(struct front_config *front, const struct config *config,
                      struct failure *reterr);
/* Replaces what is in use by another, whose settings are those of `config` by now. */
void front_config_replace_take(struct front_config *front, struct front_config *next,
                               const struct config *config);
/* Logs warnings about weak keys. */
void front_config_warn(const struct front_config *front);
void front_config_done(struct front_config *front);
