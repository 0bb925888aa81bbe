/* cluster_try.c - sluice cluster try: a Redis Cluster, sluiced and demo posts with one command.
 *
 * Everything is started in order, checked once a second, and ended in reverse order by Ctrl-C or
 * SIGTERM; if this program is killed, its children end, too (children.h). Nodes that end are
 * restarted, because the purpose is to try what happens when they are killed. All files are in one
 * directory, which is removed at the end unless it was named. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <hiredis/hiredis.h>

#include "base/clock.h"
#include "cli/argument.h"
#include "cli/children.h"
#include "cli/database.h"
#include "cli/demo.h"
#include "cli/token_sign.h"
#include "cli/sluiced_program.h"
#include "cli/try_nodes.h"
#include "src/model/id.h"

enum {
    WATCH_MS = 1000,
    READY_STEP_MS = 50,
    STOP_MS = 15000,
    TOKEN_TTL_S = 7 * 86400,
    LINE_SIZE = 1024,
    PATH_SIZE = PATH_MAX + 32, /* of files in the directory */
};

static const char login[] = "you";
static const char token_scope[] =
    "stream:filter stream:sample stream:firehose stream:home read write";

struct trial {
    struct cli *cli;
    const char *dir, *listen, *sluiced_program;
    double per_minute;
    char folder[PATH_MAX]; /* absolute; empty: none yet */
    struct try_nodes nodes;
    char redis_url[64];
    struct child sluiced, demo;
    unsigned port; /* of sluiced */
    struct buffer token;
};

static void path_of(const struct trial *trial, const char *name, char room[static PATH_SIZE])
{
    snprintf(room, PATH_SIZE, "%s/%s", trial->folder, name);
}

/* ---- the directory ---- */

static int make_folder(struct trial *trial, struct failure *reterr)
{
    const char *parent = getenv("TMPDIR");

    if (trial->dir) {
        if ((mkdir(trial->dir, 0700) < 0 && errno != EEXIST) ||
            !realpath(trial->dir, trial->folder)) {
            trial->folder[0] = '\0';
            return failure_set(reterr, -errno, "cannot use the directory '%s': %s", trial->dir,
                               strerror(errno));
        }
        return 0;
    }
    snprintf(trial->folder, PATH_MAX, "%s/sluice-cluster-XXXXXX",
             parent && *parent == '/' ? parent : "/tmp");
    if (mkdtemp(trial->folder))
        return 0;
    trial->folder[0] = '\0';
    return failure_set(reterr, -errno, "cannot make a temporary directory: %s", strerror(errno));
}

static int remove_one(const char *path, const struct stat *state, int kind, struct FTW *where)
{
    (void)state;
    (void)kind;
    (void)where;
    return remove(path);
}

static void remove_folder(const struct trial *trial)
{
    if (trial->folder[0] && !trial->dir)
        nftw(trial->folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* The secret of the tokens; that of an earlier run is reused. */
static int make_secret(const struct trial *trial, char path[static PATH_SIZE],
                       struct failure *reterr)
{
    unsigned char bytes[32];
    FILE *file;
    int fd, r = 0;

    if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
        return failure_set(reterr, -EIO, "cannot get random bytes");
    path_of(trial, "secret", path);
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 && errno == EEXIST)
        return 0;
    file = fd < 0 ? NULL : fdopen(fd, "w");
    for (size_t i = 0; file && i < sizeof(bytes); i++)
        fprintf(file, "%02x", bytes[i]);
    if (!file || fclose(file) != 0)
        r = failure_set(reterr, -errno, "cannot write '%.300s': %s", path, strerror(errno));
    return r;
}

/* ---- sluiced ---- */

/* Reads its ready line from the pipe. 0; -EIO: it has ended; -EINTR. */
static int wait_ready(struct trial *trial, int fd, struct failure *reterr)
{
    char line[LINE_SIZE] = "", log[PATH_SIZE], said[CHILD_WORDS_SIZE];
    size_t used = 0;
    int r = 0;

    while (r == 0 && !strchr(line, '\n')) {
        ssize_t got = read(fd, line + used, sizeof(line) - 1 - used);

        if (got > 0) {
            used += (size_t)got;
            line[used] = '\0';
        } else if (got == 0) {
            break;
        } else {
            r = children_rest(READY_STEP_MS);
        }
    }
    if (r < 0 || sscanf(line, "{\"port\":%u", &trial->port) == 1)
        return r;
    path_of(trial, "sluiced.log", log);
    child_last_words(log, said);
    return failure_set(reterr, -EIO, "sluiced did not start: %s", said);
}

static int start_sluiced(struct trial *trial, const char *secret, struct failure *reterr)
{
    char log[PATH_SIZE], found[PATH_MAX];
    const char *program = trial->sluiced_program ? trial->sluiced_program : sluiced_program(found);
    const char *const argv[] = {
        program,       "--dev",       "--redis", trial->redis_url,    "--listen",
        trial->listen, "--run-tasks", "on",      "--jwt-secret-file", secret,
        "--ready-fd",  "3",           NULL,
    };
    int ready[2], r;

    path_of(trial, "sluiced.log", log);
    if (pipe2(ready, O_CLOEXEC | O_NONBLOCK) < 0)
        return failure_set(reterr, -errno, "cannot make a pipe: %s", strerror(errno));
    r = child_start(&trial->sluiced, argv, trial->folder, log, ready[1], reterr);
    close(ready[1]);
    if (r == 0)
        r = wait_ready(trial, ready[0], reterr);
    else if (r == -ENOENT)
        r = failure_set(reterr, r, "there is no program '%s'; --sluiced says where it is", program);
    close(ready[0]);
    return r;
}

/* ---- the database ---- */

/* Creates the user whose token is printed. */
static int make_you(struct database *database, uint64_t *ret_id, struct failure *reterr)
{
    const struct sl_user_ref you = sl_user_by_login(sl_slice_str(login));
    struct sl_call call = SL_CALL_INIT;
    redisReply *reply = NULL;
    struct sl_written written;
    int r;

    r = database_find_id(database, &you, ret_id, reterr);
    if (r != -ENOENT)
        return r;
    r = sl_user_create_call(&call, &database->meta, sl_slice_str(database->request_id),
                            sl_slice_str(login), SL_SLICE("You"), reterr);
    r = database_run(database, &call, r, &reply, reterr);
    if (r == 0)
        r = sl_write_reply(reply, &written, reterr);
    if (r == 0)
        *ret_id = written.id;
    freeReplyObject(reply);
    return r;
}

static int make_token(struct trial *trial, const char *secret, uint64_t id, struct failure *reterr)
{
    const json_int_t now_s = (json_int_t)(clock_wall_ms() / 1000);
    char subject[SL_ID_TEXT_SIZE];
    json_t *claims = json_pack("{s:s, s:s, s:I, s:I}", "sub", sl_id_print(id, subject), "scope",
                               token_scope, "iat", now_s, "exp", now_s + TOKEN_TTL_S);
    int r = token_sign("HS256", secret, claims, &trial->token, reterr);

    json_decref(claims);
    return r;
}

/* Creates or finds the database. CLI_GOOD, or CLI_FAILED after printing why. */
static int fill(struct trial *trial, const char *secret)
{
    struct database database;
    struct failure failure;
    uint64_t id;
    int status = database_open(&database, trial->cli, 0);

    if (status != CLI_GOOD)
        return status;
    if (make_you(&database, &id, &failure) < 0 || make_token(trial, secret, id, &failure) < 0)
        status = cli_failed(trial->cli, &failure);
    database_close(&database);
    return status;
}

/* ---- the demo posts ---- */

static int run_demo(void *context)
{
    const struct trial *trial = context;

    return demo_run(trial->cli, login, trial->per_minute);
}

static int start_demo(struct trial *trial, struct failure *reterr)
{
    char log[PATH_SIZE];

    if (trial->per_minute == 0)
        return 0;
    path_of(trial, "demo.log", log);
    return child_fork(&trial->demo, run_demo, trial, log, reterr);
}

/* ---- the command ---- */

/* The path of this program, usable in another directory. */
static const char *self(char room[static PATH_MAX])
{
    const char *name = program_invocation_name;

    return strchr(name, '/') && realpath(name, room) ? room : name;
}

static void say_what_to_try(const struct trial *trial)
{
    const char *colon = strrchr(trial->listen, ':');
    const bool is_any = trial->listen[0] == '*' || !colon;
    char url[300], room[PATH_MAX];

    snprintf(url, sizeof(url), "http://%.*s:%u", is_any ? 9 : (int)(colon - trial->listen),
             is_any ? "127.0.0.1" : trial->listen, trial->port);
    printf("Sluice listens on %s, on a Redis Cluster of three masters and three replicas.\n\n"
           "To look at it, open this in a browser; it contains a development token, valid for a "
           "week:\n\n"
           "  %s/#token=%.*s\n\n",
           url, url, SL_SLICE_ARG(buffer_slice(&trial->token)));
    printf("In another terminal:\n\n"
           "  export SLUICE_REDIS=%s\n"
           "  export SLUICE_URL=%s\n"
           "  export SLUICE_TOKEN=%.*s\n"
           "  %s tail firehose --pretty\n"
           "  %s post --user %s 'Hello, cluster!'\n"
           "  %s shards list\n\n",
           trial->redis_url, url, SL_SLICE_ARG(buffer_slice(&trial->token)), self(room), self(room),
           login, self(room));
    printf("Kill a master and watch: its replica takes over after some seconds, and the streams "
           "go on. It\ncomes back as a replica.\n\n"
           "  kill -9 %d\n"
           "  curl -s '%s/readyz?verbose'\n"
           "  redis-cli -p %u cluster nodes\n\n",
           (int)trial->nodes.children[0].pid, url, trial->nodes.port + 1U);
    printf("Ctrl-C ends everything; the posts %s%s.\n", trial->dir ? "stay in " : "go with it",
           trial->dir ? trial->folder : "");
    fflush(stdout);
}

/* CLI_FAILED: printed why; -EINTR: should end. */
static int start_all(struct trial *trial)
{
    char secret[PATH_SIZE];
    struct failure failure;
    int status, r;

    r = make_folder(trial, &failure);
    if (r == 0)
        r = make_secret(trial, secret, &failure);
    if (r == 0) {
        trial->nodes.folder = trial->folder;
        r = try_nodes_start(&trial->nodes, &failure);
    }
    if (r < 0)
        return r == -EINTR ? r : cli_failed(trial->cli, &failure);
    snprintf(trial->redis_url, sizeof(trial->redis_url),
             "redis+cluster://127.0.0.1:%u,127.0.0.1:%u", trial->nodes.port,
             trial->nodes.port + 1U);
    trial->cli->redis_url = trial->redis_url;
    status = fill(trial, secret);
    if (status != CLI_GOOD)
        return status;
    r = start_sluiced(trial, secret, &failure);
    if (r == 0)
        r = start_demo(trial, &failure);
    return r == 0 || r == -EINTR ? r : cli_failed(trial->cli, &failure);
}

/* Returns when it should end (CLI_GOOD), or when sluiced ends by itself. */
static int watch(struct trial *trial)
{
    char how[CHILD_END_SIZE], log[PATH_SIZE], said[CHILD_WORDS_SIZE];

    while (children_rest(WATCH_MS) == 0) {
        try_nodes_watch(&trial->nodes);
        if (!child_runs(&trial->demo))
            start_demo(trial, NULL); /* on failure, again a second later */
        if (child_runs(&trial->sluiced))
            continue;
        child_describe_end(&trial->sluiced, how);
        path_of(trial, "sluiced.log", log);
        child_last_words(log, said);
        return cli_failed_with(trial->cli, "sluiced ended %s: %s", how, said);
    }
    return CLI_GOOD;
}

static void stop_all(struct trial *trial)
{
    children_stop(&trial->demo, 1, SIGKILL, 0);
    children_stop(&trial->sluiced, 1, SIGTERM, STOP_MS);
    try_nodes_stop(&trial->nodes);
    remove_folder(trial);
    buffer_done(&trial->token);
}

static double read_rate(const struct cli *cli, const char *text)
{
    char *end;
    double rate = strtod(text, &end);

    if (end == text || *end || !(rate >= 0 && rate <= 60000))
        cli_usage(cli, "--rate must be a number of posts a minute, up to 60000, not '%s'", text);
    return rate;
}

static int run(struct cli *cli, int argc, char **argv)
{
    struct trial trial = {
        .cli = cli,
        .listen = "127.0.0.1:8080",
        .per_minute = 90,
        .nodes = {.program = "redis-server", .port = 7001},
        .token = BUFFER_INIT,
    };
    int option, status;

    while ((option = cli_option(cli, argc, argv)) >= 0) {
        if (option == 'l')
            trial.listen = optarg;
        else if (option == 'd')
            trial.dir = optarg;
        else if (option == 'r')
            trial.per_minute = read_rate(cli, optarg);
        else if (option == 'p')
            trial.nodes.port = (uint16_t)argument_number(cli, "port", optarg, TRY_PORT_MAX);
        else if (option == 's')
            trial.nodes.program = optarg;
        else
            trial.sluiced_program = optarg;
    }
    cli_no_arguments(cli, argc, argv);
    children_listen();
    status = start_all(&trial);
    if (status == CLI_GOOD) {
        say_what_to_try(&trial);
        status = watch(&trial);
    }
    stop_all(&trial);
    return status == CLI_GOOD ? cli_done(cli) : CLI_FAILED;
}

static const struct cli_option options[] = {
    {"listen", 'l', "HOST:PORT", "The address of sluiced; the default is 127.0.0.1:8080.", NULL,
     CLI_ONCE},
    {"port", 'p', "N",
     "The port of the first node; the default is 7001. The other five nodes use the next ones, "
     "and each node uses another port 10000 above its own.",
     NULL, CLI_ONCE},
    {"dir", 'd', "DIR",
     "Keep everything in this directory, and continue with what is in it. The default is a "
     "temporary one, which is removed at the end.",
     CLI_FILE, CLI_ONCE},
    {"rate", 'r', "PER_MINUTE",
     "The number of demo posts a minute; the default is 90, and 0 "
     "means none.",
     NULL, CLI_ONCE},
    {"redis-server", 's', "PROGRAM",
     "The server program for the nodes, Redis 7.0 or newer, or valkey-server; the default is "
     "redis-server.",
     CLI_FILE, CLI_ONCE},
    {"sluiced", 'g', "PROGRAM", "The sluiced to start; the default is that of this installation.",
     CLI_FILE, CLI_ONCE},
    CLI_OPTIONS_END,
};

const struct command command_cluster_try = {
    .name = "cluster try",
    .arguments = "",
    .summary = "try Sluice on a Redis Cluster on this machine",
    .help = "Starts three masters and three replicas of redis-server on 127.0.0.1, creates a "
            "database with 64 shards in them, starts sluiced and a producer of demo posts, and "
            "prints what to look at and what to try. Needs only redis-server and sluiced, and no "
            "root.\n\n"
            "A node that is killed is restarted some seconds later; what happens to the nodes is "
            "printed. Ctrl-C or SIGTERM ends everything. This is for demonstration: a real cluster "
            "has each node on a machine of its own.",
    .options = options,
    .examples = "sluice cluster try\n"
                "sluice cluster try --dir /var/tmp/sluice-cluster --port 7101 --rate 600\n",
    .run = run,
};
