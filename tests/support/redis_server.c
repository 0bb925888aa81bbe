#include "tests/support/redis_server.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/cmocka_all.h"
#include "tests/support/folder.h"

enum { OPTIONS_MAX = 32, PORT_MIN = 10000, PORT_MAX = 30000 };

static void become_redis(const struct redis_server *server, int output)
{
    const char *arguments[16 + OPTIONS_MAX + 1] = {
        "redis-server",
        "--port",
        "0",
        "--unixsocket",
        server->socket,
        "--dir",
        server->folder,
        "--save",
        "",
        "--appendonly",
        server->append_only ? "yes" : "no",
        "--appendfsync",
        "no",
        "--daemonize",
        "no",
    };
    int nowhere = open("/dev/null", O_RDONLY);
    size_t count = 15;

    for (size_t i = 0; server->options && server->options[i]; i++) {
        assert_true(i < OPTIONS_MAX);
        arguments[count++] = server->options[i];
    }

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(nowhere, STDIN_FILENO);
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    execvp("redis-server", (char *const *)arguments);
    dprintf(STDERR_FILENO, "redis-server: %s\n", strerror(errno));
    _exit(127);
}

/* Reads its output until it reports that it is ready. */
static void wait_ready(int output)
{
    char said[16384] = "";
    size_t used = 0;

    while (!strstr(said, "eady to accept connections")) {
        ssize_t count = read(output, said + used, sizeof(said) - 1 - used);

        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            fail_msg("redis-server did not start: %s", said);
        used += (size_t)count;
        said[used] = '\0';
    }
}

static void start(struct redis_server *server)
{
    int output[2];

    assert_int_equal(pipe2(output, O_CLOEXEC), 0);
    server->pid = fork();
    assert_true(server->pid >= 0);
    if (server->pid == 0)
        become_redis(server, output[1]);
    close(output[1]);
    wait_ready(output[0]);
    close(output[0]); /* from here on its log is dropped */
}

static void stop(struct redis_server *server)
{
    if (server->pid == 0)
        return;
    kill(server->pid, SIGKILL);
    waitpid(server->pid, NULL, 0);
    server->pid = 0;
}

static void init(struct redis_server *server, bool append_only, const char *const *options)
{
    *server = (struct redis_server){
        .folder = "/tmp/sluice-test-XXXXXX",
        .append_only = append_only,
        .options = options,
    };
    assert_non_null(mkdtemp(server->folder));
    snprintf(server->socket, sizeof(server->socket), "%s/redis.sock", server->folder);
    snprintf(server->url, sizeof(server->url), "unix://%s", server->socket);
    start(server);
}

void redis_server_init(struct redis_server *server, bool append_only)
{
    init(server, append_only, NULL);
}

void redis_server_init_with(struct redis_server *server, const char *const *options)
{
    init(server, false, options);
}

static bool is_free(unsigned port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool is_bound;

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    is_bound = bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0;
    close(fd);
    return is_bound;
}

unsigned redis_server_free_port(void)
{
    struct timespec now;
    unsigned port;

    do {
        clock_gettime(CLOCK_MONOTONIC, &now);
        port = PORT_MIN +
               ((unsigned)now.tv_nsec / 100 + (unsigned)getpid() * 7919) % (PORT_MAX - PORT_MIN);
    } while (!is_free(port));
    return port;
}

void redis_server_done(struct redis_server *server)
{
    stop(server);
    folder_remove(server->folder);
}

void redis_server_kill(struct redis_server *server)
{
    stop(server);
}

void redis_server_restart(struct redis_server *server)
{
    stop(server);
    start(server);
}

redisContext *redis_server_connect(const struct redis_server *server)
{
    redisContext *redis = redisConnectUnix(server->socket);

    if (!redis || redis->err)
        fail_msg("no connection to %s: %s", server->socket, redis ? redis->errstr : "no memory");
    return redis;
}

redisReply *redis_server_ask(redisContext *redis, const char *format, va_list args)
{
    redisReply *reply = redisvCommand(redis, format, args);

    if (!reply || reply->type == REDIS_REPLY_ERROR)
        fail_msg("%s: %s", format, reply ? reply->str : redis->errstr);
    return reply;
}

void redis_server_run(redisContext *redis, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    freeReplyObject(redis_server_ask(redis, format, args));
    va_end(args);
}
