/* private_redis.c - the lifecycle of a redis-server: down, starting, up.
 *
 * The process is referred to by a pidfd, whether it is our child or adopted: it becomes readable
 * when the process dies, and signals sent through it cannot hit another process. The locks are
 * flock(2): they belong to the open file, not to a process, and so can be passed to redis-server
 * like any descriptor. */
#include "gateway/process/private_redis.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/close_fd.h"
#include "base/log.h"
#include "gateway/process/folder.h"
#include "gateway/process/process_end.h"
#include "gateway/process/redis_program.h"
#include "gateway/process/restart_delay.h"
#include "src/model/data_dir.h"
#include "src/redis/redis_address.h"

enum { TELL_EVERY_MS = 5000 };

enum state { STATE_DOWN, STATE_STARTING, STATE_UP };

struct private_redis {
    char *dir; /* absolute path */
    char *program;
    struct sockaddr_un address;
    char url[SL_REDIS_ADDRESS_TEXT_SIZE];
    int lock; /* descriptor of sluiced.lock */
    enum state state;
    bool is_child;     /* started by us, not adopted */
    bool has_answered; /* at least once */
    pid_t pid;
    int pidfd; /* -1: none */
    uint64_t started_ms;
    uint64_t retry_ms; /* when down: do not start before this */
    uint64_t told_ms;  /* when waiting for it was last logged; 0: not yet */
    struct restart_delay delay;
    unsigned restarts;
};

static int find_dir(struct private_redis *redis, const char *data_dir, struct failure *reterr)
{
    char real[PATH_MAX];
    struct sl_redis_address address;
    int size;

    if (!realpath(data_dir, real))
        return failure_set(reterr, -errno, "cannot use the directory '%s': %s", data_dir,
                           strerror(errno));
    redis->address.sun_family = AF_UNIX;
    size = snprintf(redis->address.sun_path, sizeof(redis->address.sun_path), "%s/%s", real,
                    SL_DATA_DIR_SOCKET);
    if ((size_t)size >= sizeof(redis->address.sun_path))
        return failure_set(
            reterr, -ENAMETOOLONG,
            "the directory '%.300s' is too long by %zu bytes for a unix socket in it", real,
            (size_t)size + 1 - sizeof(redis->address.sun_path));

    memset(&address, 0, sizeof(address));
    memcpy(address.path, redis->address.sun_path, (size_t)size + 1);
    sl_redis_address_print(&address, redis->url, sizeof(redis->url));
    redis->dir = mem_strndup(real, strlen(real));
    return redis->dir ? 0 : failure_set(reterr, -ENOMEM, "out of memory");
}

/* Opens and locks a file; -EWOULDBLOCK: locked by somebody else; other errnos. */
static int lock_file(const char *dir, const char *name, int *ret_fd)
{
    char path[PATH_MAX];
    int fd, r;

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    *ret_fd = fd;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        return 0;
    r = -errno;
    if (r != -EWOULDBLOCK)
        close(fd);
    return r;
}

/* The lock file contains the pid of its owner, only for this error message. */
static int lock_dir(struct private_redis *redis, struct failure *reterr)
{
    char owner[16] = "";
    int fd, r;

    r = lock_file(redis->dir, "sluiced.lock", &fd);
    if (r == -EWOULDBLOCK) {
        ssize_t got = pread(fd, owner, sizeof(owner) - 1, 0);

        owner[got > 0 ? strspn(owner, "0123456789") : 0] = '\0';
        close(fd);
        return failure_set(reterr, -EBUSY, "the directory '%s' is in use by another sluiced%s%s%s",
                           redis->dir, owner[0] ? " (pid " : "", owner, owner[0] ? ")" : "");
    }
    if (r < 0)
        return failure_set(reterr, r, "cannot use the directory '%s': %s", redis->dir,
                           strerror(-r));
    redis->lock = fd;
    private_redis_sign(redis);
    return 0;
}

void private_redis_sign(struct private_redis *redis)
{
    if (ftruncate(redis->lock, 0) == 0 && lseek(redis->lock, 0, SEEK_SET) == 0)
        dprintf(redis->lock, "%d\n", (int)getpid());
}

int private_redis_new(const char *data_dir, const char *program, struct private_redis **ret_redis,
                      struct failure *reterr)
{
    return private_redis_inherit(data_dir, program, -1, ret_redis, reterr);
}

int private_redis_inherit(const char *data_dir, const char *program, int lock,
                          struct private_redis **ret_redis, struct failure *reterr)
{
    struct private_redis *redis;
    int r;

    redis = mem_zalloc(sizeof(*redis));
    if (!redis) {
        if (lock >= 0)
            close(lock);
        return failure_set(reterr, -ENOMEM, "out of memory");
    }
    redis->lock = lock;
    redis->pidfd = -1;
    redis->program = mem_strndup(program, strlen(program));
    r = redis->program ? 0 : failure_set(reterr, -ENOMEM, "out of memory");
    if (r == 0)
        r = folder_make(data_dir, reterr);
    if (r == 0)
        r = find_dir(redis, data_dir, reterr);
    if (r == 0 && lock < 0)
        r = lock_dir(redis, reterr);
    if (r < 0) {
        private_redis_free(redis);
        return r;
    }
    *ret_redis = redis;
    return 0;
}

static void forget_process(struct private_redis *redis)
{
    close_fd(&redis->pidfd);
    redis->pid = 0;
    redis->state = STATE_DOWN;
}

void private_redis_detach(struct private_redis *redis)
{
    forget_process(redis);
    close_fd(&redis->lock);
}

void private_redis_free(struct private_redis *redis)
{
    if (!redis)
        return;
    private_redis_detach(redis);
    mem_free(redis->program);
    mem_free(redis->dir);
    mem_free(redis);
}

const char *private_redis_url(const struct private_redis *redis)
{
    return redis->url;
}

int private_redis_lock(const struct private_redis *redis)
{
    return redis->lock;
}

unsigned private_redis_restarts(const struct private_redis *redis)
{
    return redis->restarts;
}

int private_redis_fd(const struct private_redis *redis)
{
    return redis->pidfd;
}

/* Redis answers the PING after the pidfd was opened, so the pidfd is that of this Redis. */
static int adopt(struct private_redis *redis, uint64_t now_ms, struct failure *reterr)
{
    struct ucred peer = {0};
    socklen_t size = sizeof(peer);
    char reply[64] = "";
    int fd, pidfd = -1;

    fd = redis_program_connect(&redis->address);
    if (fd < 0)
        return 0; /* it has not opened its socket yet, or has closed it: try again at the next
                     step */
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0)
        pidfd = pidfd_open(peer.pid, 0);
    if (pidfd < 0) {
        close(fd);
        return failure_set(reterr, -EBUSY, "the Redis in '%s' runs in another container",
                           redis->dir);
    }
    redis_program_ping(fd, reply, sizeof(reply));
    close(fd);
    if (!reply[0]) {
        close(pidfd);
        return 0;
    }
    redis->pid = peer.pid;
    redis->pidfd = pidfd;
    redis->is_child = false;
    redis->started_ms = now_ms;
    redis->state = STATE_STARTING;
    log_info("private_redis_adopted", "pid=%d dir=%s", (int)redis->pid, redis->dir);
    return 0;
}

static int start(struct private_redis *redis, int lock, uint64_t now_ms, struct failure *reterr)
{
    int r;

    r = redis_program_spawn(redis->program, redis->dir, lock, &redis->pid);
    if (r < 0)
        return failure_set(reterr, r, "cannot start '%s': %s%s", redis->program, strerror(-r),
                           r == -ENOENT ? " (install it, or name a Redis with the option redis)"
                                        : "");
    redis->pidfd = pidfd_open(redis->pid, 0); /* our child, not waited for, so the pid is still its
                                                 own */
    if (redis->pidfd < 0) {
        r = failure_set(reterr, -errno, "cannot watch redis-server: %s", strerror(errno));
        kill(redis->pid, SIGKILL);
        waitpid(redis->pid, NULL, 0);
        return r;
    }
    redis->is_child = true;
    redis->started_ms = now_ms;
    redis->state = STATE_STARTING;
    log_info("private_redis_started", "pid=%d dir=%s", (int)redis->pid, redis->dir);
    return 0;
}

/* Whoever holds redis.lock is a running Redis; if nobody does, start ours. */
static int adopt_or_start(struct private_redis *redis, uint64_t now_ms, struct failure *reterr)
{
    int lock, r;

    r = lock_file(redis->dir, "redis.lock", &lock);
    if (r == 0)
        r = start(redis, lock, now_ms, reterr);
    else if (r == -EWOULDBLOCK)
        r = adopt(redis, now_ms, reterr);
    else
        return failure_set(reterr, r, "cannot use the directory '%s': %s", redis->dir,
                           strerror(-r));
    close(lock);
    return r;
}

static bool is_dead(const struct private_redis *redis, int timeout_ms)
{
    struct pollfd process = {.fd = redis->pidfd, .events = POLLIN};

    return poll(&process, 1, timeout_ms) == 1;
}

/* Describes how it ended. A fork of it may still be rewriting the append-only file, and so hold
 * redis.lock: it is killed before the number of its process group can be reused. */
static void reap(struct private_redis *redis, char room[static PROCESS_END_SIZE])
{
    siginfo_t how = {0};

    snprintf(room, PROCESS_END_SIZE, "for a reason unknown");
    if (redis->is_child && waitid(P_PIDFD, (id_t)redis->pidfd, &how, WEXITED | WNOWAIT) == 0) {
        kill(-redis->pid, SIGKILL);
        process_end_describe(&how, room);
        waitid(P_PIDFD, (id_t)redis->pidfd, &how, WEXITED);
    }
    forget_process(redis);
}

/* The first one that we start must come up; later ones are restarted. */
static int step_dead(struct private_redis *redis, uint64_t now_ms, struct failure *reterr)
{
    bool hopeless = redis->is_child && !redis->has_answered;
    pid_t pid = redis->pid;
    char last_line[REDIS_PROGRAM_LINE_SIZE], how[PROCESS_END_SIZE];
    uint64_t wait_ms;

    reap(redis, how);
    if (hopeless) {
        redis_program_read_last_line(redis->dir, last_line);
        return failure_set(reterr, -EIO, "redis-server ended %s: %s (see %.150s/%s)", how,
                           last_line, redis->dir, REDIS_PROGRAM_LOG_FILE);
    }
    wait_ms = restart_delay_next_ms(&redis->delay, now_ms - redis->started_ms);
    redis->retry_ms = now_ms + wait_ms;
    if (redis->has_answered)
        redis->restarts++;
    log_error("private_redis_died", "pid=%d ended=\"%s\" retry_ms=%llu", (int)pid, how,
              (unsigned long long)wait_ms);
    return 0;
}

static void step_starting(struct private_redis *redis, uint64_t now_ms)
{
    char reply[64] = "";
    int fd;

    fd = redis_program_connect(&redis->address);
    if (fd < 0)
        return;
    redis_program_ping(fd, reply, sizeof(reply));
    close(fd);
    if (!redis_program_is_pong(reply))
        return; /* -LOADING, or too busy to answer */
    redis->state = STATE_UP;
    redis->has_answered = true;
    log_info("private_redis_answers", "pid=%d after_ms=%llu", (int)redis->pid,
             (unsigned long long)(now_ms - redis->started_ms));
}

/* Loading a large append-only file takes time: log it, but do not give up. */
static void tell_that_we_wait(struct private_redis *redis, uint64_t now_ms)
{
    if (redis->state == STATE_UP) {
        redis->told_ms = 0;
    } else if (redis->told_ms == 0) {
        redis->told_ms = now_ms;
    } else if (now_ms - redis->told_ms >= TELL_EVERY_MS) {
        redis->told_ms = now_ms;
        log_warn("private_redis_awaited", "pid=%d dir=%s", (int)redis->pid, redis->dir);
    }
}

int private_redis_step(struct private_redis *redis, uint64_t now_ms, bool *ret_answers,
                       struct failure *reterr)
{
    struct failure why;
    int r = 0;

    if (redis->state != STATE_DOWN && is_dead(redis, 0))
        r = step_dead(redis, now_ms, &why);
    if (r == 0 && redis->state == STATE_DOWN && now_ms >= redis->retry_ms)
        r = adopt_or_start(redis, now_ms, &why);
    if (r < 0 && redis->has_answered) {
        log_error("private_redis_failed", "error=\"%s\"", why.text);
        redis->retry_ms = now_ms + restart_delay_next_ms(&redis->delay, 0);
        r = 0;
    }
    if (r < 0)
        return failure_set(reterr, r, "%s", why.text);
    if (redis->state == STATE_STARTING)
        step_starting(redis, now_ms);
    tell_that_we_wait(redis, now_ms);
    *ret_answers = redis->state == STATE_UP;
    return 0;
}

void private_redis_stop(struct private_redis *redis, unsigned timeout_ms)
{
    char how[PROCESS_END_SIZE];

    if (redis->state == STATE_DOWN)
        return;
    pidfd_send_signal(redis->pidfd, SIGTERM, NULL, 0);
    if (!is_dead(redis, (int)timeout_ms)) {
        log_error("private_redis_killed", "pid=%d waited_ms=%u", (int)redis->pid, timeout_ms);
        pidfd_send_signal(redis->pidfd, SIGKILL, NULL, 0);
        is_dead(redis, -1);
    }
    reap(redis, how);
    log_info("private_redis_stopped", "ended=\"%s\"", how);
}
