/* fuzz_keys.c - is every key set and every list of issuers parsed or refused safely?
 *
 * The input is tried as a JSON Web Key Set, and as an issuers-file; accepted ones must keep the
 * promises in the headers. */
#include "fuzz/fuzz.h"

#include <string.h>

#include "base/alloc.h"
#include "gateway/front/issuers.h"
#include "gateway/front/jwk_set.h"
#include "gateway/front/key_source.h"

enum { THUMBPRINT_BYTES = 43 };

static void check_key(const struct token_key *key)
{
    struct buffer signature = BUFFER_INIT;
    unsigned taken = 0;

    must(token_key_name(key)[0] != '\0');
    must(strlen(token_key_thumbprint(key)) == THUMBPRINT_BYTES);
    must(token_key_is_called(key, sl_slice_str(token_key_thumbprint(key))));
    for (int i = 0; i < TOKEN_ALGORITHM_COUNT; i++) {
        enum token_algorithm algorithm = (enum token_algorithm)i;

        if (!token_key_takes(key, algorithm))
            continue;
        taken++;
        must(token_algorithm_kind(algorithm) != TOKEN_KEY_SECRET);
        for (size_t size = 0; size <= 1024; size = size < 64 ? 64 : size * 2) {
            memset(buffer_reserve(&signature, size), 0x55, size);
            signature.size = size;
            must(token_key_verify(key, algorithm, SL_SLICE("a.b"), buffer_slice(&signature)) < 0);
            buffer_clear(&signature);
        }
    }
    must(taken > 0);
    buffer_done(&signature);
}

static void check_set(struct sl_slice json)
{
    struct jwk_set *set = NULL;
    struct failure failure = {""};

    if (jwk_set_parse(json, &set, &failure) < 0) {
        must(!set && failure.text[0] != '\0');
        return;
    }
    must(jwk_set_count(set) >= 1);
    must(jwk_set_count(set) + jwk_set_skipped(set) <= JWK_SET_MAX_KEYS);
    must(!jwk_set_skipped_why(set) == (jwk_set_skipped(set) == 0));
    for (unsigned i = 0; i < jwk_set_count(set); i++)
        check_key(jwk_set_key(set, i));
    jwk_set_free(set);
}

static void check_issuer(const struct issuer_settings *issuer)
{
    must(issuer->name && issuer->name[0] != '\0');
    must(issuer->audiences.count >= 1 && issuer->audiences.count <= ISSUER_TEXTS_MAX);
    must(issuer->public_keys.count > 0 || issuer->jwks_files.count > 0 ||
         issuer_is_fetched(issuer));
    must(!issuer->jwks_url || key_url_check(sl_slice_str(issuer->jwks_url), NULL) == 0);
    must((issuer->algorithms & token_algorithms_of(TOKEN_KEY_SECRET)) == 0);
    must(issuer->claims.leeway_s <= 600);
    for (unsigned i = 0; i < issuer->jwks_files.count; i++)
        must(issuer->jwks_files.items[i][0] == '/');
}

/* Claims that have the members which the rules may refer to. */
static void read_claims(const struct issuer_settings *issuer)
{
    json_t *claims = json_loads("{\"sub\":7,\"exp\":2e9,\"scope\":[\"read x\"],\"scp\":\"admin\","
                                "\"roles\":[\"a\",\"b c\"],\"a\":{\"b\":\"c\",\"roles\":\"a\"}}",
                                0, NULL);
    struct token token = {.subject = ""};
    enum token_fault fault = claims_read(&issuer->claims, claims, 1000, &token);

    must(fault == TOKEN_OK || fault == TOKEN_BAD_CLAIMS);
    must((token.scopes & ~issuer->claims.allowed_scopes) == 0);
    must(memchr(token.subject, '\0', sizeof(token.subject)) != NULL);
    json_decref(claims);
}

static void check_issuers(struct sl_slice json)
{
    struct issuer_list *list = NULL;
    struct failure failure = {""};

    if (issuers_parse(json, &list, &failure) < 0) {
        must(!list && failure.text[0] != '\0');
        return;
    }
    must(list->count <= ISSUERS_MAX);
    for (unsigned i = 0; i < list->count; i++) {
        check_issuer(&list->items[i]);
        read_claims(&list->items[i]);
        for (unsigned j = 0; j < i; j++)
            must(strcmp(list->items[i].name, list->items[j].name) != 0);
    }
    issuers_free(list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *copy = mem_copy(data, size); /* has no byte after it */

    check_set(sl_slice(copy, size));
    check_issuers(sl_slice(copy, size));
    mem_free(copy);
    return 0;
}
