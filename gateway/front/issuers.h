/* gateway/front/issuers.h - who makes tokens: the file of issuers -> settings of each, checked.
 *
 * The file is JSON, a list of objects, one an issuer (docs/auth.md, "Several issuers"):
 *
 *     [{"issuer": "https://id.example.org", "audience": "sluice", "discovery": true,
 *       "subject_claim": "sluice_id", "roles_claim": ["realm_access", "roles"],
 *       "roles": {"listener": "stream:filter stream:sample"}, "leeway": 30}]
 *
 * Every member is known and of its type, or the file is refused with a sentence that names the
 * place, as in "[0].roles.listener: ...". No two issuers have one name. Each has an audience and at
 * least one way to its keys; these are not read here. */
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
    const char *name;                /* what `iss` is, to the letter; NULL: of jwt-issuer unset */
    struct issuer_texts audiences;   /* `aud` names one of them; none: not looked at */
    struct issuer_texts public_keys; /* files in PEM, absolute paths */
    struct issuer_texts jwks_files;  /* JSON Web Key Sets, absolute paths: watched */
    const char *jwks_url;            /* by key_url_check(); NULL: none */
    bool discovers;                  /* the URL is what NAME/.well-known/openid-configuration says;
                                        then `name` is such an URL, and jwks_url NULL */
    unsigned algorithms;             /* that its keys may be used for, a bit each */
    struct claim_rules claims;
};

struct issuer_list {
    json_t *json; /* what the texts are in */
    unsigned count;
    struct issuer_settings items[ISSUERS_MAX];
};

/* Empty lists are good. 0; -EINVAL, -E2BIG, -ENOMEM: *reterr says where and why. */
int issuers_parse(struct sl_slice json, struct issuer_list **ret_list, struct failure *reterr);
/* The same of a file, which *reterr names. */
int issuers_read(const char *path, struct issuer_list **ret_list, struct failure *reterr);
void issuers_free(struct issuer_list *list);

/* Do its keys come by URL? */
static inline bool issuer_is_fetched(const struct issuer_settings *issuer)
{
    return issuer->jwks_url || issuer->discovers;
}
