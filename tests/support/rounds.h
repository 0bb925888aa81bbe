/* tests/support/rounds.h - how many random cases a test tries. Programs with sanitizers are about
 * five times slower, and find in a few cases what they look for. */
#pragma once

#ifdef __SANITIZE_ADDRESS__
#define TEST_ROUNDS(count) ((count) / 4)
#else
#define TEST_ROUNDS(count) (count)
#endif
