/* cli/event_pretty.h - prints a message of a stream for people: when, who, what; how many. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "base/slice.h"

/* Writes an event as a line, or several if its text has them, counts as a line (bucket_pretty.h),
 * trends as a table; times are local. false: unknown, nothing was written. */
bool event_pretty_print(FILE *file, struct sl_slice event);
