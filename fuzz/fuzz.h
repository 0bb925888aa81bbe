/* fuzz/fuzz.h - what a fuzzer gives: libFuzzer, or replay.c, calls it with each input.
 *
 * A fuzzer aborts when something is wrong and returns 0. */
#pragma once

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
