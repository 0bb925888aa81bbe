/* gateway/serve/front_config.h - what the settings say of who may come: tokens, origins, limits. */
#pragma once

#include "base/failure.h"
#include "gateway/config/config.h"
#include "gateway/front/key_source.h"
#include "gateway/front/origin.h"
#include "gateway/front/stream_request.h"
#include "gateway/http/client_address.h"

struct front_config {
    struct front_settings front;
    struct origin_policy origins; /* refers to the settings */
    struct client_trust trust;
    struct token_policy *policy;
    struct key_sources sources; /* of keys that are fetched */
    bool lacks_audience;        /* though keys of the options are */
    struct metrics *metrics; /* set before it is read */
};

/* Reads the keys' files, too; again when the settings have changed. 0; a negative errno and why:
 * then the keys are those of before. */
int front_config_read(struct front_config *front, const struct config *config,
                      struct failure *reterr);
/* Says in the log which keys are weak. */
void front_config_warn(const struct front_config *front);
void front_config_done(struct front_config *front);
