/* token_policy.c - the issuers of accepted tokens: that of the options, and those of the file.
 *
 * The first issuer is that of the options: its keys are the secret, the public keys and the sets
 * named there, and its name is jwt-issuer, which may be unset. The others have names, by which
 * tokens refer to them. */
#include "gateway/front/token.h"

#include <errno.h>
#include <stdio.h>

#include "base/alloc.h"
#include "gateway/front/token_policy_parts.h"

void token_policy_free(struct token_policy *policy)
{
    if (!policy)
        return;
    for (unsigned i = 0; policy->issuers && i < policy->issuer_count; i++)
        issuer_keys_done(&policy->issuers[i]);
    mem_free(policy->issuers);
    token_memory_free(policy->memory);
    issuers_free(policy->list);
    mem_free(policy->name);
    mem_free(policy->audience);
    mem_free(policy->subject_claim);
    mem_free(policy);
}

static int copy_text(const char *text, char **ret_copy)
{
    if (!text || !*text)
        return 0;
    *ret_copy = mem_strndup(text, strlen(text));
    return *ret_copy ? 0 : -ENOMEM;
}

static int read_own_keys(struct issuer_keys *issuer, const struct token_policy_settings *settings,
                         struct failure *reterr)
{
    int r = 0;

    if (settings->secret_file)
        r = issuer_keys_add_secret(issuer, settings->secret_file, reterr);
    for (unsigned i = 0; r == 0 && i < settings->public_key_count; i++)
        r = issuer_keys_add_public(issuer, settings->public_key_files[i], reterr);
    for (unsigned i = 0; r == 0 && i < settings->jwks_file_count; i++)
        r = issuer_keys_add_set(issuer, settings->jwks_files[i], reterr);
    return r == 0 ? issuer_keys_check_names(issuer, reterr) : r;
}

/* Adds the issuer of the options. */
static int add_own(struct token_policy *policy, const struct token_policy_settings *settings,
                   struct failure *reterr)
{
    struct issuer_keys *issuer = &policy->issuers[policy->issuer_count++];
    int r;

    r = copy_text(settings->issuer, &policy->name);
    if (r == 0)
        r = copy_text(settings->audience, &policy->audience);
    if (r == 0)
        r = copy_text(settings->subject_claim, &policy->subject_claim);
    policy->own = (struct issuer_settings){
        .name = policy->name,
        .audiences = {{policy->audience}, policy->audience ? 1 : 0},
        .algorithms = ~0U,
        .claims = CLAIM_RULES_OWN,
    };
    policy->own.claims.subject =
        (struct claim_path){{policy->subject_claim}, policy->subject_claim ? 1 : 0};
    if (r == 0)
        r = issuer_keys_init(issuer, &policy->own, settings->public_key_count + 1,
                             settings->jwks_file_count, settings->sources,
                             settings->allows_bad_sets, reterr);
    return r == 0 ? read_own_keys(issuer, settings, reterr) : r;
}

static int add_others(struct token_policy *policy, const struct token_policy_settings *settings,
                      struct failure *reterr)
{
    int r = 0;

    for (unsigned i = 0; r == 0 && policy->list && i < policy->list->count; i++) {
        const struct issuer_settings *other = &policy->list->items[i];
        struct issuer_keys *issuer = &policy->issuers[policy->issuer_count++];

        if (policy->name && strcmp(policy->name, other->name) == 0)
            return failure_set(reterr, -EEXIST, "'%s': [%u].issuer: jwt-issuer has this name",
                               settings->issuers_file, i);
        r = issuer_keys_init(issuer, other, 0, 0, settings->sources, settings->allows_bad_sets,
                             reterr);
        if (r == 0)
            r = issuer_keys_check_names(issuer, reterr);
    }
    return r;
}

static int fill(struct token_policy *policy, const struct token_policy_settings *settings,
                struct failure *reterr)
{
    size_t others;
    int r = 0;

    policy->metrics = settings->metrics;
    policy->memory = token_memory_new(settings->remembered_tokens);
    if (!policy->memory)
        return -ENOMEM;
    if (settings->issuers_file)
        r = issuers_read(settings->issuers_file, &policy->list, reterr);
    if (r < 0)
        return r;
    others = policy->list ? policy->list->count : 0;
    policy->issuers = mem_zalloc(mem_array_size(others + 1, sizeof(policy->issuers[0])));
    if (!policy->issuers)
        return -ENOMEM;
    r = add_own(policy, settings, reterr);
    return r == 0 ? add_others(policy, settings, reterr) : r;
}

int token_policy_new(const struct token_policy_settings *settings, struct token_policy **ret_policy,
                     struct failure *reterr)
{
    struct token_policy *policy = mem_zalloc(sizeof(*policy));
    int r;

    if (!policy)
        return failure_set(reterr, -ENOMEM, "out of memory");
    r = fill(policy, settings, reterr);
    if (r == 0) {
        *ret_policy = policy;
        return 0;
    }
    if (r == -ENOMEM)
        failure_set(reterr, r, "out of memory");
    token_policy_free(policy);
    return r;
}

/* --- warnings and names --- */

static bool has_keys(const struct token_policy *policy)
{
    for (unsigned i = 0; i < policy->issuer_count; i++) {
        const struct issuer_keys *issuer = &policy->issuers[i];

        if (issuer->key_count > 0 || issuer->file_count > 0 || issuer_is_fetched(issuer->settings))
            return true;
    }
    return false;
}

const char *token_policy_warning(const struct token_policy *policy, unsigned n)
{
    for (unsigned i = 0; i < policy->issuer_count; i++) {
        const struct issuer_keys *issuer = &policy->issuers[i];

        for (unsigned k = 0; k < issuer->key_count; k++) {
            const char *warning = token_key_warning(issuer->keys[k]);

            if (warning && n-- == 0)
                return warning;
        }
    }
    if (policy->issuers[0].file_count > 0 && !policy->audience && n-- == 0)
        return "key sets without jwt-audience: tokens that their owner signs for others are "
               "accepted, too";
    return !has_keys(policy) && n == 0 ? "no key is configured: every token will be refused" : NULL;
}

struct key_set_file *token_policy_file(struct token_policy *policy, unsigned n)
{
    for (unsigned i = 0; i < policy->issuer_count; i++) {
        if (n < policy->issuers[i].file_count)
            return &policy->issuers[i].files[n];
        n -= policy->issuers[i].file_count;
    }
    return NULL;
}

bool token_policy_key(const struct token_policy *policy, unsigned n, struct token_key_id *ret_id)
{
    for (unsigned i = 0; i < policy->issuer_count; i++) {
        const struct issuer_keys *issuer = &policy->issuers[i];
        unsigned count = issuer_keys_count(issuer);

        if (n < count) {
            memcpy(ret_id->issuer, issuer->name, sizeof(ret_id->issuer));
            token_name(sl_slice_str(token_key_name(issuer_keys_key(issuer, n))), ret_id->kid);
            ret_id->number = token_key_number(issuer_keys_key(issuer, n));
            return true;
        }
        n -= count;
    }
    return false;
}

void token_policy_forget(const struct token_policy *policy)
{
    token_memory_forget(policy->memory);
}

void token_policy_set_unknown_key(struct token_policy *policy, token_unknown_key_fn tell,
                                  void *context)
{
    policy->tell_unknown = tell;
    policy->unknown_context = context;
}

void token_policy_set_revoked(struct token_policy *policy, token_revoked_fn is_revoked,
                              void *context)
{
    policy->is_revoked = is_revoked;
    policy->revoked_context = context;
}

bool token_is_revoked(const struct token_policy *policy, const struct token *token, uint64_t now_ms)
{
    return policy->is_revoked && policy->is_revoked(policy->revoked_context, token, now_ms);
}
