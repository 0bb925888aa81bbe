/* gateway/front/token.h - a JWT -> who asks, what they may do, until when.
 *
 * In this order, each before anything that costs more: at most 8 kB; three parts of strict
 * base64url; header and claims without repeated members, the header without `crit`; a key of the
 * issuer that the token names, by `kid` or as the only one for `alg`, that is pinned to `alg`; the
 * signature; claims of the right types; times, issuer, audience; whether it was taken back. A token
 * that was good lately is known by its hash (token_memory.h): of that only the last is asked again.
 *
 * `exp` is required: a token that never ends cannot be taken back. `iss` and `aud` are looked at
 * when they are configured, unknown scopes are ignored, and `lim` may hold nothing we do not
 * know, for a limit that is not understood would not be kept. docs/auth.md is the long form. */
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
    char holder[TOKEN_SUBJECT_SIZE]; /* whom limits count it for: its sub; without one, the token */
    unsigned scopes;                 /* enum token_scope, OR-ed */
    uint64_t issued_ms;              /* iat, Unix time; 0: the token does not say */
    uint64_t begins_ms, expires_ms;  /* Unix times, leeway included; it begins at 0 without nbf */
    char jti[TOKEN_NAME_SIZE];       /* by token_name(); empty: none */
    char kid[TOKEN_NAME_SIZE];       /* by token_name(): the key that verified it */
    uint64_t key_number;             /* that key's; 0: not known, as it was checked elsewhere */
    char issuer[TOKEN_NAME_SIZE];    /* by token_name(): whose keys these are; empty: any's */
    struct sl_filter_limits limits;  /* the defaults, narrowed or widened by the claim `lim` */
    uint64_t uses[USE_COUNT];        /* the same of how much it may use, plus one; 0: not said */
    const char *bad_claim;           /* with TOKEN_BAD_CLAIMS: which, for humans; static */
};

/* What a token was refused for. A client is told from TOKEN_EXPIRED on, which come behind the
 * signature. */
enum token_fault {
    TOKEN_OK,
    TOKEN_MALFORMED,
    TOKEN_CRITICAL_HEADER, /* has `crit` */
    TOKEN_WRONG_ALGORITHM,
    TOKEN_UNKNOWN_KEY,
    TOKEN_NO_KEYS_YET, /* a key that its issuer may have: no set of it was fetched so far */
    TOKEN_BAD_SIGNATURE,
    TOKEN_EXPIRED,
    TOKEN_NOT_YET_VALID,
    TOKEN_WRONG_ISSUER,
    TOKEN_WRONG_AUDIENCE,
    TOKEN_BAD_CLAIMS,
    TOKEN_REVOKED, /* all that it says is right, and it was taken back */
    TOKEN_FAULT_COUNT,
    TOKEN_NO_MEMORY = TOKEN_FAULT_COUNT /* no fault of the token */
};

struct token_policy;
struct key_set_file;
struct key_sources;
struct metrics;

struct token_policy_settings {
    const char *secret_file;             /* HS256, 384, 512; NULL: none */
    const char *const *public_key_files; /* PEM */
    const char *const *jwks_files;       /* JSON Web Key Sets (jwk_set.h) */
    unsigned public_key_count, jwks_file_count;
    const char *issuer;                /* of these keys; NULL or empty: not checked */
    const char *audience;              /* the same */
    const char *issuers_file;          /* issuers beside that one (issuers.h); NULL: none */
    const struct key_sources *sources; /* sets that are fetched, of all of them; NULL: none */
    bool allows_bad_sets;       /* one that was good may be bad now: others go on meanwhile */
    unsigned remembered_tokens; /* good ones that are not verified again; 0: none */
    struct metrics *metrics;    /* NULL: nobody counts */
};

/* Reads the key files. 0; negative errno: *reterr names the file and what is wrong with it. No
 * key at all is allowed: then every token is refused. */
int token_policy_new(const struct token_policy_settings *settings, struct token_policy **ret_policy,
                     struct failure *reterr);
void token_policy_free(struct token_policy *policy);

/* The n-th thing, from 0, that whoever runs the server should hear about the keys (a secret that
 * others can read, or that is short; no key at all); NULL: no more. */
const char *token_policy_warning(const struct token_policy *policy, unsigned n);

/* The n-th file of a set, from 0, over all issuers; NULL: no more. What key_set_file_reread()
 * (issuer_keys.h) has changed counts at once, after token_policy_forget(). */
struct key_set_file *token_policy_file(struct token_policy *policy, unsigned n);

/* The n-th key, from 0, over all issuers, by the names that tokens have of it. */
struct token_key_id {
    char issuer[TOKEN_NAME_SIZE], kid[TOKEN_NAME_SIZE];
    uint64_t number; /* token_key_number() */
};
bool token_policy_key(const struct token_policy *policy, unsigned n, struct token_key_id *ret_id);

/* Who wants to know that a token names a key that its issuer has not, or has not yet. `issuer` is
 * of those that have names. */
typedef void (*token_unknown_key_fn)(void *context, const char *issuer);
void token_policy_set_unknown_key(struct token_policy *policy, token_unknown_key_fn tell,
                                  void *context);

/* Every token is verified once more: keys have changed, or something was taken back. */
void token_policy_forget(const struct token_policy *policy);

/* Who knows which tokens were taken back: true, if this one is good no more. */
typedef bool (*token_revoked_fn)(void *context, const struct token *token, uint64_t now_ms);
void token_policy_set_revoked(struct token_policy *policy, token_revoked_fn is_revoked,
                              void *context);
/* The same question, for a token that was good when it came. false, too: nobody knows. */
bool token_is_revoked(const struct token_policy *policy, const struct token *token,
                      uint64_t now_ms);

/* TOKEN_OK fills *ret_token, TOKEN_BAD_CLAIMS its `bad_claim`, every fault behind the signature its
 * issuer and kid. `now_ms`: Unix time. */
enum token_fault token_check(const struct token_policy *policy, struct sl_slice jwt,
                             uint64_t now_ms, struct token *ret_token);

/* Form, header, key and signature alone, whatever is signed: for test vectors, which have no
 * claims.
 */
enum token_fault token_check_signature(const struct token_policy *policy, struct sl_slice jws);

const char *token_fault_name(enum token_fault fault); /* "expired", ... */
