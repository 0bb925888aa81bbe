#include "gateway/provider/set_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gateway/front/jwk_set.h"

enum {
    STEP_BYTES = 16384,
    MOST_BYTES = JWK_SET_MAX_BYTES + STEP_BYTES /* to read the end */
};

static int write_all(int fd, struct sl_slice content)
{
    while (content.size > 0) {
        ssize_t n = write(fd, content.data, content.size);

        if (n < 0 && errno != EINTR)
            return -errno;
        if (n > 0)
            content = sl_slice_from(content, (size_t)n);
    }
    return fdatasync(fd) < 0 ? -errno : 0;
}

/* Overwrites a temporary file that a crash has left. */
static int write_fresh(const char *fresh, const char *path, struct sl_slice content)
{
    int fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    int r;

    if (fd < 0)
        return -errno;
    r = write_all(fd, content);
    close(fd);
    if (r == 0 && rename(fresh, path) < 0)
        r = -errno;
    if (r < 0)
        unlink(fresh);
    return r;
}

int set_file_write(const char *path, struct sl_slice content, struct failure *reterr)
{
    struct buffer fresh = BUFFER_INIT;
    const char *name;
    int r = -ENOMEM;

    buffer_append_format(&fresh, "%s.%d", path, (int)getpid());
    name = buffer_str(&fresh);
    if (name)
        r = write_fresh(name, path, content);
    buffer_done(&fresh);
    if (r < 0)
        failure_set(reterr, r, "cannot write '%s': %s", path, strerror(-r));
    return r;
}

int set_file_read(const char *path, struct buffer *content)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = 1;

    if (fd < 0)
        return -errno;
    content->limit = MOST_BYTES;
    while (n > 0) {
        char *room = buffer_reserve(content, STEP_BYTES);

        n = room ? read(fd, room, STEP_BYTES) : -1;
        content->size += n > 0 ? (size_t)n : 0;
    }
    close(fd);
    content->limit = 0;
    return n < 0 ? -EIO : 0;
}
