/* main.c - sluiced: settings, what the workers share, run. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "gateway/config.h"
#include "gateway/config_files.h"
#include "gateway/front/admission.h"
#include "gateway/front/site.h"
#include "gateway/gateway.h"
#include "gateway/ops/listener.h"
#include "gateway/ops/metrics.h"
#include "gateway/ops/open_files.h"
#include "gateway/ops/private_redis.h"
#include "gateway/ops/supervisor.h"
#include "src/data_dir.h"

enum {
    STOP_GRACE_MS = 5000,
    OTHER_OPEN_FILES = 128 /* of a worker, beside its connections */
};

/* A socket that became descriptor 2 would get our log. */
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

/* Chance may give one worker all the connections. */
static int set_open_files(const struct config *config, struct failure *reterr)
{
    uint64_t least = config->max_connections + OTHER_OPEN_FILES;
    uint64_t limit = open_files_set(least + config->max_pending_handshakes);

    if (limit >= least)
        return 0;
    if (config->origins[CONFIG_OPTION_max_connections].source != CONFIG_SOURCE_DEFAULT)
        return config_refuse(config, CONFIG_OPTION_max_connections, reterr, -EMFILE,
                             "a process may open %llu files here, which is not enough for %llu "
                             "connections (see RLIMIT_NOFILE)",
                             (unsigned long long)limit,
                             (unsigned long long)config->max_connections);
    log_warn("few_open_files", "limit=%llu max_connections=%llu", (unsigned long long)limit,
             (unsigned long long)config->max_connections);
    return 0;
}

static int open_listeners(const struct config *config, unsigned count, int *ret_listeners,
                          uint16_t *ret_port, struct failure *reterr)
{
    struct listen_address address;
    struct failure why;
    int r;

    r = listen_address_parse(sl_slice_str(config->listen), &address, &why);
    if (r == 0)
        r = listener_open(&address, count, ret_listeners, ret_port, &why);
    if (r < 0)
        return config_refuse(config, CONFIG_OPTION_listen, reterr, r, "%s", why.text);
    log_debug("listening", "host=%s port=%u sockets=%u", address.host[0] ? address.host : "*",
              *ret_port, count);
    return 0;
}

static int open_private_redis(const struct config *config, struct private_redis **ret_redis,
                              struct failure *reterr)
{
    char path[SL_DATA_DIR_SIZE];
    const char *data_dir = config->data_dir;
    struct failure why;
    int r = 0;

    if (!data_dir) {
        r = sl_data_dir(path, &why);
        data_dir = path;
    }
    if (r == 0)
        r = private_redis_new(data_dir, config->redis_server, ret_redis, &why);
    if (r < 0)
        return config_refuse(config, CONFIG_OPTION_data_dir, reterr, r, "%s", why.text);
    return 0;
}

/* Asked for in so many words it must be there; by default it is served where it is. */
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

static int serve(const struct config *config, struct failure *reterr)
{
    unsigned workers = count_workers(config);
    struct supervisor_settings parts = {
        .config = config,
        .listener_count = workers,
        .grace_ms = STOP_GRACE_MS,
        .worker_main = gateway_run,
    };
    int r;

    r = config_check_files(config, reterr);
    if (r == 0)
        r = choose_site(config, &parts.site, reterr);
    if (r == 0)
        r = set_open_files(config, reterr);
    if (r < 0)
        return r;
    parts.board = metrics_board_new(workers);
    parts.admission = admission_new((uint32_t)config->max_connections, workers);
    parts.listeners = mem_alloc(mem_array_size(workers, sizeof(int)));
    if (!parts.board || !parts.admission || !parts.listeners)
        r = failure_set(reterr, -ENOMEM, "out of memory");
    if (r == 0)
        r = open_listeners(config, parts.listener_count, parts.listeners, &parts.port, reterr);
    if (r == 0 && !config->redis)
        r = open_private_redis(config, &parts.private_redis, reterr);
    if (r == 0)
        r = supervisor_run(&parts, reterr);
    private_redis_free(parts.private_redis);
    mem_free(parts.listeners);
    admission_free(parts.admission);
    metrics_board_free(parts.board);
    return r;
}

static int act(const struct config *config, struct failure *reterr)
{
    struct buffer text = BUFFER_INIT;
    enum log_level level;
    int r = 0;

    if (config->action == CONFIG_ACTION_RUN) {
        log_parse_level(config->log_level, &level);
        log_set_level(level);
        return serve(config, reterr);
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
    struct config *config = NULL;
    struct failure failure;
    int r;

    keep_standard_descriptors();
    r = config_read(argc, argv, environ, &config, &failure);
    if (r == 0)
        r = act(config, &failure);
    if (r < 0)
        fprintf(stderr, "sluiced: %s\n", failure.text);
    config_free(config);
    return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
