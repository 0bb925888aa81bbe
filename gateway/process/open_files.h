/* gateway/process/open_files.h - how many descriptors we may have: each connection is one. */
#pragma once

#include <stdint.h>

/* libwebsockets sizes its tables by the limit, 16 bytes each, and falls back to a few thousand when
 * the limit looks endless. */
enum { OPEN_FILES_MOST = 1048576 };

/* Sets RLIMIT_NOFILE, inherited by every process to come, to `wanted` or as near as the system
 * allows, and returns it. Not to more than is needed: libwebsockets 4.1 walks its whole table
 * twice for each connection (10 us at 20,000; half a millisecond at a million). */
uint64_t open_files_set(uint64_t wanted);
