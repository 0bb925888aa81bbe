/* cli/event_pretty.h - an event for people: when, who, what. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "base/slice.h"

/* Writes one event as a line, or as several where its text has them; times are local. false: it is
 * no event that is known here, nothing was written. */
bool event_pretty_print(FILE *file, struct sl_slice event);
