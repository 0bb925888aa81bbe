#include "base/key_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static int read_all(int fd, struct buffer *content)
{
    char *room = buffer_reserve(content, KEY_FILE_MAX_BYTES + 1);
    ssize_t got;

    if (!room)
        return -ENOMEM;
    do {
        got = read(fd, room + content->size, KEY_FILE_MAX_BYTES + 1 - content->size);
        if (got < 0)
            return -errno;
        content->size += (size_t)got;
    } while (got > 0 && content->size <= KEY_FILE_MAX_BYTES);
    return 0;
}

int key_file_read(const char *path, struct buffer *content, bool *ret_is_exposed,
                  struct failure *reterr)
{
    struct stat info;
    int fd, r;

    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &info) < 0)
        r = -errno;
    else
        r = read_all(fd, content);
    if (fd >= 0)
        close(fd);
    if (r < 0) {
        errno = -r;
        return failure_set(reterr, r, "cannot read '%s': %m", path);
    }
    if (content->size > KEY_FILE_MAX_BYTES)
        return failure_set(reterr, -EFBIG, "'%s' is too large to be a key", path);
    *ret_is_exposed = S_ISREG(info.st_mode) && (info.st_mode & (S_IRWXG | S_IRWXO));
    return 0;
}

int key_file_read_secret(const char *path, struct buffer *content, bool *ret_is_exposed,
                         struct failure *reterr)
{
    int r = key_file_read(path, content, ret_is_exposed, reterr);

    if (r < 0)
        return r;
    if (content->size > 0 && content->data[content->size - 1] == '\n')
        content->size--;
    if (content->size == 0)
        return failure_set(reterr, -EINVAL, "'%s' is empty: an empty secret is no secret", path);
    return 0;
}

void key_file_done(struct buffer *content)
{
    if (content->data)
        explicit_bzero(content->data, content->capacity);
    buffer_done(content);
}
