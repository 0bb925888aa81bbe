#include "tests/support/fault.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/redis/redis_connection.h"
#include "tests/support/cmocka_all.h"

int __real_sl_redis_connection_append(struct sl_redis_connection *connection, int argc,
                                      const char *const *argv, const size_t *argvlen,
                                      struct failure *reterr);
int __wrap_sl_redis_connection_append(struct sl_redis_connection *connection, int argc,
                                      const char *const *argv, const size_t *argvlen,
                                      struct failure *reterr);

static _Atomic uint64_t left; /* commands; 0: unlimited */

void fault_after(uint64_t commands)
{
    atomic_store(&left, commands);
}

int __wrap_sl_redis_connection_append(struct sl_redis_connection *connection, int argc,
                                      const char *const *argv, const size_t *argvlen,
                                      struct failure *reterr)
{
    int r = __real_sl_redis_connection_append(connection, argc, argv, argvlen, reterr);

    if (atomic_load(&left) == 0 || atomic_fetch_sub(&left, 1) > 1)
        return r;
    sl_redis_connection_flush(connection, NULL);
    raise(SIGKILL);
    return -EIO;
}

static _Noreturn void run_child(const struct core *parent, uint64_t commands,
                                void (*act)(struct core *core))
{
    const struct sl_redis_link_options options = {.retry_ms = 5000};
    struct sl_redis_address address;
    struct core core = *parent;

    core.redis_count = 0; /* they belong to the parent */
    if (sl_redis_address_parse(sl_slice_str(core.url), &address, NULL) < 0 ||
        sl_redis_link_open(&address, &options, &core.link, NULL) < 0)
        _exit(EXIT_FAILURE);
    fault_after(commands);
    act(&core);
    _exit(EXIT_SUCCESS);
}

static long long clients(struct core *core)
{
    static const char name[] = "connected_clients:";
    redisReply *info = core_command(core, "INFO clients");
    const char *line = info->str;
    long long count = 0;

    while ((line = strstr(line, name)) != NULL) {
        line += strlen(name);
        count += strtoll(line, NULL, 10);
    }
    freeReplyObject(info);
    return count;
}

enum fault_end fault_run(const struct core *core, uint64_t commands, void (*act)(struct core *core))
{
    int status;
    pid_t pid;

    fflush(NULL);
    pid = fork();
    if (pid == 0)
        run_child(core, commands, act);
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return FAULT_FAILED;
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        return FAULT_KILLED;
    return WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS ? FAULT_ENDED : FAULT_FAILED;
}

void fault_settle(struct core *core)
{
    /* core->redis, and core->link to the same number of nodes */
    while (clients(core) > 2 * (long long)core->redis_count)
        ;
}
