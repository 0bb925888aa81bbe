/* gateway/front/key_source.h - where an identity provider publishes its keys, and where they lie
 * here.
 *
 * A source is the URL of a JWK set, or an issuer whose discovery document names one. A process of
 * its own fetches it (gateway/process/fetch_process.h) into a file, which workers read as any JWK
 * set of that issuer. Both find the file by what the source is, so that the keys of one issuer
 * never lie where those of another are looked for. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/failure.h"
#include "base/slice.h"

enum { KEY_SOURCES_MAX = 64, KEY_URL_MAX_BYTES = 2048 };

struct key_source {
    char *issuer;
    char *url;   /* NULL: discovery says */
    char *path;  /* of the last good set: FOLDER/jwks-HASH.json */
    uint64_t id; /* of issuer and url; never 0 */
};

struct key_sources {
    unsigned count;
    struct key_source items[KEY_SOURCES_MAX];
};

/* https, or http on loopback; no user, no fragment, and nothing but what RFC 3986 has in an URL. 0;
 * -EINVAL: *reterr says what is wrong. */
int key_url_check(struct sl_slice url, struct failure *reterr);
/* Of one that is good: http, so that nobody but this machine answers; any that this machine answers. */
bool key_url_is_plain(struct sl_slice url);
bool key_url_is_loopback(struct sl_slice url);

/* Whether the issuer alone says where its keys are: a good URL without a query. */
bool key_issuer_has_discovery(struct sl_slice issuer);
/* Where: OpenID Connect Discovery 1.0, section 4. */
void key_discovery_url(const char *issuer, struct buffer *ret_url);

/* `url` NULL: discovery. One that is there already changes nothing. 0; -ENOSPC, -ENOMEM: *reterr
 * says so. */
int key_sources_add(struct key_sources *sources, const char *folder, const char *issuer,
                    const char *url, struct failure *reterr);
void key_sources_done(struct key_sources *sources);
