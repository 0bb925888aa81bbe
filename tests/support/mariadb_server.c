#include "tests/support/mariadb_server.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <mysql.h>

#include "tests/support/cmocka_all.h"
#include "tests/support/folder.h"

static const char *program(void)
{
    static const char *const places[] = {"/usr/sbin/mariadbd", "/usr/bin/mariadbd",
                                         "/usr/local/sbin/mariadbd"};

    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        if (access(places[i], X_OK) == 0)
            return places[i];
    }
    return NULL;
}

bool mariadb_server_is_installed(void)
{
    return program() != NULL;
}

/* Small, and quick to start: these data need not survive a crash of the machine. */
static void become_mariadb(const struct mariadb_server *server, const char *option, int output)
{
    char socket[128], data[128], user[] = "--user=root";
    int nowhere = open("/dev/null", O_RDONLY);

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(nowhere, STDIN_FILENO);
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    snprintf(socket, sizeof(socket), "--socket=%s", server->socket);
    snprintf(data, sizeof(data), "--datadir=%s/data", server->folder);
    execl(program(), "mariadbd", "--no-defaults", socket, data, "--skip-networking",
          "--skip-grant-tables", "--innodb-buffer-pool-size=16M", "--innodb-log-file-size=8M",
          "--innodb-flush-log-at-trx-commit=2", "--performance-schema=OFF",
          option ? option : "--skip-log-bin", geteuid() == 0 ? user : NULL, NULL);
    dprintf(STDERR_FILENO, "mariadbd: %s\n", strerror(errno));
    _exit(127);
}

/* Reads its output until it reports that it is ready. */
static void wait_ready(int output)
{
    static char said[1 << 16];
    size_t used = 0;

    said[0] = '\0';
    while (!strstr(said, "ready for connections")) {
        ssize_t count = read(output, said + used, sizeof(said) - 1 - used);

        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            fail_msg("mariadbd did not start: %s", said);
        used += (size_t)count;
        said[used] = '\0';
    }
}

static void start(struct mariadb_server *server, const char *option)
{
    int output[2];

    assert_int_equal(pipe2(output, O_CLOEXEC), 0);
    server->pid = fork();
    assert_true(server->pid >= 0);
    if (server->pid == 0)
        become_mariadb(server, option, output[1]);
    close(output[1]);
    wait_ready(output[0]);
    server->output = output[0]; /* kept open for further output */
}

void mariadb_server_kill(struct mariadb_server *server)
{
    if (server->pid == 0)
        return;
    kill(server->pid, SIGKILL);
    waitpid(server->pid, NULL, 0);
    server->pid = 0;
    close(server->output);
}

void mariadb_server_init(struct mariadb_server *server)
{
    char data[128];

    *server = (struct mariadb_server){.folder = "/tmp/sluice-test-XXXXXX"};
    assert_non_null(mkdtemp(server->folder));
    snprintf(server->socket, sizeof(server->socket), "%s/mariadb.sock", server->folder);
    snprintf(data, sizeof(data), "%s/data", server->folder);
    assert_int_equal(mkdir(data, 0700), 0);
    start(server, NULL);
}

void mariadb_server_done(struct mariadb_server *server)
{
    mariadb_server_kill(server);
    folder_remove(server->folder);
}

void mariadb_server_restart(struct mariadb_server *server, const char *option)
{
    mariadb_server_kill(server);
    start(server, option);
}

/* Returns when all its threads have stopped. */
void mariadb_server_freeze(struct mariadb_server *server)
{
    int status;

    assert_int_equal(kill(server->pid, SIGSTOP), 0);
    assert_int_equal(waitpid(server->pid, &status, WUNTRACED), server->pid);
}

void mariadb_server_thaw(struct mariadb_server *server)
{
    assert_int_equal(kill(server->pid, SIGCONT), 0);
}

MYSQL *mariadb_server_connect(const struct mariadb_server *server)
{
    MYSQL *mysql = mysql_init(NULL);

    assert_non_null(mysql);
    if (!mysql_real_connect(mysql, NULL, "root", NULL, NULL, 0, server->socket, 0))
        fail_msg("no connection to %s: %s", server->socket, mysql_error(mysql));
    return mysql;
}

void mariadb_server_run(MYSQL *mysql, const char *format, ...)
{
    char sql[1024];
    va_list args;

    va_start(args, format);
    vsnprintf(sql, sizeof(sql), format, args);
    va_end(args);
    if (mysql_query(mysql, sql) != 0)
        fail_msg("%s: %s", sql, mysql_error(mysql));
}

long long mariadb_server_ask(MYSQL *mysql, const char *sql)
{
    long long number;
    MYSQL_RES *rows;
    MYSQL_ROW row;

    mariadb_server_run(mysql, "%s", sql);
    rows = mysql_store_result(mysql);
    row = rows ? mysql_fetch_row(rows) : NULL;
    if (!row || !row[0])
        fail_msg("%s: no value", sql);
    number = atoll(row[0]);
    mysql_free_result(rows);
    return number;
}
