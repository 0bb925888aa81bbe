#include "gateway/front/audit_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int make_file(const char *path)
{
    const int flags = O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    int fd = open(path, O_RDWR | flags | O_CREAT | O_EXCL, 0640);

    if (fd >= 0 && fchmod(fd, 0640) < 0) { /* independent of the umask */
        int error = errno;

        close(fd);
        return -error;
    }
    if (fd >= 0 || errno != EEXIST)
        return fd < 0 ? -errno : fd;
    fd = open(path, O_RDWR | flags);
    if (fd < 0 && errno == EACCES) /* it may be one that we may only write */
        fd = open(path, O_WRONLY | flags);
    return fd < 0 ? -errno : fd;
}

int audit_file_open(const char *path, struct failure *reterr)
{
    int fd = make_file(path);
    struct stat status;

    if (fd < 0)
        return failure_set(reterr, fd, "cannot write '%s': %s", path, strerror(-fd));
    if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode)) {
        close(fd);
        return failure_set(reterr, -EINVAL, "'%s' is no regular file", path);
    }
    return fd;
}
