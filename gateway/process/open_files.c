#include "gateway/process/open_files.h"

#include <sys/resource.h>

uint64_t open_files_set(uint64_t wanted)
{
    struct rlimit limit = {0};
    struct rlimit both;

    if (wanted > OPEN_FILES_MOST)
        wanted = OPEN_FILES_MOST;
    both = (struct rlimit){wanted, wanted};
    getrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_max < wanted && setrlimit(RLIMIT_NOFILE, &both) == 0)
        return wanted; /* we are privileged */
    limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
    setrlimit(RLIMIT_NOFILE, &limit);
    return limit.rlim_cur;
}
