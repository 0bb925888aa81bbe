/* redis_program.c - posix_spawn(3) with a fixed command line, and a PING over the Unix socket.
 *
 * The child gets its own session, so that Ctrl-C for sluiced does not reach it; no descriptor but
 * the lock of the directory, which it holds as long as it lives; and its log as standard output.
 * The PING waits for at most a fifth of a second, because it blocks the supervisor's loop. */
#include "gateway/process/redis_program.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "src/model/data_dir.h"

enum { PING_TIMEOUT_MS = 200 };

/* Names are relative to the data directory, so that no path needs quoting. */
/* clang-format off */
static const char *const redis_arguments[] = {
    "redis-server",
    "--port", "0",
    "--unixsocket", SL_DATA_DIR_SOCKET,
    "--unixsocketperm", "600",
    "--dir", ".",
    "--logfile", REDIS_PROGRAM_LOG_FILE,
    "--pidfile", "redis.pid",
    "--daemonize", "no",
    "--appendonly", "yes",
    "--appendfsync", "everysec",
    "--save", "",
    "--maxmemory-policy", "noeviction",
    "--zset-max-ziplist-entries", "512", /* takes a fifth of the memory for sets of follows; the
                                            name before 7.0 */
    "--client-output-buffer-limit", "pubsub 256mb 64mb 60",
    NULL,
};
/* clang-format on */

int redis_program_spawn(const char *program, const char *dir, int lock, pid_t *ret_pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    mode_t mask;
    int r;

    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawn_file_actions_init(&actions);
    r = posix_spawn_file_actions_addchdir_np(&actions, dir);
    r = r ? r : posix_spawn_file_actions_adddup2(&actions, lock, 3);
    r = r ? r : posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    r = r ? r
          : posix_spawn_file_actions_addopen(&actions, 1, REDIS_PROGRAM_LOG_FILE,
                                             O_WRONLY | O_CREAT | O_APPEND, 0600);
    r = r ? r : posix_spawn_file_actions_adddup2(&actions, 1, 2);
    r = r ? r : posix_spawn_file_actions_addclosefrom_np(&actions, 4);
    if (r == 0) {
        mask = umask(077); /* only the owner may read what Redis writes */
        r = posix_spawnp(ret_pid, program, &actions, &attributes, (char *const *)redis_arguments,
                         environ);
        umask(mask);
    }
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return -r;
}

int redis_program_connect(const struct sockaddr_un *address)
{
    const struct timeval timeout = {.tv_usec = PING_TIMEOUT_MS * 1000};
    int fd, r;

    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)) == 0 &&
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout)) == 0 &&
        TEMP_FAILURE_RETRY(connect(fd, (const struct sockaddr *)address, sizeof(*address))) == 0)
        return fd;
    r = -errno;
    close(fd);
    return r;
}

void redis_program_ping(int fd, char *ret_reply, size_t size)
{
    static const char request[] = "PING\r\n";
    ssize_t got = -1;

    if (TEMP_FAILURE_RETRY(send(fd, request, sizeof(request) - 1, MSG_NOSIGNAL)) ==
        (ssize_t)sizeof(request) - 1)
        got = TEMP_FAILURE_RETRY(recv(fd, ret_reply, size - 1, 0));
    ret_reply[got > 0 ? got : 0] = '\0';
    ret_reply[strcspn(ret_reply, "\r\n")] = '\0';
}

bool redis_program_is_pong(const char *reply)
{
    return strcmp(reply, "+PONG") == 0;
}

void redis_program_read_last_line(const char *dir, char room[static REDIS_PROGRAM_LINE_SIZE])
{
    char path[PATH_MAX];
    ssize_t got = -1;
    off_t size;
    char *line;
    int fd;

    room[0] = '\0';
    snprintf(path, sizeof(path), "%s/%s", dir, REDIS_PROGRAM_LOG_FILE);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    size = lseek(fd, 0, SEEK_END);
    if (size > 0)
        got = pread(fd, room, REDIS_PROGRAM_LINE_SIZE - 1,
                    size > REDIS_PROGRAM_LINE_SIZE - 1 ? size - (REDIS_PROGRAM_LINE_SIZE - 1) : 0);
    close(fd);
    room[got > 0 ? got : 0] = '\0';
    while (got > 0 && (room[got - 1] == '\n' || room[got - 1] == '\0'))
        room[--got] = '\0';
    line = strrchr(room, '\n');
    if (line)
        memmove(room, line + 1, strlen(line + 1) + 1);
}
