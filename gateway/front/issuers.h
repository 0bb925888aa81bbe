/* gateway/front/issuers.h - reads and checks the file of token issuers.
 *
 * The file is JSON, a list with an object for each issuer (docs/auth.md, "Several issuers"):
 *
 *     [{"issuer": "https://id.example.org", "audience": "sluice", "discovery": true,
 *       "subject_claim": "sluice_id", "roles_claim": ["realm_access", "roles"],
 *       "roles": {"listener": "stream:filter stream:sample"}, "leeway": 30}]
 *
 * A member that is unknown or has the wrong type makes the whole file invalid; the error names the
 * position, as in "[0].roles.listener: ...". Names of issuers are unique. Each has an audience and
 * at least one source of keys; the keys are not read here. */
#pragma once

#include "base/failure.h"
#include "base/slice.h"
#include "gateway/front/claims.h"

enum { ISSUERS_MAX = 64, ISSUERS_MAX_BYTES = 262144, ISSUER_TEXTS_MAX = 16 };

struct issuer_texts {
    const char *items[ISSUER_TEXTS_MAX];
    unsigned count;
};

/* Texts belong to the list of issuers. */
struct issuer_settings {
    const char *name;                /* compared exactly with `iss`; NULL: jwt-issuer is not set */
    struct issuer_texts audiences;   /* `aud` must contain one of them; none: not checked */
    struct issuer_texts public_keys; /* PEM files, absolute paths */
    struct issuer_texts jwks_files;  /* JSON Web Key Sets, absolute paths; reread when they
                                        change */
    const char *jwks_url;            /* checked by key_url_check(); NULL: none */
    bool discovers;                  /* the URL is found at NAME/.well-known/openid-configuration;
                                        then `name` is a valid URL, and jwks_url is NULL */
    unsigned algorithms;             /* allowed for its keys, as bits */
    struct claim_rules claims;
};

struct issuer_list {
    json_t *json; /* owns the texts */
    unsigned count;
    struct issuer_settings items[ISSUERS_MAX];
};

/* Empty lists are valid. 0; -EINVAL, -E2BIG, -ENOMEM: *reterr says where and why. */
int issuers_parse(struct sl_slice json, struct issuer_list **ret_list, struct failure *reterr);
/* The same for a file, which *reterr names. */
int issuers_read(const char *path, struct issuer_list **ret_list, struct failure *reterr);
void issuers_free(struct issuer_list *list);

/* Whether its keys are fetched from a URL. */
static inline bool issuer_is_fetched(const struct issuer_settings *issuer)
{
    return issuer->jwks_url || issuer->discovers;
}
