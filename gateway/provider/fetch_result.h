/* gateway/provider/fetch_result.h - the results of fetching a key set.
 *
 * In the order of the rows of sluice_key_fetches_total in metrics_table.def. */
#pragma once

enum fetch_result {
    FETCH_GOOD,
    FETCH_UNREACHABLE, /* name resolution, connection or TLS failed */
    FETCH_TIMED_OUT,
    FETCH_BAD_STATUS, /* HTTP status other than 200 */
    FETCH_REDIRECTED,
    FETCH_TOO_BIG,
    FETCH_NOT_JSON, /* by its content type or its content */
    FETCH_NO_KEYS,  /* no key that can verify a token */
    FETCH_WRONG_ISSUER,
    FETCH_BAD_URL,     /* in a discovery document */
    FETCH_NOT_WRITTEN, /* to the file */
    FETCH_RESULT_COUNT
};
