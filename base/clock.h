/* base/clock.h - clocks. Read them once per turn of the event loop, and pass the time as a
 * parameter. */
#pragma once

#include <stdint.h>

#include "base/slice.h"

uint64_t clock_wall_ms(void);      /* Unix time */
uint64_t clock_monotonic_ms(void); /* never steps back; for intervals */
uint64_t clock_monotonic_us(void); /* the same clock */

#define CLOCK_RFC3339_SIZE sizeof("2026-01-01T00:00:00.000Z")

/* Writes Unix milliseconds as RFC 3339 in UTC with three decimals, and a NUL. */
void clock_format_rfc3339(uint64_t unix_ms, char ret_text[static CLOCK_RFC3339_SIZE]);

/* Parses an RFC 3339 date-time with `Z` or a numeric offset. Fractions beyond milliseconds are cut
 * off; a leap second counts as the second before it. 0; -EINVAL: invalid, or before 1970. */
int clock_parse_rfc3339(struct sl_slice text, uint64_t *ret_unix_ms);

/* The English names, beginning with Sunday and January. strftime() prints those of the locale. */
extern const char clock_day_names[7][4], clock_month_names[12][4];
