/* gateway/config/config_keys.h - which key sets do the settings want fetched, and where do they
 * lie? */
#pragma once

#include "base/failure.h"
#include "gateway/config/config.h"
#include "gateway/front/key_source.h"

/* Those of jwks-url; of jwt-issuer alone, where it is an URL and there is no other key, what its
 * discovery names; those of issuers-file, which is read. The data directory is not made. 0; a
 * negative errno: *reterr names the setting; key_sources_done() either way. */
int config_key_sources(const struct config *config, struct key_sources *sources,
                       struct failure *reterr);
