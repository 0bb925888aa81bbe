/* bench/tokens.c - what does it cost to check a token, by signature algorithm, and to count the
 * request?
 *
 *     tokens [-n CHECKS] [-r ROUNDS]
 *
 * A token of usual size for each algorithm, checked CHECKS times in each of ROUNDS rounds, once
 * with its signature each time and once remembered: the median over the rounds, in microseconds of
 * CPU. This includes everything that a handshake does with its token, from the text to the claims,
 * and nothing else. Then an API request is counted as often for its address and its subject,
 * including both headers of its answer. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <openssl/hmac.h>

#include "base/base64url.h"
#include "bench/measure.h"
#include "gateway/front/token.h"
#include "gateway/front/use_check.h"
#include "tests/support/jwt.h"

#define SECRET "a secret of more than thirty-two bytes, for each of the hashes"

enum { MAX_ROUNDS = 101 };

static const struct kind {
    const char *alg, *key;
} kinds[] = {
    {"HS256", NULL},    {"HS384", NULL},    {"HS512", NULL},    {"EdDSA", "ED25519"},
    {"ES256", "P-256"}, {"ES384", "P-384"}, {"ES512", "P-521"}, {"RS256", "RSA"},
    {"RS384", "RSA"},   {"RS512", "RSA"},   {"PS256", "RSA"},   {"PS384", "RSA"},
    {"PS512", "RSA"},
};

static char folder[] = "/tmp/sluice-bench-tokens-XXXXXX";

static void write_file(char path[static 100], const char *name, const char *text)
{
    FILE *file;

    snprintf(path, 100, "%s/%s", folder, name);
    file = fopen(path, "w");
    if (!file || fputs(text, file) < 0 || fclose(file) != 0)
        measure_fail(path, NULL);
}

/* The key of the set, or the secret. */
static struct token_policy *policy_of(EVP_PKEY *key, unsigned remembered_tokens)
{
    struct token_policy_settings settings = {.remembered_tokens = remembered_tokens};
    struct token_policy *policy = NULL;
    struct buffer set = BUFFER_INIT;
    struct failure failure;
    char path[100];
    const char *paths[] = {path};

    if (key) {
        buffer_append_str(&set, "{\"keys\":[");
        jwt_append_jwk(&set, key, ",\"kid\":\"2026-11\"");
        buffer_append_str(&set, "]}");
        write_file(path, "set.json", buffer_str(&set));
        settings.jwks_files = paths;
        settings.jwks_file_count = 1;
    } else {
        write_file(path, "2026-11.secret", SECRET);
        settings.secret_file = path;
    }
    if (token_policy_new(&settings, &policy, &failure) < 0)
        measure_fail("policy", failure.text);
    buffer_done(&set);
    unlink(path);
    return policy;
}

static void sign_by_secret(struct buffer *jwt, const char *header, const char *claims,
                           const char *alg)
{
    const EVP_MD *digest = alg[2] == '2'   ? EVP_sha256()
                           : alg[2] == '3' ? EVP_sha384()
                                           : EVP_sha512();
    unsigned char mac[EVP_MAX_MD_SIZE];
    unsigned size;

    base64url_encode(sl_slice_str(header), jwt);
    buffer_append_char(jwt, '.');
    base64url_encode(sl_slice_str(claims), jwt);
    HMAC(digest, SECRET, strlen(SECRET), (unsigned char *)jwt->data, jwt->size, mac, &size);
    buffer_append_char(jwt, '.');
    base64url_encode(sl_slice((char *)mac, size), jwt);
}

static void make_token(const struct kind *kind, EVP_PKEY *key, uint64_t now_ms, struct buffer *jwt)
{
    char header[100], claims[400];

    snprintf(header, sizeof(header), "{\"alg\":\"%s\",\"typ\":\"JWT\",\"kid\":\"2026-11\"}",
             kind->alg);
    snprintf(claims, sizeof(claims),
             "{\"iss\":\"https://id.example.org\",\"aud\":\"sluice\",\"sub\":\"114871006736384\","
             "\"scope\":\"stream:filter stream:home read write\",\"iat\":%llu,\"exp\":%llu,"
             "\"jti\":\"3f0c2a7e-6f3b-4f0e-9a55-0d6c5c1e8b42\"}",
             (unsigned long long)now_ms / 1000, (unsigned long long)now_ms / 1000 + 3600);
    if (key)
        jwt_sign(jwt, header, claims, key, kind->alg);
    else
        sign_by_secret(jwt, header, claims, kind->alg);
}

/* Returns microseconds per check. */
static double measure_round(const struct token_policy *policy, struct sl_slice jwt, uint64_t now_ms,
                            unsigned checks)
{
    double begin = measure_cpu_us();
    struct token token;

    for (unsigned i = 0; i < checks; i++) {
        if (token_check(policy, jwt, now_ms, &token) != TOKEN_OK)
            measure_fail("token", "is refused");
    }
    return (measure_cpu_us() - begin) / checks;
}

static double measure_rounds(EVP_PKEY *key, unsigned remembered, struct sl_slice jwt,
                             uint64_t now_ms, unsigned checks, unsigned rounds)
{
    struct token_policy *policy = policy_of(key, remembered);
    double values[MAX_ROUNDS];

    for (unsigned i = 0; i < rounds; i++)
        values[i] = measure_round(policy, jwt, now_ms, checks);
    token_policy_free(policy);
    return measure_share(values, rounds, 0.5);
}

static void measure_kind(const struct kind *kind, unsigned checks, unsigned rounds)
{
    EVP_PKEY *key = kind->key ? jwt_key_new(kind->key) : NULL;
    uint64_t now_ms = (uint64_t)time(NULL) * 1000;
    struct buffer jwt = BUFFER_INIT;
    double each, again;

    make_token(kind, key, now_ms, &jwt);
    each = measure_rounds(key, 0, buffer_slice(&jwt), now_ms, checks, rounds);
    again = measure_rounds(key, 1024, buffer_slice(&jwt), now_ms, checks, rounds);
    printf("| %s | %zu | %.1f | %.1f |\n", kind->alg, jwt.size, each, again);
    buffer_done(&jwt);
    EVP_PKEY_free(key);
}

/* Limits that are set but not reached. */
static struct use_limits limits_of_requests(void)
{
    struct use_limits limits;

    for (int i = 0; i < USE_COUNT; i++)
        limits.of[i] = USE_UNBOUNDED;
    limits.of[USE_REQUESTS] = 1000000000;
    return limits;
}

/* Returns microseconds per request. */
static double count_round(struct use_check *check, unsigned checks)
{
    const struct token token = {.holder = "114871006736384"};
    double begin = measure_cpu_us();
    struct http_refusal refusal;

    for (unsigned i = 0; i < checks; i++) {
        buffer_clear(check->headers);
        if (use_check_address(check, &refusal) < 0 ||
            use_check_subject(check, &token, &refusal) < 0)
            measure_fail("request", "is refused");
    }
    return (measure_cpu_us() - begin) / checks;
}

static void measure_counting(unsigned checks, unsigned rounds)
{
    const struct use_limits limits = limits_of_requests();
    struct buffer headers = BUFFER_INIT;
    struct use_check check = {
        .uses = fair_use_new(10000),
        .of_subject = &limits,
        .of_address = &limits,
        .asks = USE_ASKS_REQUEST,
        .address = SL_SLICE("\x7f\0\0\2"),
        .times = {.now_ms = 1000000, .wall_ms = (uint64_t)time(NULL) * 1000},
        .headers = &headers,
    };
    double values[MAX_ROUNDS];

    if (!check.uses)
        measure_fail("accounts", "out of memory");
    for (unsigned i = 0; i < rounds; i++)
        values[i] = count_round(&check, checks);
    if (!headers.data || !memmem(headers.data, headers.size, "RateLimit: ", 11))
        measure_fail("request", "has no headers");
    printf("\ncounting and checking a request: %.2f us\n", measure_share(values, rounds, 0.5));
    fair_use_free(check.uses);
    buffer_done(&headers);
}

int main(int argc, char **argv)
{
    unsigned checks = 2000, rounds = 11;
    int option;

    while ((option = getopt(argc, argv, "n:r:")) >= 0) {
        if (option == 'n')
            checks = (unsigned)atoi(optarg);
        else if (option == 'r')
            rounds = (unsigned)atoi(optarg);
    }
    if (optind < argc || checks == 0 || rounds == 0 || rounds > MAX_ROUNDS || !mkdtemp(folder))
        measure_fail("usage", "tokens [-n CHECKS] [-r ROUNDS]");
    printf("| algorithm | bytes | us by signature | us remembered |\n|---|---|---|---|\n");
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        measure_kind(&kinds[i], checks, rounds);
    measure_counting(checks, rounds);
    rmdir(folder);
    return EXIT_SUCCESS;
}
