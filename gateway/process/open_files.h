/* gateway/process/open_files.h - the limit of file descriptors, of which each connection needs
 * one. */
#pragma once

#include <stdint.h>

/* libwebsockets sizes its tables by the limit, 16 bytes each, and uses only a few thousand if the
 * limit looks infinite. */
enum { OPEN_FILES_MOST = 1048576 };

/* Sets RLIMIT_NOFILE, which later processes inherit, to `wanted` or as near as the system allows,
 * and returns it. It should not be higher than needed: libwebsockets 4.1 walks through its whole
 * table twice for each connection (10 us at 20,000; half a millisecond at a million). */
uint64_t open_files_set(uint64_t wanted);
