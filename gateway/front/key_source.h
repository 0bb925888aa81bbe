/* gateway/front/key_source.h - the key sources of identity providers, and the files in which their
 * keys are stored.
 *
 * A source is the URL of a JWK set, or an issuer whose discovery document names one. A separate
 * process (gateway/process/key_process.h) fetches it into a file, which workers read like any JWK
 * set of that issuer. Both derive the file's name from the source, so that the keys of one issuer
 * are never looked for in the file of another. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/failure.h"
#include "base/slice.h"

enum { KEY_SOURCES_MAX = 64, KEY_URL_MAX_BYTES = 2048 };

struct key_source {
    char *issuer;
    char *url;   /* NULL: by discovery */
    char *path;  /* of the last valid set: FOLDER/jwks-HASH.json */
    uint64_t id; /* of issuer and url; never 0 */
};

struct key_sources {
    unsigned count;
    struct key_source items[KEY_SOURCES_MAX];
};

/* https, or http on loopback; no user, no fragment, and only what RFC 3986 allows in a URL. 0;
 * -EINVAL: *reterr says what is wrong. */
int key_url_check(struct sl_slice url, struct failure *reterr);
/* For a valid URL: whether it is http, which is allowed on this machine only; and whether its host
 * is this machine. */
bool key_url_is_plain(struct sl_slice url);
bool key_url_is_loopback(struct sl_slice url);

/* Whether the issuer alone determines where its keys are: a valid URL without a query. */
bool key_issuer_has_discovery(struct sl_slice issuer);
/* Where to find them: OpenID Connect Discovery 1.0, section 4. */
void key_discovery_url(const char *issuer, struct buffer *ret_url);

/* `url` NULL: discovery. Adding an existing one changes nothing. 0; -ENOSPC, -ENOMEM: *reterr says
 * so. */
int key_sources_add(struct key_sources *sources, const char *folder, const char *issuer,
                    const char *url, struct failure *reterr);
void key_sources_done(struct key_sources *sources);
