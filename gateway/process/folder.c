#include "gateway/process/folder.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"

int folder_make(const char *path, struct failure *reterr)
{
    char *part = mem_strndup(path, strlen(path));
    int r = 0;

    if (!part)
        return failure_set(reterr, -ENOMEM, "out of memory");
    for (char *slash = strchr(part + 1, '/'); r == 0 && slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(part, 0700) < 0 && errno != EEXIST)
            r = -errno;
        *slash = '/';
    }
    if (r == 0 && mkdir(part, 0700) < 0 && errno != EEXIST)
        r = -errno;
    if (r < 0)
        failure_set(reterr, r, "cannot make the directory '%s': %s", path, strerror(-r));
    mem_free(part);
    return r;
}
