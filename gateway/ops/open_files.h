/* gateway/ops/open_files.h - how many descriptors we may have: each connection is one. */
#pragma once

#include <stdint.h>

/* As many as the system allows, but not more than libwebsockets has tables for: it sizes them by
 * the limit, 16 bytes each, and falls back to a few thousand when the limit looks endless. */
enum { OPEN_FILES_MOST = 1048576 };

/* Raises RLIMIT_NOFILE, inherited by every process to come, and returns it. */
uint64_t open_files_raise(void);
