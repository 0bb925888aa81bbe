/* gateway/provider/getter.h - GET, as careful as one must be with an answer that decides who comes in.
 *
 * Several at once, in a process that does nothing else: libcurl, certificates checked, no
 * redirects, no cookies, no passwords, no compression; bounds on time, header and body. Only an
 * answer 200 that says it is JSON is good. https goes through the proxy that the environment names
 * (https_proxy), what is on loopback through none. */
#pragma once

#include <stdint.h>

#include "base/slice.h"
#include "gateway/front/jwk_set.h"
#include "gateway/provider/cache_age.h"
#include "gateway/provider/fetch_result.h"

enum { GETTER_MAX_BODY_BYTES = JWK_SET_MAX_BYTES, GETTER_MAX_HEAD_BYTES = 16384 };

struct get_answer {
    struct sl_slice body; /* with FETCH_GOOD */
    struct cache_age age;
    const char *why; /* without; a sentence that may hold words of the other side */
};

typedef void (*get_done_fn)(void *owner, enum fetch_result result,
                            const struct get_answer *answer);

struct getter;

/* `ca_file` NULL: the system's authorities; else those in it alone. NULL: out of memory. */
struct getter *getter_new(const char *ca_file, uint32_t timeout_ms);
/* What is under way is never done. */
void getter_free(struct getter *getter);

/* `done` comes out of getter_run(). 0; -ENOMEM. */
int getter_start(struct getter *getter, const char *url, get_done_fn done, void *owner);

/* Goes on with all of them; waits for the network, for one of `fds` (four at most) to be readable,
 * or for `most_ms`. */
void getter_run(struct getter *getter, const int *fds, unsigned fd_count, uint32_t most_ms);
