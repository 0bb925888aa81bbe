/* worker.c - runs the tasks of the database until told to stop. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "cli/database.h"
#include "src/tasks/worker_log.h"

enum { CONCURRENCY_MAX = 64, LEASE_MAX_MS = 3600000 };

static struct sl_worker *running; /* for the signal handler */

static void on_signal(int number)
{
    (void)number;
    sl_worker_stop(running);
}

static uint32_t read_number(const struct cli *cli, const char *name, long most)
{
    char *end;
    long number = strtol(optarg, &end, 10);

    if (end == optarg || *end || number < 1 || number > most)
        cli_usage(cli, "%s is a number from 1 to %ld, not '%s'", name, most, optarg);
    return (uint32_t)number;
}

static int work(struct cli *cli, const struct sl_worker_options *options)
{
    const struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    struct sl_redis_address address;
    struct database database;
    struct failure failure;
    int status, r;

    status = database_open(&database, cli, 1);
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
    static const struct option names[] = {
        {"concurrency", required_argument, NULL, 'c'},
        {"lease-ms", required_argument, NULL, 'l'},
        {"until-empty", no_argument, NULL, 'u'},
        {0},
    };
    struct sl_worker_log log = SL_WORKER_LOG_INIT;
    struct sl_worker_options options = {.concurrency = 4, .tell = sl_worker_log, .context = &log};
    int option;

    while ((option = cli_option(cli, argc, argv, names)) >= 0) {
        if (option == 'c')
            options.concurrency = read_number(cli, "--concurrency", CONCURRENCY_MAX);
        else if (option == 'l')
            options.lease_ms = read_number(cli, "--lease-ms", LEASE_MAX_MS);
        else
            options.until_empty = true;
    }
    if (optind < argc)
        cli_usage(cli, "'%s' is one argument too many", argv[optind]);
    options.archive = cli->archive_url; /* behind the options: they are two of them */
    options.cache = cli->cache_url;
    return work(cli, &options);
}

const struct command command_worker = {
    .name = "worker",
    .arguments = "[--archive URL] [--cache URL] [--concurrency N] [--lease-ms MS] [--until-empty]",
    .summary = "run the tasks that writes leave behind, until SIGTERM",
    .help = "Any number of workers may run beside each other. SIGTERM or Ctrl-C: finishes the\n"
            "tasks it holds and ends.\n\n"
            "--archive URL    where posts go that outgrow profile-max, once 'sluice config set\n"
            "                 archive 1' says so: sqlite:/path/to/file, made where there is none,\n"
            "                 or mysql://user[:password]@host[:port]/database, where there is one\n"
            "--cache URL      what the archive erases is taken out of this cache, too\n"
            "--concurrency N  tasks at once (default 4)\n"
            "--lease-ms MS    the tasks of a worker that has not been heard of for so long are\n"
            "                 taken over by others (default 30000)\n"
            "--until-empty    end when every task is done or dead\n",
    .run = run,
};
