/* cli/event_pretty.h - prints an event for people: when, who, what. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include <jansson.h>

/* Writes an event as a line, or several if its text has them; times are local. false: not a known
 * event, nothing was written. */
bool event_pretty_print(FILE *file, const json_t *event);
