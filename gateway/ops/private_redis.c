/* private_redis.c - the life of one redis-server: down, starting, up.
 *
 * A pidfd stands for the process, be it our child or adopted: it becomes readable when the process
 * dies and signals sent through it cannot hit another one. Our locks are flock(2): they belong to
 * the open file, not to a process, and so can be handed to redis-server like any descriptor. */
#include "gateway/ops/private_redis.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "gateway/ops/backoff.h"
#include "gateway/ops/folder.h"
#include "gateway/ops/process_end.h"
#include "src/data_dir.h"
#include "src/redis_address.h"

#define LOG_FILE "redis.log"

enum { PING_TIMEOUT_MS = 200, TELL_EVERY_MS = 5000, LAST_LINE_SIZE = 200 };

enum state { STATE_DOWN, STATE_STARTING, STATE_UP };

struct private_redis {
    char *dir; /* absolute */
    char *program;
    struct sockaddr_un address;
    char url[SL_REDIS_ADDRESS_TEXT_SIZE];
    int lock; /* sluiced.lock */
    enum state state;
    bool is_child;     /* started by us, not adopted */
    bool has_answered; /* ever */
    pid_t pid;
    int pidfd; /* -1: none */
    uint64_t started_ms;
    uint64_t retry_ms; /* when down: not before */
    uint64_t told_ms;  /* when we last said that we wait for it; 0: not yet */
    struct backoff backoff;
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

/* An open file with its lock held; -EWOULDBLOCK: somebody else holds it; other errnos. */
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

/* The lock file holds the pid of its owner, for this message only. */
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
    if (redis->pidfd >= 0)
        close(redis->pidfd);
    redis->pidfd = -1;
    redis->pid = 0;
    redis->state = STATE_DOWN;
}

void private_redis_let_go(struct private_redis *redis)
{
    forget_process(redis);
    if (redis->lock >= 0)
        close(redis->lock);
    redis->lock = -1;
}

void private_redis_free(struct private_redis *redis)
{
    if (!redis)
        return;
    private_redis_let_go(redis);
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

/* A connection whose calls end within PING_TIMEOUT_MS; a negative errno. */
static int connect_to_redis(const struct private_redis *redis)
{
    const struct timeval timeout = {.tv_usec = PING_TIMEOUT_MS * 1000};
    int fd, r;

    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)) == 0 &&
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout)) == 0 &&
        connect(fd, (const struct sockaddr *)&redis->address, sizeof(redis->address)) == 0)
        return fd;
    r = -errno;
    close(fd);
    return r;
}

/* The first line of its reply: "+PONG", "-LOADING ..."; empty: none. */
static void ping(int fd, char *ret_reply, size_t size)
{
    static const char request[] = "PING\r\n";
    ssize_t got = -1;

    if (send(fd, request, sizeof(request) - 1, MSG_NOSIGNAL) == (ssize_t)sizeof(request) - 1)
        got = recv(fd, ret_reply, size - 1, 0);
    ret_reply[got > 0 ? got : 0] = '\0';
    ret_reply[strcspn(ret_reply, "\r\n")] = '\0';
}

static bool is_pong(const char *reply)
{
    return strcmp(reply, "+PONG") == 0;
}

/* Redis answers the PING after the pidfd was opened: so it is its pidfd and no other's. */
static int adopt(struct private_redis *redis, uint64_t now_ms, struct failure *reterr)
{
    struct ucred peer = {0};
    socklen_t size = sizeof(peer);
    char reply[64] = "";
    int fd, pidfd = -1;

    fd = connect_to_redis(redis);
    if (fd < 0)
        return 0; /* it has not opened its socket yet, or has closed it for good: see next time */
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0)
        pidfd = pidfd_open(peer.pid, 0);
    if (pidfd < 0) {
        close(fd);
        return failure_set(reterr, -EBUSY, "the Redis in '%s' runs in another container",
                           redis->dir);
    }
    ping(fd, reply, sizeof(reply));
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

/* Names are relative to the data directory, so that no path of the user's needs quoting. */
/* clang-format off */
static const char *const redis_arguments[] = {
    "redis-server",
    "--port", "0",
    "--unixsocket", SL_DATA_DIR_SOCKET,
    "--unixsocketperm", "600",
    "--dir", ".",
    "--logfile", LOG_FILE,
    "--pidfile", "redis.pid",
    "--daemonize", "no",
    "--appendonly", "yes",
    "--appendfsync", "everysec",
    "--save", "",
    "--maxmemory-policy", "noeviction",
    "--client-output-buffer-limit", "pubsub 256mb 64mb 60",
    NULL,
};
/* clang-format on */

/* Clean signals, a session of its own (Ctrl-C is not for Redis), no descriptor but its lock. */
static int spawn(const struct private_redis *redis, int lock, pid_t *ret_pid)
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
    r = posix_spawn_file_actions_addchdir_np(&actions, redis->dir);
    r = r ? r : posix_spawn_file_actions_adddup2(&actions, lock, 3);
    r = r ? r : posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    r = r ? r
          : posix_spawn_file_actions_addopen(&actions, 1, LOG_FILE, O_WRONLY | O_CREAT | O_APPEND,
                                             0600);
    r = r ? r : posix_spawn_file_actions_adddup2(&actions, 1, 2);
    r = r ? r : posix_spawn_file_actions_addclosefrom_np(&actions, 4);
    if (r == 0) {
        mask = umask(077); /* what Redis writes is nobody else's business */
        r = posix_spawnp(ret_pid, redis->program, &actions, &attributes,
                         (char *const *)redis_arguments, environ);
        umask(mask);
    }
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return -r;
}

static int start(struct private_redis *redis, int lock, uint64_t now_ms, struct failure *reterr)
{
    int r;

    r = spawn(redis, lock, &redis->pid);
    if (r < 0)
        return failure_set(reterr, r, "cannot start '%s': %s%s", redis->program, strerror(-r),
                           r == -ENOENT ? " (install it, or name a Redis with the option redis)"
                                        : "");
    redis->pidfd = pidfd_open(redis->pid, 0); /* our child, not waited for: it is that process */
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

/* Whoever holds redis.lock is a living Redis; when nobody does, ours will. */
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

/* Says in words how it ended. A fork of it may still be rewriting the append-only file, and hold
 * redis.lock with it: it goes too, before its group's number is free for others. */
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

/* The last line that Redis logged says why it did not start. */
static void read_last_line(const struct private_redis *redis, char room[static LAST_LINE_SIZE])
{
    char path[PATH_MAX];
    ssize_t got = -1;
    off_t size;
    char *line;
    int fd;

    room[0] = '\0';
    snprintf(path, sizeof(path), "%s/%s", redis->dir, LOG_FILE);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    size = lseek(fd, 0, SEEK_END);
    if (size > 0)
        got = pread(fd, room, LAST_LINE_SIZE - 1,
                    size > LAST_LINE_SIZE - 1 ? size - (LAST_LINE_SIZE - 1) : 0);
    close(fd);
    room[got > 0 ? got : 0] = '\0';
    while (got > 0 && (room[got - 1] == '\n' || room[got - 1] == '\0'))
        room[--got] = '\0';
    line = strrchr(room, '\n');
    if (line)
        memmove(room, line + 1, strlen(line + 1) + 1);
}

/* The first one that we started ourselves must come up; later ones are tried again. */
static int step_dead(struct private_redis *redis, uint64_t now_ms, struct failure *reterr)
{
    bool hopeless = redis->is_child && !redis->has_answered;
    pid_t pid = redis->pid;
    char last_line[LAST_LINE_SIZE], how[PROCESS_END_SIZE];
    uint64_t wait_ms;

    reap(redis, how);
    if (hopeless) {
        read_last_line(redis, last_line);
        return failure_set(reterr, -EIO, "redis-server ended %s: %s (see %.150s/%s)", how,
                           last_line, redis->dir, LOG_FILE);
    }
    wait_ms = backoff_next_ms(&redis->backoff, now_ms - redis->started_ms);
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

    fd = connect_to_redis(redis);
    if (fd < 0)
        return;
    ping(fd, reply, sizeof(reply));
    close(fd);
    if (!is_pong(reply))
        return; /* -LOADING, or too busy for us */
    redis->state = STATE_UP;
    redis->has_answered = true;
    log_info("private_redis_answers", "pid=%d after_ms=%llu", (int)redis->pid,
             (unsigned long long)(now_ms - redis->started_ms));
}

/* A large append-only file takes its time: that is no reason to give up, but one to say so. */
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
        redis->retry_ms = now_ms + backoff_next_ms(&redis->backoff, 0);
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
