/* worker.c - runs the tasks of the database until it is stopped.
 *
 * The worker is that of the core (src/tasks/worker.h); here are its options, and the signals that
 * let it finish its current tasks. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "cli/argument.h"
#include "cli/database.h"
#include "src/tasks/worker_log.h"

enum { CONCURRENCY_MAX = 64, LEASE_MAX_MS = 3600000 };

static struct sl_worker *running; /* for the signal handler */

static void on_signal(int number)
{
    (void)number;
    sl_worker_stop(running);
}

static uint32_t read_concurrency(const struct cli *cli)
{
    char *end;
    long number = strtol(optarg, &end, 10);

    if (end == optarg || *end || number < 1 || number > CONCURRENCY_MAX)
        cli_usage(cli, "--concurrency must be a number from 1 to %d, not '%s'", CONCURRENCY_MAX,
                  optarg);
    return (uint32_t)number;
}

static int work(struct cli *cli, const struct sl_worker_options *options)
{
    const struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    struct sl_redis_address address;
    struct database database;
    struct failure failure;
    int status, r;

    status = database_open(&database, cli, 0);
    if (status != CLI_GOOD)
        return status;
    r = database_address(cli, &address, &failure);
    if (r == 0)
        r = sl_worker_new(&address, &database.meta, options, &running, &failure);
    database_close(&database);
    if (r < 0)
        return cli_failed(cli, &failure);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    log_info("worker_ready", "concurrency=%" PRIu32, options->concurrency);
    r = sl_worker_run(running, &failure);
    signal(SIGTERM, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    sl_worker_free(running);
    return r < 0 ? cli_failed(cli, &failure) : CLI_GOOD;
}

static int run(struct cli *cli, int argc, char **argv)
{
    struct sl_worker_log log = SL_WORKER_LOG_INIT;
    struct sl_worker_options options = {.concurrency = 4, .tell = sl_worker_log, .context = &log};
    int option;

    while ((option = cli_option(cli, argc, argv)) >= 0) {
        if (option == 'c')
            options.concurrency = read_concurrency(cli);
        else if (option == 'a')
            options.accept_archive = true;
        else if (option == 'l')
            options.lease_ms =
                (uint32_t)argument_duration_ms(cli, "lease-ms", optarg, 1, LEASE_MAX_MS);
        else
            options.until_empty = true;
    }
    cli_no_arguments(cli, argc, argv);
    options.archive = cli->archive_url; /* after parsing, because they are options, too */
    options.cache = cli->cache_url;
    return work(cli, &options);
}

static const struct cli_option options[] = {
    {"concurrency", 'c', "N", "How many tasks to run at once, 1 to 64; the default is 4.", NULL,
     CLI_ONCE},
    {"lease-ms", 'l', "MS",
     "Others take over the tasks of a worker that has been silent for this time: 30s or 30000; "
     "the default is 30s.",
     NULL, CLI_ONCE},
    {"accept-archive", 'a', NULL,
     "Posts of this database went to another archive, which is lost: use this one, without them.",
     NULL, CLI_ONCE},
    {"until-empty", 'u', NULL, "End when every task is done or a dead letter.", NULL, CLI_ONCE},
    CLI_OPTIONS_END,
};

const struct command command_worker = {
    .name = "worker",
    .arguments = "",
    .summary = "run the tasks that writes leave behind, until SIGTERM",
    .help =
        "Any number of workers may run in parallel. On SIGTERM or Ctrl-C it finishes the tasks "
        "it holds and ends.\n\n"
        "With --archive, posts beyond profile-max are moved there after 'sluice config set "
        "archive 1': the file, or the tables in an existing database, are created if there are "
        "none. Once posts have been archived no archive is created, and no other one is "
        "accepted. While the archive is away its tasks wait, and others are run. Without it such "
        "tasks fail, and the posts stay in Redis. What the archive erases is removed from the "
        "--cache, too.",
    .options = options,
    .examples = "sluice worker --archive sqlite:/var/lib/sluice/archive.db\n"
                "sluice worker --until-empty\n",
    .run = run,
};
