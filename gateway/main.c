/* main.c - sluiced: reads the settings, creates what the workers share, and runs the supervisor.
 *
 * All possible errors are detected before the first worker is forked, and reported with their
 * option: settings, files, then ports and data directory (process/instance.h). The workers' shared
 * memory is created and sized here. Then the supervisor runs until it is told to stop. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "gateway/config/config.h"
#include "gateway/config/config_files.h"
#include "gateway/front/admission.h"
#include "gateway/front/fair_use.h"
#include "gateway/front/key_board.h"
#include "gateway/front/site.h"
#include "gateway/gateway.h"
#include "gateway/intake/broadcast.h"
#include "gateway/metrics/history.h"
#include "gateway/metrics/metrics.h"
#include "gateway/metrics/slow_board.h"
#include "gateway/process/open_files.h"
#include "gateway/process/instance.h"
#include "gateway/process/intake_process.h"
#include "gateway/process/supervisor.h"
#include "gateway/process/task_runner.h"
#include "gateway/serve/token_report.h"
#include "src/redis/redis_address.h"

enum {
    STOP_GRACE_MS = 5000,
    OTHER_OPEN_FILES = 128 /* of a worker, besides its connections */
};

/* Otherwise a socket could become descriptor 2 and receive our log. */
static void keep_standard_descriptors(void)
{
    int fd;

    do
        fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    while (fd >= 0 && fd <= STDERR_FILENO);
    close(fd);
}

static unsigned count_workers(const struct config *config)
{
    cpu_set_t cores;

    if (config->workers > 0)
        return (unsigned)config->workers;
    return sched_getaffinity(0, sizeof(cores), &cores) == 0 ? (unsigned)CPU_COUNT(&cores) : 1;
}

/* By chance one worker may get all connections. */
static int set_open_files(const struct config *config, struct failure *reterr)
{
    uint64_t least = config->max_connections + OTHER_OPEN_FILES;
    uint64_t limit =
        open_files_set(least + config->max_pending_handshakes + config->max_idle_connections +
                       config->max_lingering_connections);

    if (limit >= least)
        return 0;
    if (config->origins[CONFIG_OPTION_max_connections].source != CONFIG_SOURCE_DEFAULT)
        return config_refuse(config, CONFIG_OPTION_max_connections, reterr, -EMFILE,
                             "a process may open %llu files, which is not enough for %llu "
                             "connections (see RLIMIT_NOFILE)",
                             (unsigned long long)limit,
                             (unsigned long long)config->max_connections);
    log_warn("few_open_files", "limit=%llu max_connections=%llu", (unsigned long long)limit,
             (unsigned long long)config->max_connections);
    return 0;
}

/* If requested explicitly the pages must exist; by default they are served if they exist. */
static int choose_site(const struct config *config, const struct site **ret_site,
                       struct failure *reterr)
{
    bool is_wanted = strcmp(config->dashboard, "on") == 0;

    if (is_wanted && dashboard_site.count == 0 &&
        config->origins[CONFIG_OPTION_dashboard].source != CONFIG_SOURCE_DEFAULT)
        return config_refuse(config, CONFIG_OPTION_dashboard, reterr, -ENOENT,
                             "this sluiced was built without the dashboard");
    *ret_site = is_wanted ? &dashboard_site : NULL;
    return 0;
}

static int serve(struct config *config, int started_fd, struct failure *reterr)
{
    unsigned workers = count_workers(config);
    struct supervisor_settings parts = {
        .config = config,
        .started_fd = started_fd,
        .grace_ms = STOP_GRACE_MS,
        .worker_main = gateway_run,
        .intake_main = intake_process_main,
    };
    struct instance instance = INSTANCE_INIT;
    bool has_intake = workers > 1;
    int r;

    r = config_check_files(config, reterr);
    if (r == 0)
        r = choose_site(config, &parts.site, reterr);
    if (r == 0)
        r = set_open_files(config, reterr);
    if (r < 0)
        return r;
    task_runner_tell(config);
    parts.board = metrics_board_new(workers);
    parts.admission = admission_new((uint32_t)config->max_connections, workers);
    parts.uses = fair_use_new(config->use_exchange_ms);
    parts.slow_board = slow_board_new(workers);
    parts.history = history_new();
    parts.key_board = key_board_new();
    if (has_intake)
        parts.broadcast = broadcast_new(workers, intake_process_bytes(config->max_event_bytes));
    if (!parts.board || !parts.admission || !parts.uses || !parts.slow_board || !parts.history ||
        !parts.key_board || (has_intake && !parts.broadcast))
        r = failure_set(reterr, -ENOMEM, "out of memory");
    parts.instance = &instance;
    if (r == 0)
        r = instance_take(config, workers, &instance, reterr);
    if (r == 0)
        r = supervisor_run(&parts, reterr);
    instance_done(&instance);
    admission_free(parts.admission);
    fair_use_free(parts.uses);
    slow_board_free(parts.slow_board);
    history_free(parts.history);
    key_board_free(parts.key_board);
    broadcast_free(parts.broadcast);
    metrics_board_free(parts.board);
    return r;
}

/* In the child: returns a descriptor on which to report that it serves. The parent waits for that
 * and exits here. */
static int go_to_background(int *ret_started_fd, struct failure *reterr)
{
    int started[2];
    char byte;
    pid_t child;

    if (pipe2(started, O_CLOEXEC) < 0)
        return failure_set(reterr, -errno, "cannot make a pipe: %s", strerror(errno));
    child = fork();
    if (child < 0)
        return failure_set(reterr, -errno, "cannot start a process: %s", strerror(errno));
    close(started[child == 0 ? 0 : 1]);
    if (child > 0)
        _exit(read(started[0], &byte, 1) == 1 ? EXIT_SUCCESS : EXIT_FAILURE);
    setsid();
    *ret_started_fd = started[1];
    return 0;
}

static int act(struct config *config, struct failure *reterr)
{
    struct buffer text = BUFFER_INIT;
    int started_fd = -1;
    int r = 0;

    if (config->action == CONFIG_ACTION_RUN) {
        config_set_log(config);
        if (config->background)
            r = go_to_background(&started_fd, reterr);
        return r < 0 ? r : serve(config, started_fd, reterr);
    }
    if (config->action == CONFIG_ACTION_HELP)
        config_print_help(&text);
    else
        buffer_append_str(&text, "sluiced " SLUICE_VERSION "\n");
    if (fwrite(text.data, 1, text.size, stdout) != text.size || fflush(stdout) != 0)
        r = failure_set(reterr, -errno, "cannot write: %s", strerror(errno));
    buffer_done(&text);
    return r;
}

int main(int argc, char *argv[])
{
    bool checks_token = argc > 1 && strcmp(argv[1], "--check-token") == 0;
    struct config *config = NULL;
    struct failure failure;
    int r;

    keep_standard_descriptors();
    if (checks_token) {
        argv[1] = argv[0];
        argc--;
        argv++;
    }
    r = config_read(argc, argv, environ, &config, &failure);
    if (r == 0)
        r = checks_token ? token_report(config, &failure) : act(config, &failure);
    if (r < 0)
        fprintf(stderr, "sluiced: %s\n", failure.text);
    config_free(config);
    return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
