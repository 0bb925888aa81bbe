/* children.c - uses fork(2), because posix_spawn(3) cannot request a signal at the death of the
 * parent.
 *
 * A failure of exec(2) is reported through a pipe, which is closed on success. Each child is waited
 * for by its pid with waitpid(2), so children of other modules are not affected. */
#include "cli/children.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

static const int heard[] = {SIGINT, SIGTERM, SIGHUP, SIGCHLD};

static void heard_signals(sigset_t *set)
{
    sigemptyset(set);
    for (size_t i = 0; i < sizeof(heard) / sizeof(heard[0]); i++)
        sigaddset(set, heard[i]);
}

void children_listen(void)
{
    sigset_t set;

    heard_signals(&set);
    sigprocmask(SIG_BLOCK, &set, NULL);
}

int children_rest(uint32_t ms)
{
    const struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
    sigset_t set;
    int signal;

    heard_signals(&set);
    signal = sigtimedwait(&set, NULL, &time);
    return signal < 0 || signal == SIGCHLD ? 0 : -EINTR;
}

/* In the child: sets up its environment. false: something failed. */
static bool settle(pid_t parent, const char *folder, const char *log, int fd)
{
    int out = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    int in = open("/dev/null", O_RDONLY | O_CLOEXEC);
    sigset_t none;

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    setsid();
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    return getppid() == parent && out >= 0 && in >= 0 && dup2(in, 0) == 0 && dup2(out, 1) == 1 &&
           dup2(out, 2) == 2 && (fd < 0 || (dup2(fd, 3) == 3 && fcntl(3, F_SETFD, 0) == 0)) &&
           (!folder || chdir(folder) == 0);
}

/* fork(), after flushing standard output. */
static pid_t split(struct failure *reterr)
{
    pid_t pid;

    fflush(NULL);
    pid = fork();
    return pid >= 0 ? pid : failure_set(reterr, -errno, "cannot fork: %s", strerror(errno));
}

int child_start(struct child *child, const char *const *argv, const char *folder, const char *log,
                int fd, struct failure *reterr)
{
    const pid_t self = getpid();
    int broken[2], error = 0;
    pid_t pid;

    if (pipe2(broken, O_CLOEXEC) < 0)
        return failure_set(reterr, -errno, "cannot make a pipe: %s", strerror(errno));
    pid = split(reterr);
    if (pid == 0) {
        /* above descriptor 3, which is used by the child */
        int telling = fcntl(broken[1], F_DUPFD_CLOEXEC, 10);

        if (settle(self, folder, log, fd))
            execvp(argv[0], (char *const *)argv);
        error = errno;
        _exit(write(telling, &error, sizeof(error)) == sizeof(error) ? 127 : 126);
    }
    close(broken[1]);
    if (pid > 0 && read(broken[0], &error, sizeof(error)) == sizeof(error)) {
        waitpid(pid, NULL, 0);
        pid = failure_set(reterr, error ? -error : -EIO, "cannot start '%s': %s", argv[0],
                          strerror(error));
    }
    close(broken[0]);
    if (pid < 0)
        return pid;
    *child = (struct child){.pid = pid};
    return 0;
}

int child_fork(struct child *child, int (*work)(void *context), void *context, const char *log,
               struct failure *reterr)
{
    const pid_t self = getpid();
    pid_t pid = split(reterr);

    if (pid == 0) {
        int status = settle(self, NULL, log, -1) ? work(context) : 126;

        fflush(NULL);
        _exit(status);
    }
    if (pid < 0)
        return pid;
    *child = (struct child){.pid = pid};
    return 0;
}

bool child_runs(struct child *child)
{
    if (child->pid > 0 && waitpid(child->pid, &child->status, WNOHANG) != 0) {
        child->pid = 0;
        child->end_ms = clock_monotonic_ms();
    }
    return child->pid > 0;
}

void child_describe_end(const struct child *child, char room[static CHILD_END_SIZE])
{
    if (WIFSIGNALED(child->status))
        snprintf(room, CHILD_END_SIZE, "by SIG%s", sigabbrev_np(WTERMSIG(child->status)));
    else
        snprintf(room, CHILD_END_SIZE, "with status %d", WEXITSTATUS(child->status));
}

void child_last_words(const char *log, char room[static CHILD_WORDS_SIZE])
{
    char line[CHILD_WORDS_SIZE];
    FILE *file = fopen(log, "re");

    strcpy(room, "nothing");
    while (file && fgets(line, sizeof(line), file)) {
        line[strcspn(line, "\n")] = '\0';
        if (line[0])
            strcpy(room, line);
    }
    if (file)
        fclose(file);
}

static bool any_runs(struct child *children, size_t count)
{
    bool any = false;

    for (size_t i = 0; i < count; i++)
        any = child_runs(&children[i]) || any;
    return any;
}

static void signal_all(struct child *children, size_t count, int signal)
{
    for (size_t i = 0; i < count; i++) {
        if (child_runs(&children[i]))
            kill(children[i].pid, signal);
    }
}

void children_stop(struct child *children, size_t count, int signal, uint32_t ms)
{
    const uint64_t deadline_ms = clock_monotonic_ms() + ms;

    signal_all(children, count, signal);
    while (any_runs(children, count)) {
        if (clock_monotonic_ms() >= deadline_ms)
            signal_all(children, count, SIGKILL);
        children_rest(20); /* a second signal does not interrupt this */
    }
}
