/* fuzz/fuzz.h - the entry point of a fuzzer: libFuzzer, or replay.c, calls it with each input.
 *
 * A fuzzer aborts when something is wrong and returns 0. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

static inline void must(bool condition)
{
    if (!condition)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
