/* gateway/provider/discovery.h - an OpenID discovery document -> where the keys are. */
#pragma once

#include "base/failure.h"
#include "base/slice.h"
#include "gateway/provider/fetch_result.h"

/* The document must be of the very issuer that was asked, to the letter, and its jwks_uri an URL
 * that key_url_check() takes; an issuer behind https cannot send us to a port of this machine.
 * FETCH_GOOD: *ret_url is to be freed by mem_free(); else *reterr says why. No memory is
 * FETCH_NOT_WRITTEN. */
enum fetch_result discovery_read(struct sl_slice document, const char *issuer, char **ret_url,
                                 struct failure *reterr);
