/* task_runner.c - a child of the parent that runs a worker of src/tasks.
 *
 * It waits for Redis for as long as necessary, and ends after the current task when it is told to.
 * The setting task-concurrency is the number of tasks at a time. */
#include "gateway/process/task_runner.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "src/database/meta.h"
#include "src/redis/redis_address.h"
#include "src/redis/redis_link.h"
#include "src/tasks/worker.h"
#include "src/tasks/worker_log.h"

enum { CONNECT_AGAIN_MS = 500 };

const struct side_lines task_runner_lines = {
    .started = "task_runner_started",
    .not_started = "task_runner_not_started",
    .stopped = "task_runner_stopped",
    .died = "task_runner_died",
};

static bool is_of_environment(const struct config *config)
{
    return config->redis &&
           config->origins[CONFIG_OPTION_redis].source == CONFIG_SOURCE_ENVIRONMENT;
}

bool task_runner_is_wanted(const struct config *config)
{
    if (strcmp(config->run_tasks, "auto") == 0)
        return !config->redis || is_of_environment(config);
    return strcmp(config->run_tasks, "on") == 0;
}

void task_runner_tell(const struct config *config)
{
    bool is_wanted = task_runner_is_wanted(config);
    char room[SL_REDIS_ADDRESS_TEXT_SIZE] = "";
    struct sl_redis_address address;

    if (!config->redis)
        return;
    if (sl_redis_address_parse(sl_slice_str(config->redis), &address, NULL) == 0)
        sl_redis_address_print(&address, room, sizeof(room));
    if (is_of_environment(config))
        log_warn("redis_of_environment",
                 "redis=%s run_tasks=%s hint=\"SLUICE_REDIS is set, so no private Redis is used; "
                 "unset it for one, or name the other with --redis\"",
                 room, is_wanted ? "on" : "off");
    else if (!is_wanted)
        log_info("tasks_left_to_others",
                 "redis=%s hint=\"run-tasks = on runs them here, sluice worker elsewhere\"", room);
}

static struct sl_worker *_Atomic running; /* for the signal handler; NULL: not yet */
static atomic_bool is_told;

static void on_signal(int number)
{
    struct sl_worker *worker;

    (void)number;
    atomic_store(&is_told, true);
    worker = atomic_load(&running);
    if (worker)
        sl_worker_stop(worker);
}

static int connect_worker(const struct config *config, const char *redis_url,
                          struct sl_worker_log *log, struct sl_worker **ret_worker,
                          struct failure *reterr)
{
    const struct sl_redis_link_options link_options = {.retry_ms = 0};
    const struct sl_worker_options options = {
        .concurrency = (uint32_t)config->task_concurrency,
        .archive = config->archive,
        .cache = config->cache,
        .tell = sl_worker_log,
        .context = log,
    };
    const struct sl_meta wanted = sl_meta_wanted(0);
    struct sl_redis_address address;
    struct sl_redis_link *link = NULL;
    struct sl_meta meta;
    int r;

    r = sl_redis_address_parse(sl_slice_str(redis_url), &address, reterr);
    if (r == 0)
        r = sl_redis_link_open(&address, &link_options, &link, reterr);
    if (r == 0)
        r = sl_redis_link_meta(link, &wanted, &meta, reterr);
    if (r == 0)
        r = sl_worker_new(&address, &meta, &options, ret_worker, reterr);
    sl_redis_link_close(link);
    return r;
}

int task_runner_main(const struct config *config, const char *redis_url)
{
    const struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    const struct timespec pause = {0, CONNECT_AGAIN_MS * 1000000L};
    struct sl_worker_log log = SL_WORKER_LOG_INIT;
    struct sl_worker *worker = NULL;
    struct failure failure = {"out of memory"};
    uint64_t tries = 0;
    int r;

    signal(SIGPIPE, SIG_IGN);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    while (!atomic_load(&is_told) &&
           connect_worker(config, redis_url, &log, &worker, &failure) < 0) {
        if (tries++ == 0)
            log_warn("tasks_wait_for_redis", "why=\"%s\"", failure.text);
        nanosleep(&pause, NULL);
    }
    if (!worker)
        return EXIT_SUCCESS;
    atomic_store(&running, worker);
    if (atomic_load(&is_told))
        sl_worker_stop(worker);
    r = sl_worker_run(worker, &failure);
    if (r < 0)
        log_error("tasks_not_run", "why=\"%s\"", failure.text);
    atomic_store(&running, NULL);
    sl_worker_free(worker);
    return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
