/* fuzz_token.c - is every token, correctly signed or not, parsed or refused safely?
 *
 * The input is tried as a token; then, cut at its first newline, as header and claims of a
 * correctly signed one. */
#include "fuzz/fuzz.h"

#include <string.h>

#include "base/alloc.h"
#include "fuzz/front.h"

#define NOW_MS UINT64_C(1800000000000)

static struct token_policy *policy;

/* Checks a copy in memory of exactly its size. */
static enum token_fault check(struct sl_slice jwt)
{
    char *copy = mem_copy(jwt.data, jwt.size);
    struct token token;
    enum token_fault fault = token_check(policy, sl_slice(copy, jwt.size), NOW_MS, &token);

    must(fault < TOKEN_FAULT_COUNT);
    if (fault == TOKEN_OK) {
        must(jwt.size <= TOKEN_MAX_BYTES);
        must(memchr(token.subject, '\0', sizeof(token.subject)) != NULL);
        must(token.expires_ms > NOW_MS);
        must(token.limits.sample_ppm <= 1000000);
    }
    mem_free(copy);
    return fault;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sl_slice input = sl_slice((const char *)data, size);
    const char *newline = size > 0 ? memchr(input.data, '\n', size) : NULL;
    size_t header_size = newline ? (size_t)(newline - input.data) : size;
    struct buffer jwt = BUFFER_INIT;

    if (!policy)
        policy = front_policy(
            (struct token_policy_settings){.issuer = "issuer", .audience = "audience"});
    must(check(input) != TOKEN_OK);
    front_sign(sl_slice(input.data, header_size),
               sl_slice_from(input, header_size + (newline ? 1 : 0)), &jwt);
    check(buffer_slice(&jwt));
    buffer_done(&jwt);
    return 0;
}
