#include "gateway/ops/open_files.h"

#include <sys/resource.h>

uint64_t open_files_raise(void)
{
    struct rlimit limit = {0};
    struct rlimit most = {OPEN_FILES_MOST, OPEN_FILES_MOST};

    getrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_max < OPEN_FILES_MOST && setrlimit(RLIMIT_NOFILE, &most) == 0)
        return OPEN_FILES_MOST; /* privileged */
    if (limit.rlim_max > OPEN_FILES_MOST)
        limit.rlim_max = OPEN_FILES_MOST;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    return limit.rlim_cur;
}
