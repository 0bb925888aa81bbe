/* gateway/provider/fetch_result.h - how an attempt to fetch a key set ended.
 *
 * In the order of the rows of sluice_key_fetches_total in metrics_table.def. */
#pragma once

enum fetch_result {
    FETCH_GOOD,
    FETCH_UNREACHABLE, /* name, connection, TLS */
    FETCH_TIMED_OUT,
    FETCH_BAD_STATUS, /* of HTTP: not 200 */
    FETCH_REDIRECTED,
    FETCH_TOO_BIG,
    FETCH_NOT_JSON, /* by its type, or by its content */
    FETCH_NO_KEYS,  /* none that could verify a token */
    FETCH_WRONG_ISSUER,
    FETCH_BAD_URL,     /* of the keys, in a discovery document */
    FETCH_NOT_WRITTEN, /* to our disk */
    FETCH_RESULT_COUNT
};
