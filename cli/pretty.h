/* cli/pretty.h - parts of readable lines: members of JSON, texts, times. */
#pragma once

#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

/* A string; empty: there is none. */
const char *pretty_member(const json_t *object, const char *name);

/* A number; 0: there is none. */
double pretty_number(const json_t *object, const char *name);

/* Indents further lines of the text, so that no text can look like another line of ours. */
void pretty_text(FILE *file, const char *text);

/* Prints Unix milliseconds as local hours, minutes and seconds, after the date if that is not
 * today's. */
void pretty_time(FILE *file, uint64_t unix_ms);
/* The date, hours and minutes. */
void pretty_minute(FILE *file, uint64_t unix_ms);
