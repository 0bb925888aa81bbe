#include "gateway/process/side_process.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "gateway/process/process_end.h"

void side_process_forked(struct side_process *process, pid_t pid, uint64_t now_ms)
{
    process->started_ms = now_ms;
    process->pid = pid;
    process->pidfd = pid > 0 ? pidfd_open(pid, 0) : -1;
    if (process->pidfd >= 0) {
        log_info(process->lines->started, "pid=%d", (int)pid);
        return;
    }
    log_error(process->lines->not_started, "error=\"%s\"", strerror(errno));
    if (pid > 0) {
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
    process->retry_ms = now_ms + restart_delay_next_ms(&process->delay, 0);
}

void side_process_signal(const struct side_process *process, int number)
{
    if (!side_process_is_down(process))
        pidfd_send_signal(process->pidfd, number, NULL, 0);
}

void side_process_note_end(struct side_process *process, bool was_told, uint64_t now_ms)
{
    char ended[PROCESS_END_SIZE];
    siginfo_t how = {0};
    uint64_t wait_ms;

    if (waitid(P_PIDFD, (id_t)process->pidfd, &how, WEXITED) < 0)
        return;
    close(process->pidfd);
    process->pidfd = -1;
    process_end_describe(&how, ended);
    if (was_told) {
        log_info(process->lines->stopped, "pid=%d ended=\"%s\"", (int)process->pid, ended);
        return;
    }
    wait_ms = restart_delay_next_ms(&process->delay, now_ms - process->started_ms);
    process->retry_ms = now_ms + wait_ms;
    log_error(process->lines->died, "pid=%d ended=\"%s\" retry_ms=%llu", (int)process->pid, ended,
              (unsigned long long)wait_ms);
}
