/* supervisor_child.c - prepares a forked child.
 *
 * A child keeps the listeners that it serves and the shared memory. It closes everything else that
 * belongs to the parent before it runs: signals, pidfds, pipes, the lock of the private Redis. The
 * kernel kills it when the parent dies. */
#include "gateway/process/supervisor_parts.h"

#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/close_fd.h"
#include "gateway/http/listener.h"

const char *supervisor_redis_url(const struct supervisor *supervisor)
{
    if (supervisor->settings->instance->private_redis)
        return private_redis_url(supervisor->settings->instance->private_redis);
    return supervisor->settings->config->redis;
}

struct worker_process *supervisor_intake(const struct supervisor *supervisor)
{
    return supervisor->process_count > supervisor->worker_count
               ? &supervisor->workers[supervisor->worker_count]
               : NULL;
}

void supervisor_close_listeners(struct instance *instance)
{
    for (unsigned i = 0; i < LISTENER_COUNT; i++) {
        for (unsigned k = 0; k < instance->listeners[i].count; k++)
            close_fd(&instance->listeners[i].sockets[k]);
    }
}

/* Closes the sockets that are not for this worker. */
static void keep_listeners(struct listener *listener, unsigned worker, unsigned workers)
{
    unsigned kept = 0;

    for (unsigned i = 0; i < listener->count; i++) {
        if (listener_is_for(i, listener->count, worker, workers))
            listener->sockets[kept++] = listener->sockets[i];
        else
            close(listener->sockets[i]);
    }
    listener->count = kept;
}

/* Closes everything that belongs to the parent, except the listeners. */
static void become_child(struct supervisor *supervisor, const char *name)
{
    const struct supervisor_settings *settings = supervisor->settings;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != supervisor->pid)
        exit(EXIT_FAILURE); /* the parent died before prctl() */
    prctl(PR_SET_NAME, name);
    setpgid(0, 0);            /* Ctrl-C of a terminal goes to the parent, which passes it on */
    signal(SIGTTOU, SIG_IGN); /* our log lines may still go to the terminal */

    for (unsigned i = 0; i < supervisor->process_count; i++)
        worker_process_detach(&supervisor->workers[i]);
    close_fd(&supervisor->tasks.pidfd);
    close_fd(&supervisor->keys.process.pidfd);
    close_fd(&supervisor->signal_fd);
    start_notice_done(&supervisor->notice);
    takeover_close_in_child(supervisor->takeover);
    if (settings->instance->has_predecessor)
        handover_done(&settings->instance->handover);
    if (settings->instance->private_redis)
        private_redis_detach(settings->instance->private_redis);
    signal(SIGHUP, SIG_IGN); /* until there is a handler */
    sigprocmask(SIG_SETMASK, &supervisor->outer_mask, NULL);
}

static int run_intake(struct supervisor *supervisor, int ready_fd)
{
    const struct supervisor_settings *settings = supervisor->settings;
    struct gateway_parts parts = {
        .config = settings->config,
        .redis_url = supervisor_redis_url(supervisor),
        .board = settings->board,
        .broadcast = settings->broadcast,
        .ready_fd = ready_fd,
    };

    become_child(supervisor, "sluiced-intake");
    supervisor_close_listeners(settings->instance);
    return settings->intake_main(&parts);
}

static int run_worker(struct supervisor *supervisor, unsigned index, int ready_fd)
{
    const struct supervisor_settings *settings = supervisor->settings;
    struct gateway_parts parts = {
        .config = settings->config,
        .redis_url = supervisor_redis_url(supervisor),
        .board = settings->board,
        .admission = settings->admission,
        .uses = settings->uses,
        .slow_board = settings->slow_board,
        .history = settings->history,
        .broadcast = settings->broadcast,
        .site = settings->site,
        .key_board = settings->key_board,
        .worker = index,
        .gateway = supervisor->gateway,
        .listeners = settings->instance->listeners,
        .accepts_at_once = supervisor->is_open,
        .ready_fd = ready_fd,
    };

    for (unsigned i = 0; i < LISTENER_COUNT; i++)
        keep_listeners(&settings->instance->listeners[i], index, supervisor->worker_count);
    become_child(supervisor, "sluiced-worker");
    return settings->worker_main(&parts);
}

int supervisor_child_worker(struct supervisor *supervisor, unsigned index, int ready_fd)
{
    return index < supervisor->worker_count ? run_worker(supervisor, index, ready_fd)
                                            : run_intake(supervisor, ready_fd);
}

int supervisor_child_tasks(struct supervisor *supervisor)
{
    const struct supervisor_settings *settings = supervisor->settings;

    become_child(supervisor, "sluice-tasks");
    supervisor_close_listeners(settings->instance);
    return task_runner_main(settings->config, supervisor_redis_url(supervisor));
}

int supervisor_child_keys(struct supervisor *supervisor)
{
    const struct supervisor_settings *settings = supervisor->settings;
    const struct gateway_parts parts = {
        .config = settings->config,
        .board = settings->board,
        .key_board = settings->key_board,
    };

    become_child(supervisor, "sluiced-keys");
    supervisor_close_listeners(settings->instance);
    return key_process_main(&parts);
}
