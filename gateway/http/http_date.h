/* gateway/http/http_date.h - the header Date (RFC 9110, 6.6.1), formatted once a second. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

/* Zeroed: formatted when it is first needed. */
struct http_date {
    uint64_t unix_s;
    size_t size;
    char line[64];
};

/* The header line for this time, with its CRLF; valid until the next call. */
struct sl_slice http_date_line(struct http_date *date, uint64_t unix_ms);
