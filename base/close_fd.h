/* base/close_fd.h - a descriptor that is closed and forgotten in one. */
#pragma once

#include <unistd.h>

/* *fd may be -1, none, and is afterwards. */
static inline void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}
