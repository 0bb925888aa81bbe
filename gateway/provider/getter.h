/* gateway/provider/getter.h - HTTP GET, restricted because the response decides which tokens are
 * accepted.
 *
 * Several requests run at the same time, in a process that does nothing else. libcurl is used with
 * verification of certificates, and without redirects, cookies, passwords and compression; time,
 * header and body are limited. Only a response with status 200 and a JSON content type is good.
 * https uses the proxy in the environment (https_proxy); loopback addresses never use one. */
#pragma once

#include <stdint.h>

#include "base/slice.h"
#include "gateway/front/jwk_set.h"
#include "gateway/provider/cache_age.h"
#include "gateway/provider/fetch_result.h"

enum { GETTER_MAX_BODY_BYTES = JWK_SET_MAX_BYTES, GETTER_MAX_HEAD_BYTES = 16384 };

struct get_answer {
    struct sl_slice body; /* for FETCH_GOOD */
    struct cache_age age;
    const char *why; /* otherwise; a sentence that may quote the other side */
};

typedef void (*get_done_fn)(void *owner, enum fetch_result result, const struct get_answer *answer);

struct getter;

/* `ca_file` NULL: trusts the system's authorities; else only those in it. NULL: out of memory. */
struct getter *getter_new(const char *ca_file, uint32_t timeout_ms);
/* Cancels requests in progress; their `done` is not called. */
void getter_free(struct getter *getter);

/* getter_run() will call `done`. 0; -ENOMEM. */
int getter_start(struct getter *getter, const char *url, get_done_fn done, void *owner);

/* Processes all requests; waits for the network, until one of `fds` (at most four) is readable, or
 * for `most_ms`. */
void getter_run(struct getter *getter, const int *fds, unsigned fd_count, uint32_t most_ms);
