/* replay.c - sluice replay: events of a file, done again by users of this database.
 *
 * Lines go into batches (cli/replay_batch.h), which are sent when they are full, or when no further
 * line is there yet. With a rate a batch holds what is due by now. Refused lines are counted, the
 * first twenty of them said; SIGINT and SIGTERM end it between two batches. A line has at most a
 * megabyte. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/line_reader.h"
#include "cli/replay_batch.h"

enum {
    LINE_MAX_SIZE = 1024 * 1024,
    COMPLAINTS_MAX = 20,
    PROGRESS_MS = 200,
};

struct replay {
    const struct cli *cli;
    struct database database;
    struct line_reader *reader;
    struct replay_batch *batch;
    double rate; /* events a second; 0: as fast as it goes */
    bool is_loop;
    uint64_t start_ms, progress_ms; /* monotonic */
    uint64_t refused;
    bool shows_progress;
};

static volatile sig_atomic_t stopping; /* set by SIGINT and SIGTERM */

static void on_signal(int number)
{
    (void)number;
    stopping = 1;
}

static void listen_to_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal};

    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

/* ---- what the terminal sees ---- */

static uint64_t done_in_all(const struct replay *replay)
{
    const struct replay_counts *counts = replay_batch_counts(replay->batch);
    uint64_t sum = 0;

    for (int kind = 0; kind < REPLAY_KIND_COUNT; kind++)
        sum += counts->done[kind];
    return sum;
}

static void show_progress(struct replay *replay)
{
    uint64_t now_ms = clock_monotonic_ms();
    uint64_t passed_ms = now_ms - replay->start_ms;

    if (!replay->shows_progress || now_ms - replay->progress_ms < PROGRESS_MS || passed_ms == 0)
        return;
    replay->progress_ms = now_ms;
    fprintf(stderr, "\r%" PRIu64 " events, %" PRIu64 " a second, %" PRIu64 " refused \033[K",
            done_in_all(replay), done_in_all(replay) * 1000 / passed_ms, replay->refused);
}

static void end_progress(const struct replay *replay)
{
    if (replay->shows_progress)
        fputs("\r\033[K", stderr);
}

static void refuse(void *context, size_t line, const char *why)
{
    struct replay *replay = context;

    replay->refused++;
    if (replay->refused > COMPLAINTS_MAX)
        return;
    end_progress(replay);
    cli_failed_with(replay->cli, "line %zu: %s", line, why);
    if (replay->refused == COMPLAINTS_MAX)
        cli_failed_with(replay->cli, "further refusals are counted only");
}

static void print_summary(const struct replay *replay)
{
    const struct replay_counts *counts = replay_batch_counts(replay->batch);

    printf("%" PRIu64 " posts, %" PRIu64 " deletions, %" PRIu64 " follows, %" PRIu64
           " unfollows, %" PRIu64 " changes of users; %" PRIu64 " users made, %" PRIu64
           " lines refused; %.1f s\n",
           counts->done[REPLAY_POST], counts->done[REPLAY_DELETE], counts->done[REPLAY_FOLLOW],
           counts->done[REPLAY_UNFOLLOW], counts->done[REPLAY_USER], counts->users_made,
           replay->refused, (double)(clock_monotonic_ms() - replay->start_ms) / 1000);
}

/* ---- lines ---- */

static uint64_t events_taken(const struct replay *replay)
{
    return replay_batch_counts(replay->batch)->taken;
}

static void sleep_ms(uint64_t ms)
{
    struct timespec time = {(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};

    nanosleep(&time, NULL); /* a signal may end it early, which is as well */
}

/* With a rate: sends what is due and waits for the next event to become due. */
static int keep_pace(struct replay *replay, struct failure *reterr)
{
    uint64_t due_ms, now_ms;
    int r;

    if (replay->rate == 0)
        return 0;
    due_ms = replay->start_ms + (uint64_t)((double)events_taken(replay) * 1000 / replay->rate);
    now_ms = clock_monotonic_ms();
    if (now_ms >= due_ms)
        return 0;
    r = replay_batch_send(replay->batch, reterr);
    while (r == 0 && !stopping && (now_ms = clock_monotonic_ms()) < due_ms) {
        sleep_ms(due_ms - now_ms < PROGRESS_MS ? due_ms - now_ms : PROGRESS_MS);
        show_progress(replay);
    }
    return r;
}

/* One pass over the file. 0; a negative errno. */
static int run_pass(struct replay *replay, struct failure *reterr)
{
    enum line_status status = LINE_READ;
    struct sl_slice line;
    int r = 0;

    while (r == 0 && status != LINE_END && !stopping) {
        r = keep_pace(replay, reterr);
        if (r < 0 || stopping)
            break;
        status = line_reader_next(replay->reader, replay_batch_is_empty(replay->batch), &line);
        switch (status) {
        case LINE_READ:
            if (line.size > 0)
                r = replay_batch_add(replay->batch, line, line_reader_number(replay->reader),
                                     reterr);
            break;
        case LINE_TOO_LONG:
            refuse(replay, line_reader_number(replay->reader), "longer than a megabyte");
            break;
        case LINE_FAILED:
            return failure_set(reterr, -errno, "cannot read: %s", strerror(errno));
        default:
            break;
        }
        if (r == 0 && status != LINE_READ)
            r = replay_batch_send(replay->batch, reterr);
        show_progress(replay);
    }
    return r == 0 ? replay_batch_send(replay->batch, reterr) : r;
}

static int run_all(struct replay *replay, struct failure *reterr)
{
    uint64_t before;
    int r;

    do {
        before = events_taken(replay);
        r = run_pass(replay, reterr);
        if (r == 0 && replay->is_loop)
            r = line_reader_rewind(replay->reader);
    } while (r == 0 && replay->is_loop && !stopping && events_taken(replay) > before);
    return r;
}

/* ---- the command ---- */

static void replay_done(struct replay *replay)
{
    replay_batch_free(replay->batch);
    line_reader_free(replay->reader);
    database_close(&replay->database);
}

static int replay_init(struct replay *replay, int fd)
{
    replay->reader = line_reader_new(fd, LINE_MAX_SIZE);
    replay->batch = replay_batch_new(&replay->database, refuse, replay);
    if (!replay->reader || !replay->batch)
        return cli_failed_with(replay->cli, "out of memory");
    replay->shows_progress = isatty(STDERR_FILENO);
    return database_open(&replay->database, replay->cli, 0);
}

static int run_replay(struct replay *replay, int fd)
{
    struct failure failure;
    int status, r;

    status = replay_init(replay, fd);
    if (status != CLI_GOOD)
        return status;
    listen_to_signals();
    replay->start_ms = replay->progress_ms = clock_monotonic_ms();
    r = run_all(replay, &failure);
    end_progress(replay);
    if (r < 0)
        status = cli_failed_with(replay->cli, "before line %zu: %s",
                                 line_reader_number(replay->reader) + 1, failure.text);
    else if (stopping && !replay->is_loop)
        status = cli_failed_with(replay->cli, "interrupted after line %zu",
                                 line_reader_number(replay->reader));
    else if (replay->refused > 0)
        status = CLI_FAILED;
    print_summary(replay);
    return status == CLI_GOOD ? cli_done(replay->cli) : status;
}

static double read_rate(const struct cli *cli, const char *text)
{
    char *end;
    double rate = strtod(text, &end);

    if (end == text || *end || !(rate > 0 && rate <= 1e9))
        cli_usage(cli, "--rate must be a number of events a second, not '%s'", text);
    return rate;
}

static int run(struct cli *cli, int argc, char **argv)
{
    struct replay replay = {.cli = cli};
    int option, status, fd = STDIN_FILENO;

    while ((option = cli_option(cli, argc, argv)) >= 0) {
        if (option == 'r')
            replay.rate = read_rate(cli, optarg);
        else
            replay.is_loop = true;
    }
    if (argc - optind != 1)
        cli_usage(cli, "one FILE is needed");
    if (strcmp(argv[optind], "-") != 0)
        fd = open(argv[optind], O_RDONLY | O_CLOEXEC);
    else if (replay.is_loop)
        cli_usage(cli, "standard input cannot be read in a loop");
    if (fd < 0)
        return cli_failed_with(cli, "cannot open '%s': %s", argv[optind], strerror(errno));
    status = run_replay(&replay, fd);
    replay_done(&replay);
    if (fd != STDIN_FILENO)
        close(fd);
    return status;
}

static const struct cli_option options[] = {
    {"rate", 'r', "PER_SECOND", "At most this many events a second; the default is no limit.", NULL,
     CLI_ONCE},
    {"loop", 'l', NULL, "Start again after the end, until Ctrl-C.", NULL, CLI_ONCE},
    CLI_OPTIONS_END,
};

const struct command command_replay = {
    .name = "replay",
    .arguments = "FILE",
    .summary = "replay the events of a file: posts, follows, users",
    .help =
        "The file has one JSON event per line: posts, deletions, follows, unfollows, and changes "
        "of "
        "users. The FILE - is standard input, whose lines are posted as they come.\n\n"
        "Users are created on demand, with the login from the file, or their id if it has none; "
        "existing users are used. Of changes of users, login and name are replayed. Posts get new "
        "ids, and the file's deletions and references follow them. Text, language, point, place, "
        "links, media, references, source, and the audiences public and followers are kept. A "
        "deletion must refer to a post of the same file, among the last million.\n\n"
        "Blank lines are ignored. Lines that fail are reported on standard error and skipped; "
        "then the exit status is 1. When the connection to Redis breaks, it ends and names the "
        "line it had reached; of the last lines before that one, which were sent together, some "
        "may have been done. At the end one line on standard output says how much was done.",
    .options = options,
    .examples = "sluice replay events.ndjson --rate 100\n"
                "sluice tail firehose | sluice replay - --redis redis://other\n",
    .words = CLI_FILE,
    .run = run,
};
