/* try_nodes.c - runs redis-server six times, and makes them a cluster with a few CLUSTER commands.
 *
 * Nodes meet through the first one, masters get a third of the slots each, and when all know each
 * other, replicas get their masters: like redis-cli --cluster create, but without unnecessary
 * waiting. Nodes that know each other from an earlier run meet again, which tells them of new
 * ports. Each request uses a new connection, because speed does not matter. */
#include "cli/try_nodes.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <hiredis/hiredis.h>

#include "base/clock.h"
#include "src/redis/cluster_map.h"

enum {
    STEP_MS = 50,
    START_MS = 60000,  /* for nodes with much data to load */
    STOP_MS = 3000,    /* then they are killed; what they have acknowledged is in their files */
    RESTART_MS = 8000, /* by then the others have chosen a new master */
    ANSWER_S = 2,
};

static uint16_t port_of(const struct try_nodes *nodes, size_t n)
{
    return (uint16_t)(nodes->port + n);
}

static void folder_of(const struct try_nodes *nodes, size_t n, char room[static PATH_MAX])
{
    snprintf(room, PATH_MAX, "%s/node-%zu", nodes->folder, n + 1);
}

static void log_of(const struct try_nodes *nodes, size_t n, char room[static PATH_MAX])
{
    snprintf(room, PATH_MAX, "%s/node-%zu/redis.log", nodes->folder, n + 1);
}

/* ---- a node ---- */

/* Returns the reply, which the caller frees; NULL: none. */
static redisReply *ask(const struct try_nodes *nodes, size_t n, const char *format, ...)
{
    const struct timeval time = {.tv_sec = ANSWER_S};
    redisContext *redis = redisConnectWithTimeout("127.0.0.1", port_of(nodes, n), time);
    redisReply *reply = NULL;
    va_list values;

    va_start(values, format);
    if (redis && !redis->err && redisSetTimeout(redis, time) == REDIS_OK)
        reply = redisvCommand(redis, format, values);
    va_end(values);
    redisFree(redis);
    return reply;
}

/* The same if the expected reply is OK. */
static int command(const struct try_nodes *nodes, size_t n, struct failure *reterr,
                   const char *what, redisReply *reply)
{
    int r = 0;

    if (!reply)
        r = failure_set(reterr, -EIO, "127.0.0.1:%u does not answer %s", port_of(nodes, n), what);
    else if (reply->type == REDIS_REPLY_ERROR)
        r = failure_set(reterr, -EIO, "127.0.0.1:%u refuses %s: %s", port_of(nodes, n), what,
                        reply->str);
    freeReplyObject(reply);
    return r;
}

/* Whether INFO or CLUSTER INFO contains the line. */
static bool says(redisReply *reply, const char *line)
{
    const char *found = NULL;

    if (reply && reply->type == REDIS_REPLY_STRING)
        found = strstr(reply->str, line);
    while (found && strchr("\r\n", found[strlen(line)]) == NULL)
        found = strstr(found + 1, line);
    freeReplyObject(reply);
    return found != NULL;
}

static bool answers(const struct try_nodes *nodes, size_t n)
{
    redisReply *reply = ask(nodes, n, "PING");
    bool is_well = reply && reply->type == REDIS_REPLY_STATUS;

    freeReplyObject(reply);
    return is_well;
}

/* 0; -EIO: it has ended. */
static int must_run(struct try_nodes *nodes, size_t n, struct failure *reterr)
{
    char how[CHILD_END_SIZE], said[CHILD_WORDS_SIZE], log[PATH_MAX];

    if (child_runs(&nodes->children[n]))
        return 0;
    child_describe_end(&nodes->children[n], how);
    log_of(nodes, n, log);
    child_last_words(log, said);
    return failure_set(reterr, -EIO, "%s at port %u ended %s: %s", nodes->program,
                       port_of(nodes, n), how, said);
}

static int start(struct try_nodes *nodes, size_t n, struct failure *reterr)
{
    char folder[PATH_MAX], log[PATH_MAX], port[8];
    /* clang-format off */
    const char *const argv[] = {
        nodes->program,
        "--port", port,
        "--bind", "127.0.0.1",
        "--cluster-enabled", "yes",
        "--cluster-config-file", "nodes.conf",
        "--cluster-node-timeout", "3000",
        "--cluster-require-full-coverage", "no",
        "--appendonly", "yes",
        "--save", "",
        "--repl-diskless-sync-delay", "0",
        "--zset-max-ziplist-entries", "512", /* the name before 7.0, which is refused below */
        "--client-output-buffer-limit", "pubsub 256mb 64mb 60",
        NULL,
    };
    /* clang-format on */
    int r;

    folder_of(nodes, n, folder);
    log_of(nodes, n, log);
    snprintf(port, sizeof(port), "%u", port_of(nodes, n));
    if (mkdir(folder, 0700) < 0 && errno != EEXIST)
        return failure_set(reterr, -errno, "cannot make the directory '%.300s': %s", folder,
                           strerror(errno));
    r = child_start(&nodes->children[n], argv, folder, log, -1, reterr);
    return r == -ENOENT ? failure_set(reterr, r,
                                      "there is no program '%s': install Redis 7.0 or newer, or "
                                      "name another with --redis-server",
                                      nodes->program)
                        : r;
}

/* ---- all nodes ---- */

static int check_port(unsigned port, struct failure *reterr)
{
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_port = htons((uint16_t)port),
                                        .sin_addr = {htonl(INADDR_LOOPBACK)}};
    const int yes = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), r = 0;

    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
        r = -errno;
    close(fd);
    return r == 0 ? 0
                  : failure_set(reterr, r,
                                "port %u of 127.0.0.1 cannot be had: %s; --port N begins at "
                                "another one",
                                port, strerror(-r));
}

static int check_ports(const struct try_nodes *nodes, struct failure *reterr)
{
    int r = 0;

    for (size_t n = 0; r == 0 && n < TRY_NODES; n++) {
        r = check_port(port_of(nodes, n), reterr);
        if (r == 0)
            r = check_port(port_of(nodes, n) + TRY_BUS_DISTANCE, reterr);
    }
    return r;
}

/* Waits until `is_so` returns true; `what` is for the error message. */
static int wait_until(struct try_nodes *nodes, bool (*is_so)(const struct try_nodes *nodes),
                      const char *what, struct failure *reterr)
{
    const uint64_t deadline_ms = clock_monotonic_ms() + START_MS;
    int r = 0;

    while (r == 0 && !is_so(nodes)) {
        for (size_t n = 0; r == 0 && n < TRY_NODES; n++)
            r = must_run(nodes, n, reterr);
        if (r == 0 && clock_monotonic_ms() >= deadline_ms)
            r = failure_set(reterr, -ETIMEDOUT, "%s within %d s", what, START_MS / 1000);
        if (r == 0)
            r = children_rest(STEP_MS);
    }
    return r;
}

static bool all_answer(const struct try_nodes *nodes)
{
    for (size_t n = 0; n < TRY_NODES; n++) {
        if (!answers(nodes, n))
            return false;
    }
    return true;
}

static bool all_say(const struct try_nodes *nodes, const char *line)
{
    for (size_t n = 0; n < TRY_NODES; n++) {
        if (!says(ask(nodes, n, "CLUSTER INFO"), line))
            return false;
    }
    return true;
}

static bool all_have_met(const struct try_nodes *nodes)
{
    return all_say(nodes, "cluster_known_nodes:6");
}

static bool is_whole(const struct try_nodes *nodes)
{
    size_t following = 0;

    for (size_t n = 0; n < TRY_NODES; n++)
        following += says(ask(nodes, n, "INFO replication"), "master_link_status:up");
    return following == TRY_NODES - TRY_MASTERS && all_have_met(nodes) &&
           all_say(nodes, "cluster_state:ok") && all_say(nodes, "cluster_slots_assigned:16384");
}

/* Sluice needs sharded Pub/Sub, and a server with cluster support. */
static int check_server(const struct try_nodes *nodes, struct failure *reterr)
{
    redisReply *reply = ask(nodes, 0, "INFO server");
    const char *version = NULL;
    int r = 0;

    if (reply && reply->type == REDIS_REPLY_STRING)
        version = strstr(reply->str, "redis_version:");
    version = version ? version + strlen("redis_version:") : "";
    if (atoi(version) < 7)
        r = failure_set(reterr, -ENOTSUP,
                        "%s is Redis %.*s; in a cluster Sluice needs 7.0 or newer, or Valkey "
                        "(--redis-server names another program)",
                        nodes->program, (int)strcspn(version, "\r\n"), version);
    freeReplyObject(reply);
    if (r == 0 && !says(ask(nodes, 0, "INFO cluster"), "cluster_enabled:1"))
        r = failure_set(reterr, -ENOTSUP, "%s cannot be a node of a cluster", nodes->program);
    return r;
}

/* Each node begins with a different epoch; otherwise they would have to resolve the conflict
 * first. */
static int give_slots(const struct try_nodes *nodes, struct failure *reterr)
{
    int r = 0;

    for (int n = 0; r == 0 && n < TRY_NODES; n++)
        r = command(nodes, (size_t)n, reterr, "CLUSTER SET-CONFIG-EPOCH",
                    ask(nodes, (size_t)n, "CLUSTER SET-CONFIG-EPOCH %d", n + 1));
    for (int n = 0; r == 0 && n < TRY_MASTERS; n++)
        r = command(nodes, (size_t)n, reterr, "CLUSTER ADDSLOTSRANGE",
                    ask(nodes, (size_t)n, "CLUSTER ADDSLOTSRANGE %d %d",
                        SL_CLUSTER_SLOTS * n / TRY_MASTERS,
                        SL_CLUSTER_SLOTS * (n + 1) / TRY_MASTERS - 1));
    return r;
}

/* They find each other through the first node. Nodes that already know each other, possibly at
 * other ports now, are told of each one; otherwise they would wait until they take it for dead. */
static int meet(const struct try_nodes *nodes, bool is_new, struct failure *reterr)
{
    int r = 0;

    for (size_t n = 0; r == 0 && n < (is_new ? 1 : TRY_NODES); n++) {
        for (size_t other = 0; r == 0 && other < TRY_NODES; other++) {
            if (other != n)
                r = command(nodes, n, reterr, "CLUSTER MEET",
                            ask(nodes, n, "CLUSTER MEET 127.0.0.1 %d", (int)port_of(nodes, other)));
        }
    }
    return r;
}

/* Assigns the replicas to their masters; true when all know these. A node is not known by its name
 * until the handshake is complete. */
static bool all_follow(const struct try_nodes *nodes)
{
    bool all = true;

    for (size_t n = TRY_MASTERS; n < TRY_NODES; n++) {
        redisReply *id = ask(nodes, n - TRY_MASTERS, "CLUSTER MYID"), *reply = NULL;

        if (id && id->type == REDIS_REPLY_STRING)
            reply = ask(nodes, n, "CLUSTER REPLICATE %s", id->str);
        all = all && reply && reply->type == REDIS_REPLY_STATUS;
        freeReplyObject(reply);
        freeReplyObject(id);
    }
    return all;
}

static int join(struct try_nodes *nodes, struct failure *reterr)
{
    const bool is_new =
        all_say(nodes, "cluster_known_nodes:1") && all_say(nodes, "cluster_slots_assigned:0");
    int r = 0;

    if (!is_new && !all_have_met(nodes))
        return failure_set(reterr, -EBADMSG,
                           "the cluster in '%.300s' was not finished: remove the directory, or "
                           "name another",
                           nodes->folder);
    if (is_new)
        r = give_slots(nodes, reterr);
    if (r == 0)
        r = meet(nodes, is_new, reterr);
    if (r == 0)
        r = wait_until(nodes, all_have_met, "the nodes do not find each other", reterr);
    if (r == 0 && is_new)
        r = wait_until(nodes, all_follow, "the replicas do not find their masters", reterr);
    if (r == 0)
        r = wait_until(nodes, is_whole, "the nodes do not become a cluster", reterr);
    return r;
}

static bool is_master(const struct try_nodes *nodes, size_t n)
{
    return says(ask(nodes, n, "INFO replication"), "role:master");
}

int try_nodes_start(struct try_nodes *nodes, struct failure *reterr)
{
    int r = check_ports(nodes, reterr);

    for (size_t n = 0; r == 0 && n < TRY_NODES; n++)
        r = start(nodes, n, reterr);
    if (r == 0)
        r = wait_until(nodes, all_answer, "not every node answers", reterr);
    if (r == 0)
        r = check_server(nodes, reterr);
    if (r == 0)
        r = join(nodes, reterr);
    for (size_t n = 0; r == 0 && n < TRY_NODES; n++)
        nodes->is_master[n] = is_master(nodes, n);
    return r;
}

void try_nodes_stop(struct try_nodes *nodes)
{
    children_stop(nodes->children, TRY_NODES, SIGTERM, STOP_MS);
}

/* ---- while running ---- */

static void tell_end(const struct try_nodes *nodes, size_t n)
{
    char how[CHILD_END_SIZE];

    child_describe_end(&nodes->children[n], how);
    printf("127.0.0.1:%u ended %s; in %d s it starts again\n", port_of(nodes, n), how,
           RESTART_MS / 1000);
}

static void watch(struct try_nodes *nodes, size_t n)
{
    struct child *child = &nodes->children[n];
    const bool ran = child->pid > 0, was_master = nodes->is_master[n];
    struct failure failure;

    if (!child_runs(child)) {
        if (ran)
            tell_end(nodes, n);
        else if (clock_monotonic_ms() - child->end_ms >= RESTART_MS &&
                 start(nodes, n, &failure) < 0)
            child->end_ms = clock_monotonic_ms(); /* try again later */
        return;
    }
    if (!answers(nodes, n))
        return;
    nodes->is_master[n] = is_master(nodes, n);
    if (nodes->is_master[n] != was_master)
        printf("127.0.0.1:%u is a %s now\n", port_of(nodes, n), was_master ? "replica" : "master");
}

void try_nodes_watch(struct try_nodes *nodes)
{
    for (size_t n = 0; n < TRY_NODES; n++)
        watch(nodes, n);
    fflush(stdout);
}
