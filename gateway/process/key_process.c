/* key_process.c - the parent's side of the process that fetches keys, and the loop of that process.
 *
 * The loop waits in libcurl, also for signals (signalfd). An alarm is reset in each turn: a process
 * that hangs is ended by it, and restarted as after a crash. */
#include "gateway/process/key_process.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/log.h"
#include "gateway/config/config_keys.h"
#include "gateway/metrics/health.h"
#include "gateway/provider/key_fetcher.h"

enum { TURN_MS = 10000, HANGS_AFTER_S = 60 };

/* ---- the parent's side ---- */

static bool has_sources(const struct config *config)
{
    struct key_sources sources = {0};
    bool has_some = config_key_sources(config, &sources, NULL) == 0 && sources.count > 0;

    key_sources_done(&sources);
    return has_some;
}

void key_process_init(struct key_process *keys, const struct config *config)
{
    static const struct side_lines lines = {
        .started = "key_fetcher_started",
        .not_started = "key_fetcher_not_started",
        .stopped = "key_fetcher_stopped",
        .died = "key_fetcher_died",
    };

    *keys = (struct key_process){.process = {.lines = &lines, .pidfd = -1}};
    keys->is_wanted = has_sources(config);
}

void key_process_reload(struct key_process *keys, const struct config *config)
{
    keys->is_wanted = has_sources(config);
    keys->is_told = !side_process_is_down(&keys->process);
    side_process_signal(&keys->process, SIGTERM);
}

bool key_process_note_end(struct key_process *keys, bool is_stopping, struct metrics *slot,
                          uint64_t now_ms)
{
    bool was_told = keys->is_told || is_stopping;

    side_process_note_end(&keys->process, was_told, now_ms);
    if (!side_process_is_down(&keys->process))
        return false;
    keys->is_told = false;
    metrics_slot_reset_gauges(slot);
    health_forget(slot);
    return !was_told;
}

/* ---- the child ---- */

static int open_signals(void)
{
    sigset_t ours;

    sigemptyset(&ours);
    sigaddset(&ours, SIGTERM);
    sigaddset(&ours, SIGINT);
    sigprocmask(SIG_BLOCK, &ours, NULL);
    signal(SIGPIPE, SIG_IGN);
    return signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
}

static bool is_told(int signal_fd)
{
    struct signalfd_siginfo info;

    return read(signal_fd, &info, sizeof(info)) == sizeof(info);
}

static int fetch(const struct gateway_parts *parts, const struct key_sources *sources,
                 int signal_fd)
{
    const struct config *config = parts->config;
    const struct key_fetcher_settings settings = {
        .sources = sources,
        .board = parts->key_board,
        .metrics = metrics_keys(parts->board),
        .ca_file = config->jwks_ca,
        .least_ms = config->jwks_refresh_min_ms,
        .most_ms = config->jwks_refresh_max_ms,
        .again_ms = config->jwks_again_ms,
        .timeout_ms = (uint32_t)config->jwks_timeout_ms,
    };
    struct key_fetcher *fetcher = key_fetcher_new(&settings);

    if (!fetcher)
        return EXIT_FAILURE;
    while (!is_told(signal_fd)) {
        alarm(HANGS_AFTER_S);
        key_fetcher_turn(fetcher, signal_fd, TURN_MS);
    }
    key_fetcher_free(fetcher);
    return EXIT_SUCCESS;
}

int key_process_main(const struct gateway_parts *parts)
{
    struct key_sources sources = {0};
    struct failure failure = {"out of memory"};
    int signal_fd = open_signals();
    int status = EXIT_FAILURE;

    if (signal_fd >= 0 && config_key_sources(parts->config, &sources, &failure) == 0)
        status = fetch(parts, &sources, signal_fd);
    if (status != EXIT_SUCCESS)
        log_error("cannot_start", "process=keys why=\"%s\"", failure.text);
    key_sources_done(&sources);
    if (signal_fd >= 0)
        close(signal_fd);
    return status;
}
