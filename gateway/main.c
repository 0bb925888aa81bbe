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
#include "gateway/ops/folder.h"
#include "gateway/ops/listener.h"
#include "gateway/ops/metrics.h"
#include "gateway/ops/open_files.h"
#include "gateway/ops/private_redis.h"
#include "gateway/ops/slow_board.h"
#include "gateway/ops/supervisor.h"
#include "gateway/ops/takeover.h"
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

/* --- the data directory --- */

/* NULL: there is none, which only a private Redis would mind. */
static const char *find_data_dir(const struct config *config, char room[static SL_DATA_DIR_SIZE],
                                 struct failure *reterr)
{
    if (config->data_dir)
        return config->data_dir;
    return sl_data_dir(room, reterr) == 0 ? room : NULL;
}

/* Where a successor may ask for our place. A directory that nobody has asked for is a convenience:
 * we can do without. */
static int offer_takeover(const struct config *config, const char *data_dir,
                          struct supervisor_settings *parts, struct failure *reterr)
{
    pid_t other = data_dir && !parts->heritage ? takeover_find(data_dir) : 0;
    struct failure why;
    int r = 0;

    if (!data_dir)
        return 0;
    if (other)
        r = failure_set(&why, -EBUSY, "the directory '%s' is in use by another sluiced (pid %d)",
                        data_dir, (int)other);
    else
        r = folder_make(data_dir, &why);
    if (r == 0)
        parts->data_dir = data_dir;
    else if (config->data_dir)
        return config_refuse(config, CONFIG_OPTION_data_dir, reterr, r, "%s", why.text);
    else
        log_info("no_takeover", "why=\"%s\"", why.text);
    return 0;
}

static int open_private_redis(const struct config *config, const char *data_dir,
                              struct supervisor_settings *parts, struct failure *reterr)
{
    struct failure why;
    int lock = -1;
    int r;

    if (!data_dir) {
        char room[SL_DATA_DIR_SIZE];

        r = sl_data_dir(room, &why);
        return config_refuse(config, CONFIG_OPTION_data_dir, reterr, r, "%s", why.text);
    }
    if (parts->heritage) {
        lock = parts->heritage->lock;
        parts->heritage->lock = -1;
    }
    r = private_redis_inherit(data_dir, config->redis_server, lock, &parts->private_redis, &why);
    if (r < 0)
        return config_refuse(config, CONFIG_OPTION_data_dir, reterr, r, "%s", why.text);
    return 0;
}

/* --- the port --- */

static int open_listeners(const struct config *config, const struct listen_address *address,
                          const char *data_dir, struct supervisor_settings *parts,
                          struct failure *reterr)
{
    struct failure why;
    pid_t other = 0;
    int r;

    r = listener_open(address, parts->listener_count, parts->listeners, &parts->port, &why);
    if (r == -EADDRINUSE && data_dir)
        other = takeover_find(data_dir);
    if (other)
        return config_refuse(config, CONFIG_OPTION_listen, reterr, r,
                             "%s; a sluiced runs as process %d, and --takeover would take its "
                             "place",
                             why.text, (int)other);
    if (r < 0)
        return config_refuse(config, CONFIG_OPTION_listen, reterr, r, "%s", why.text);
    log_debug("listening", "host=%s port=%u sockets=%u", address->host[0] ? address->host : "*",
              parts->port, parts->listener_count);
    return 0;
}

/* Every socket of the predecessor is ours, so that none of its connections is lost, and one for
 * each worker at least. */
static int inherit_listeners(const struct config *config, const struct listen_address *address,
                             struct supervisor_settings *parts, struct failure *reterr)
{
    struct heritage *heritage = parts->heritage;
    unsigned workers = parts->listener_count;
    int r;

    if (config->redis && heritage->lock >= 0)
        return config_refuse(config, CONFIG_OPTION_takeover, reterr, -EINVAL,
                             "the running sluiced (pid %d) has a private Redis, and this one is "
                             "told to use another",
                             (int)heritage->pid);
    for (unsigned i = 0; i < heritage->listener_count; i++) {
        if (!listener_is_at(heritage->listeners[i], address, &parts->port))
            return config_refuse(config, CONFIG_OPTION_takeover, reterr, -EINVAL,
                                 "the running sluiced (pid %d) serves port %u, not %s",
                                 (int)heritage->pid, parts->port, config->listen);
    }
    if (workers < heritage->listener_count)
        parts->listener_count = heritage->listener_count;
    for (unsigned i = 0; i < heritage->listener_count; i++) {
        parts->listeners[i] = heritage->listeners[i];
        heritage->listeners[i] = -1;
    }
    parts->heritage_listeners = heritage->listener_count;
    r = listener_add(parts->listeners, heritage->listener_count, parts->listener_count);
    if (r < 0)
        return config_refuse(config, CONFIG_OPTION_takeover, reterr, r,
                             "cannot open more sockets on port %u: %s", parts->port, strerror(-r));
    return 0;
}

/* With nobody to follow we are the first. */
static int find_predecessor(const struct config *config, const char *data_dir,
                            struct supervisor_settings *parts, struct heritage *heritage,
                            struct failure *reterr)
{
    struct failure why;
    int r;

    if (!config->takeover)
        return 0;
    r = data_dir ? heritage_ask(data_dir, heritage, &why) : -ENOENT;
    if (r == -ENOENT) {
        log_info("nobody_to_take_over", "data_dir=%s", data_dir ? data_dir : "none");
        return 0;
    }
    if (r < 0)
        return config_refuse(config, CONFIG_OPTION_takeover, reterr, r, "%s", why.text);
    log_info("taking_over", "pid=%d sockets=%u", (int)heritage->pid, heritage->listener_count);
    parts->heritage = heritage;
    return 0;
}

static int get_listeners(const struct config *config, const char *data_dir,
                         struct supervisor_settings *parts, struct failure *reterr)
{
    struct listen_address address;
    struct failure why;
    int r;

    r = listen_address_parse(sl_slice_str(config->listen), &address, &why);
    if (r < 0)
        return config_refuse(config, CONFIG_OPTION_listen, reterr, r, "%s", why.text);
    if (parts->heritage)
        return inherit_listeners(config, &address, parts, reterr);
    return open_listeners(config, &address, data_dir, parts, reterr);
}

/* --- all of it --- */

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

static int serve(const struct config *config, int started_fd, struct failure *reterr)
{
    unsigned workers = count_workers(config);
    struct supervisor_settings parts = {
        .config = config,
        .listener_count = workers,
        .started_fd = started_fd,
        .grace_ms = STOP_GRACE_MS,
        .worker_main = gateway_run,
    };
    int listeners[TAKEOVER_MAX_LISTENERS];
    char room[SL_DATA_DIR_SIZE];
    const char *data_dir = find_data_dir(config, room, NULL);
    struct heritage heritage;
    int r;

    parts.listeners = listeners;
    r = config_check_files(config, reterr);
    if (r == 0)
        r = choose_site(config, &parts.site, reterr);
    if (r == 0)
        r = set_open_files(config, reterr);
    if (r < 0)
        return r;
    parts.board = metrics_board_new(workers);
    parts.admission = admission_new((uint32_t)config->max_connections, workers);
    parts.slow_board = slow_board_new(workers);
    if (!parts.board || !parts.admission || !parts.slow_board)
        r = failure_set(reterr, -ENOMEM, "out of memory");
    if (r == 0)
        r = find_predecessor(config, data_dir, &parts, &heritage, reterr);
    if (r == 0)
        r = get_listeners(config, data_dir, &parts, reterr);
    if (r == 0 && !config->redis)
        r = open_private_redis(config, data_dir, &parts, reterr);
    if (r == 0)
        r = offer_takeover(config, data_dir, &parts, reterr);
    if (r == 0)
        r = supervisor_run(&parts, reterr);
    if (parts.heritage)
        heritage_done(parts.heritage);
    private_redis_free(parts.private_redis);
    admission_free(parts.admission);
    slow_board_free(parts.slow_board);
    metrics_board_free(parts.board);
    return r;
}

/* In the child: a descriptor that is told when it serves. In the parent, which waits for that, the
 * process ends here. */
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

static int act(const struct config *config, struct failure *reterr)
{
    struct buffer text = BUFFER_INIT;
    enum log_level level;
    int started_fd = -1;
    int r = 0;

    if (config->action == CONFIG_ACTION_RUN) {
        log_parse_level(config->log_level, &level);
        log_set_level(level);
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
