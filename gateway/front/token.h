/* gateway/front/token.h - a JWT -> who asks, what they may do, until when.
 *
 * Our own policy runs before cryptography (cjose, keys parsed once and held): at most 8 kB, three
 * parts of strict base64url, header and claims without repeated members, `alg` equal to the one
 * pinned for the key that `kid` chooses, no `crit`; then the signature, then the times. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/failure.h"
#include "base/slice.h"
#include "filters/filter.h"

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
    unsigned scopes;                  /* enum token_scope, OR-ed */
    uint64_t expires_ms;              /* Unix time, leeway included; 0: never */
    struct sl_filter_limits limits;   /* the defaults, narrowed or widened by the claim `lim` */
};

/* What a token was refused for: for log and metrics, never for the client. */
enum token_fault {
    TOKEN_OK,
    TOKEN_MALFORMED,
    TOKEN_WRONG_ALGORITHM,
    TOKEN_UNKNOWN_KEY,
    TOKEN_BAD_SIGNATURE,
    TOKEN_EXPIRED,
    TOKEN_NOT_YET_VALID,
    TOKEN_WRONG_ISSUER,
    TOKEN_WRONG_AUDIENCE,
    TOKEN_BAD_CLAIMS,
    TOKEN_FAULT_COUNT
};

struct token_policy_settings {
    const char *secret_file;       /* HS256, 384, 512; NULL: none */
    const char *const *public_key_files; /* PEM, RS256 or ES256 by the key's type */
    unsigned public_key_count;
    const char *issuer;            /* NULL or empty: not checked */
    const char *audience;          /* NULL or empty: not checked */
};

struct token_policy;

/* Reads the key files. 0; negative errno: *reterr names the file and what is wrong with it. No
 * key at all is allowed: then every token is refused. */
int token_policy_new(const struct token_policy_settings *settings,
                     struct token_policy **ret_policy, struct failure *reterr);
void token_policy_free(struct token_policy *policy);

/* TOKEN_OK fills *ret_token. `now_ms`: Unix time. */
enum token_fault token_check(const struct token_policy *policy, struct sl_slice jwt,
                             uint64_t now_ms, struct token *ret_token);

const char *token_fault_name(enum token_fault fault); /* "expired", ... */
