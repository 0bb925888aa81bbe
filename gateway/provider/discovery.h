/* gateway/provider/discovery.h - finds the URL of the key set in an OpenID discovery document. */
#pragma once

#include "base/failure.h"
#include "base/slice.h"
#include "gateway/provider/fetch_result.h"

/* The document must name exactly the issuer that was asked, and its jwks_uri must be a URL that
 * key_url_check() accepts; with an issuer behind https it cannot be a port of this machine.
 * FETCH_GOOD: free *ret_url with mem_free(); else *reterr says why. Out of memory is
 * FETCH_NOT_WRITTEN. */
enum fetch_result discovery_read(struct sl_slice document, const char *issuer, char **ret_url,
                                 struct failure *reterr);
