/* base/close_fd.h - closes a file descriptor and forgets it. */
#pragma once

#include <unistd.h>

/* *fd may be -1 (none); it is set to -1. */
static inline void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}
