/* gateway/front/token.h - checks a JWT: subject, permissions, times.
 *
 * The checks are made in this order, cheap ones first: at most 8 kB; three parts of strict
 * base64url; header and claims without repeated members, the header without `crit`; a key of the
 * issuer that the token names, found by `kid` or as the only one for `alg`, that supports `alg`;
 * the signature; types of the claims; times, issuer, audience; revocations. A token that was
 * recently valid is recognized by its hash (token_memory.h): then only revocations are checked
 * again.
 *
 * `exp` is required, so that every token ends. `iss` and `aud` are checked if they are configured,
 * unknown scopes are ignored, and `lim` must not contain unknown members, because they would not be
 * enforced. The details are in docs/auth.md. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/failure.h"
#include "base/slice.h"
#include "filters/filter.h"
#include "gateway/front/token_name.h"
#include "gateway/front/use_limits.h"

enum { TOKEN_MAX_BYTES = 8192, TOKEN_SUBJECT_SIZE = 65, TOKEN_LEEWAY_S = 60 };

enum token_scope {
    TOKEN_SCOPE_FILTER = 1 << 0,   /* stream:filter */
    TOKEN_SCOPE_SAMPLE = 1 << 1,   /* stream:sample */
    TOKEN_SCOPE_FIREHOSE = 1 << 2, /* stream:firehose */
    TOKEN_SCOPE_HOME = 1 << 3,     /* stream:home */
    TOKEN_SCOPE_READ = 1 << 4,     /* read */
    TOKEN_SCOPE_WRITE = 1 << 5,    /* write */
    TOKEN_SCOPE_ADMIN = 1 << 6     /* admin */
};

struct token {
    char subject[TOKEN_SUBJECT_SIZE]; /* sub; empty: none */
    char holder[TOKEN_SUBJECT_SIZE]; /* identifies the token's owner for limits: its sub, or without
                                        one the token itself */
    unsigned scopes;                 /* enum token_scope, OR-ed */
    uint64_t issued_ms;              /* iat, Unix time; 0: the token does not say */
    uint64_t begins_ms, expires_ms;  /* Unix times, leeway included; it begins at 0 without nbf */
    char jti[TOKEN_NAME_SIZE];       /* by token_name(); empty: none */
    char kid[TOKEN_NAME_SIZE];       /* by token_name(): the key that verified it */
    uint64_t key_number;             /* token_key_number() of that key; 0: not known, because a
                                        gateway that does not tell it has checked the token */
    char issuer[TOKEN_NAME_SIZE];    /* by token_name(): whose keys these are; empty: any's */
    struct sl_filter_limits limits;  /* the defaults, narrowed or widened by the claim `lim` */
    uint64_t uses[USE_COUNT];        /* the same of how much it may use, plus one; 0: not said */
    const char *bad_claim;           /* with TOKEN_BAD_CLAIMS: which, for humans; static */
};

/* The reasons for refusing a token. Clients are told those from TOKEN_EXPIRED on, which are found
 * after the signature was verified. */
enum token_fault {
    TOKEN_OK,
    TOKEN_MALFORMED,
    TOKEN_CRITICAL_HEADER, /* has `crit` */
    TOKEN_WRONG_ALGORITHM,
    TOKEN_UNKNOWN_KEY,
    TOKEN_NO_KEYS_YET, /* unknown key, but a set of its issuer was never received */
    TOKEN_BAD_SIGNATURE,
    TOKEN_EXPIRED,
    TOKEN_NOT_YET_VALID,
    TOKEN_WRONG_ISSUER,
    TOKEN_WRONG_AUDIENCE,
    TOKEN_BAD_CLAIMS,
    TOKEN_REVOKED, /* valid, but revoked */
    TOKEN_FAULT_COUNT,
    TOKEN_NO_MEMORY = TOKEN_FAULT_COUNT /* not a fault of the token */
};

struct token_policy;
struct key_set_file;
struct key_sources;
struct metrics;

struct token_policy_settings {
    const char *secret_file;             /* for HS256, 384, 512; NULL: none */
    const char *const *public_key_files; /* PEM files */
    const char *const *jwks_files;       /* JSON Web Key Sets (jwk_set.h) */
    unsigned public_key_count, jwks_file_count;
    const char *issuer;                /* for these keys; NULL or empty: not checked */
    const char *audience;              /* for these keys; NULL or empty: not checked */
    const char *subject_claim;         /* of its tokens; NULL or empty: sub */
    const char *issuers_file;          /* further issuers (issuers.h); NULL: none */
    const struct key_sources *sources; /* fetched sets, of all issuers; NULL: none */
    bool allows_bad_sets;              /* a set may have become invalid: the others continue */
    unsigned remembered_tokens;        /* number of valid tokens to remember; 0: none */
    struct metrics *metrics;           /* NULL: no counting */
};

/* Reads the key files. 0; negative errno: *reterr names the file and what is wrong. It is valid to
 * have no key: then every token is refused. */
int token_policy_new(const struct token_policy_settings *settings, struct token_policy **ret_policy,
                     struct failure *reterr);
void token_policy_free(struct token_policy *policy);

/* The n-th warning, from 0, for operators about the keys (a secret that others can read, or that is
 * short; no key at all); NULL: no more. */
const char *token_policy_warning(const struct token_policy *policy, unsigned n);

/* The n-th set file, from 0, over all issuers; NULL: no more. After key_set_file_reread()
 * (issuer_keys.h) has changed one, call token_policy_forget(). */
struct key_set_file *token_policy_file(struct token_policy *policy, unsigned n);

/* The n-th key, from 0, over all issuers, by the names that tokens use for it. */
struct token_key_id {
    char issuer[TOKEN_NAME_SIZE], kid[TOKEN_NAME_SIZE];
    uint64_t number; /* token_key_number() */
};
bool token_policy_key(const struct token_policy *policy, unsigned n, struct token_key_id *ret_id);

/* Called when a token names a key that its issuer does not have, or not yet. `issuer` has a
 * name. */
typedef void (*token_unknown_key_fn)(void *context, const char *issuer);
void token_policy_set_unknown_key(struct token_policy *policy, token_unknown_key_fn tell,
                                  void *context);

/* Every token is verified again: keys or revocations have changed. */
void token_policy_forget(const struct token_policy *policy);

/* Returns true if the token was revoked. */
typedef bool (*token_revoked_fn)(void *context, const struct token *token, uint64_t now_ms);
void token_policy_set_revoked(struct token_policy *policy, token_revoked_fn is_revoked,
                              void *context);
/* The same for a token that was valid when it was presented. Also false if unknown. */
bool token_is_revoked(const struct token_policy *policy, const struct token *token,
                      uint64_t now_ms);

/* TOKEN_OK fills *ret_token, TOKEN_BAD_CLAIMS its `bad_claim`, every fault after the signature its
 * issuer and kid. `now_ms`: Unix time. */
enum token_fault token_check(const struct token_policy *policy, struct sl_slice jwt,
                             uint64_t now_ms, struct token *ret_token);

/* Whether the key that verified this token, perhaps on another gateway, is one of the policy's:
 * TOKEN_OK, TOKEN_UNKNOWN_KEY or TOKEN_NO_KEYS_YET. */
enum token_fault token_check_key(const struct token_policy *policy, const struct token *token);

/* Checks only the form, header, key and signature, with any content: for test vectors, which have
 * no claims. */
enum token_fault token_check_signature(const struct token_policy *policy, struct sl_slice jws);

const char *token_fault_name(enum token_fault fault); /* "expired", ... */
