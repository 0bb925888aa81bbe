#include "tests/support/memcached_server.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/cmocka_all.h"

bool memcached_server_is_installed(void)
{
    if (system("command -v memcached >/dev/null 2>&1") == 0)
        return true;
    print_message("skipped: there is no memcached here (scripts/packages)\n");
    return false;
}

static void become_memcached(const struct memcached_server *server)
{
    int nowhere = open("/dev/null", O_RDWR);

    dup2(nowhere, STDIN_FILENO);
    dup2(nowhere, STDOUT_FILENO);
    dup2(nowhere, STDERR_FILENO);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (geteuid() == 0)
        execlp("memcached", "memcached", "-u", "root", "-t", "1", "-s", server->socket, NULL);
    else
        execlp("memcached", "memcached", "-t", "1", "-s", server->socket, NULL);
    _exit(127);
}

static int try_connect(const struct memcached_server *server)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", server->socket);
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
        return fd;
    close(fd);
    return -1;
}

/* It does not report when it is ready. */
static void wait_ready(const struct memcached_server *server)
{
    const struct timespec moment = {0, 5000000};
    int fd;

    while ((fd = try_connect(server)) < 0) {
        if (waitpid(server->pid, NULL, WNOHANG) != 0)
            fail_msg("memcached did not start");
        nanosleep(&moment, NULL);
    }
    close(fd);
}

void memcached_server_start(struct memcached_server *server)
{
    server->pid = fork();
    assert_true(server->pid >= 0);
    if (server->pid == 0)
        become_memcached(server);
    wait_ready(server);
}

void memcached_server_init(struct memcached_server *server)
{
    *server = (struct memcached_server){.folder = "/tmp/sluice-test-XXXXXX"};
    assert_non_null(mkdtemp(server->folder));
    snprintf(server->socket, sizeof(server->socket), "%s/memcached.sock", server->folder);
    snprintf(server->url, sizeof(server->url), "memcached://%s", server->socket);
    memcached_server_start(server);
}

void memcached_server_kill(struct memcached_server *server)
{
    if (server->pid == 0)
        return;
    kill(server->pid, SIGKILL);
    waitpid(server->pid, NULL, 0);
    server->pid = 0;
}

void memcached_server_done(struct memcached_server *server)
{
    memcached_server_kill(server);
    unlink(server->socket);
    rmdir(server->folder);
}

/* Returns when the kernel has delivered it. */
static void send_signal(const struct memcached_server *server, int number, int options)
{
    int status;

    kill(server->pid, number);
    assert_int_equal(waitpid(server->pid, &status, options), server->pid);
}

void memcached_server_stall(struct memcached_server *server)
{
    send_signal(server, SIGSTOP, WUNTRACED);
}

void memcached_server_go_on(struct memcached_server *server)
{
    send_signal(server, SIGCONT, WCONTINUED);
}

void memcached_server_say(const struct memcached_server *server, const char *line,
                          char ret_answer[static 256])
{
    int fd = try_connect(server);
    size_t used = 0;

    assert_true(fd >= 0);
    assert_int_equal(dprintf(fd, "%s\r\n", line), strlen(line) + 2);
    ret_answer[0] = '\0';
    while (!strstr(ret_answer, "\r\n")) {
        ssize_t count = read(fd, ret_answer + used, 255 - used);

        assert_true(count > 0);
        used += (size_t)count;
        ret_answer[used] = '\0';
    }
    *strstr(ret_answer, "\r\n") = '\0';
    close(fd);
}
