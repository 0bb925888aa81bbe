/* cli/bucket_pretty.h - prints the messages of `counts` and `trends`, one for each bucket of time,
 * for people. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include <jansson.h>

/* Writes a line or a table; times are local. false: neither counts nor trends, nothing was
 * written. */
bool bucket_pretty_print(FILE *file, const json_t *message);
