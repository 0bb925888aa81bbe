/* gateway/config/config_keys.h - which key sets are fetched, and where they are stored. */
#pragma once

#include "base/failure.h"
#include "gateway/config/config.h"
#include "gateway/front/key_source.h"

/* The sets of jwks-url; that of jwt-issuer by discovery, if it is a URL and there is no other key;
 * and those of issuers-file, which is read. The data directory is not created. 0; a negative errno:
 * *reterr names the setting. Call key_sources_done() in any case. */
int config_key_sources(const struct config *config, struct key_sources *sources,
                       struct failure *reterr);
