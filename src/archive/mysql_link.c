/* mysql_link.c - maps the errors of the client library to errnos, and sets its options for safety.
 *
 * An error that is not in the table is -EIO. The password is sent only to a server that has proven
 * its identity, or over a socket of this machine: login plugins that would reveal it are not
 * allowed otherwise. Every wait has the address's timeout, and the session waits for locks for at
 * most half of it. */
#include "src/archive/mysql_link.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <errmsg.h>
#include <mysql.h>
#include <mysqld_error.h>

enum {
    ER_CLIENT_INTERACTION_TIMEOUT = 4031
}; /* MySQL only: closed because it was idle for too
      long */

/* ---- errors ---- */

static const struct {
    unsigned code;
    int error;
    enum sl_mysql_trouble trouble;
} errors[] = {
    /* server not available, or no longer */
    {CR_CONNECTION_ERROR, -EAGAIN, SL_MYSQL_TROUBLE_LOST},
    {CR_CONN_HOST_ERROR, -EAGAIN, SL_MYSQL_TROUBLE_LOST},
    {CR_IPSOCK_ERROR, -EAGAIN, SL_MYSQL_TROUBLE_LOST},
    {CR_UNKNOWN_HOST, -EAGAIN, SL_MYSQL_TROUBLE_LOST},
    {CR_SERVER_GONE_ERROR, -EAGAIN, SL_MYSQL_TROUBLE_LOST},
    {CR_SERVER_HANDSHAKE_ERR, -EAGAIN, SL_MYSQL_TROUBLE_LOST},
    {CR_SERVER_LOST, -EAGAIN, SL_MYSQL_TROUBLE_LOST},
    {CR_SERVER_LOST_EXTENDED, -EAGAIN, SL_MYSQL_TROUBLE_LOST},
    {CR_MALFORMED_PACKET, -EAGAIN, SL_MYSQL_TROUBLE_LOST},
    {ER_SERVER_SHUTDOWN, -EAGAIN, SL_MYSQL_TROUBLE_LOST},
    {ER_NORMAL_SHUTDOWN, -EAGAIN, SL_MYSQL_TROUBLE_LOST},
    {ER_CONNECTION_KILLED, -EAGAIN, SL_MYSQL_TROUBLE_LOST},
    {ER_CLIENT_INTERACTION_TIMEOUT, -EAGAIN, SL_MYSQL_TROUBLE_LOST},
    {ER_NET_READ_ERROR, -EAGAIN, SL_MYSQL_TROUBLE_LOST},
    {ER_NET_READ_INTERRUPTED, -EAGAIN, SL_MYSQL_TROUBLE_LOST},
    {ER_NET_ERROR_ON_WRITE, -EAGAIN, SL_MYSQL_TROUBLE_LOST},
    {ER_NET_WRITE_INTERRUPTED, -EAGAIN, SL_MYSQL_TROUBLE_LOST},
    /* busy */
    {ER_LOCK_DEADLOCK, -EAGAIN, SL_MYSQL_TROUBLE_DEADLOCK},
    {ER_CHECKREAD, -EAGAIN, SL_MYSQL_TROUBLE_DEADLOCK}, /* predicted before it happens */
    {ER_LOCK_WAIT_TIMEOUT, -EAGAIN, SL_MYSQL_TROUBLE_NONE},
    {ER_QUERY_INTERRUPTED, -EAGAIN, SL_MYSQL_TROUBLE_NONE},
    {ER_STATEMENT_TIMEOUT, -EAGAIN, SL_MYSQL_TROUBLE_NONE},
    {ER_CON_COUNT_ERROR, -EAGAIN, SL_MYSQL_TROUBLE_NONE},
    {ER_TOO_MANY_USER_CONNECTIONS, -EAGAIN, SL_MYSQL_TROUBLE_NONE},
    {ER_USER_LIMIT_REACHED, -EAGAIN, SL_MYSQL_TROUBLE_NONE},
    /* login refused */
    {CR_SSL_CONNECTION_ERROR, -EACCES, SL_MYSQL_TROUBLE_NONE},
    {CR_AUTH_PLUGIN_CANNOT_LOAD, -EACCES, SL_MYSQL_TROUBLE_NONE},
    {CR_AUTH_PLUGIN_ERR, -EACCES, SL_MYSQL_TROUBLE_NONE},
    {CR_PLUGIN_NOT_ALLOWED, -EACCES, SL_MYSQL_TROUBLE_NONE},
    {ER_DBACCESS_DENIED_ERROR, -EACCES, SL_MYSQL_TROUBLE_NONE},
    {ER_ACCESS_DENIED_ERROR, -EACCES, SL_MYSQL_TROUBLE_NONE},
    {ER_ACCESS_DENIED_NO_PASSWORD_ERROR, -EACCES, SL_MYSQL_TROUBLE_NONE},
    {ER_TABLEACCESS_DENIED_ERROR, -EACCES, SL_MYSQL_TROUBLE_NONE},
    {ER_COLUMNACCESS_DENIED_ERROR, -EACCES, SL_MYSQL_TROUBLE_NONE},
    {ER_SPECIFIC_ACCESS_DENIED_ERROR, -EACCES, SL_MYSQL_TROUBLE_NONE},
    {ER_HOST_IS_BLOCKED, -EACCES, SL_MYSQL_TROUBLE_NONE},
    {ER_HOST_NOT_PRIVILEGED, -EACCES, SL_MYSQL_TROUBLE_NONE},
    {ER_MUST_CHANGE_PASSWORD, -EACCES, SL_MYSQL_TROUBLE_NONE},
    {ER_MUST_CHANGE_PASSWORD_LOGIN, -EACCES, SL_MYSQL_TROUBLE_NONE},
    {ER_ACCOUNT_HAS_BEEN_LOCKED, -EACCES, SL_MYSQL_TROUBLE_NONE},
    /* not writable */
    {ER_OPTION_PREVENTS_STATEMENT, -EROFS, SL_MYSQL_TROUBLE_NONE}, /* --read-only */
    {ER_READ_ONLY_MODE, -EROFS, SL_MYSQL_TROUBLE_NONE},
    {ER_INNODB_READ_ONLY, -EROFS, SL_MYSQL_TROUBLE_NONE},
    {ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION, -EROFS, SL_MYSQL_TROUBLE_NONE},
    {ER_OPEN_AS_READONLY, -EROFS, SL_MYSQL_TROUBLE_NONE},
    {ER_DISK_FULL, -ENOSPC, SL_MYSQL_TROUBLE_NONE},
    {ER_RECORD_FILE_FULL, -ENOSPC, SL_MYSQL_TROUBLE_NONE},
    /* not the expected database or tables */
    {ER_BAD_DB_ERROR, -ENOENT, SL_MYSQL_TROUBLE_NONE},
    {ER_NO_SUCH_TABLE, -EBADMSG, SL_MYSQL_TROUBLE_NONE},
    {ER_BAD_FIELD_ERROR, -EBADMSG, SL_MYSQL_TROUBLE_NONE},
    {ER_CRASHED_ON_USAGE, -EBADMSG, SL_MYSQL_TROUBLE_NONE},
    {ER_CRASHED_ON_REPAIR, -EBADMSG, SL_MYSQL_TROUBLE_NONE},
    {ER_NOT_KEYFILE, -EBADMSG, SL_MYSQL_TROUBLE_NONE},
    {ER_INDEX_CORRUPT, -EBADMSG, SL_MYSQL_TROUBLE_NONE},
    {ER_TABLE_CORRUPT, -EBADMSG, SL_MYSQL_TROUBLE_NONE},
    {CR_OUT_OF_MEMORY, -ENOMEM, SL_MYSQL_TROUBLE_NONE},
};

/* The library's messages contain the user and the server, never the password. */
static int failed(struct sl_mysql_link *link, struct failure *reterr)
{
    int error = -EIO;

    link->code = mysql_errno(link->mysql);
    link->trouble = SL_MYSQL_TROUBLE_NONE;
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        if (errors[i].code != link->code)
            continue;
        error = errors[i].error;
        link->trouble = errors[i].trouble;
        break;
    }
    if (link->code == CR_PLUGIN_NOT_ALLOWED) /* see SAFE_LOGINS */
        return failure_set(reterr, error,
                           "the server asks for the password in a way that others could read; "
                           "use ssl-ca, or a socket");
    return failure_set(reterr, error, "%s", mysql_error(link->mysql));
}

/* ---- connecting and closing ---- */

static pthread_once_t library_once = PTHREAD_ONCE_INIT;
static bool library_works;

/* Must not run in two threads at once, as it could in mysql_init(). It is never undone: the library
 * cannot know who else in the process uses it, and its memory is small and constant. */
static void start_library(void)
{
    library_works = mysql_library_init(0, NULL, NULL) == 0;
}

/* Login methods that do not reveal the password to a server whose identity is not proven and that
 * is not on this machine. An impostor could request the password with mysql_clear_password, and
 * also with MySQL's two sha2 plugins, which encrypt it with a key that the server supplies. */
static const char SAFE_LOGINS[] = "mysql_native_password,client_ed25519,parsec,auth_gssapi_client";

static void set_tls(MYSQL *mysql, const struct sl_mysql_address *address)
{
    const my_bool is_wanted = address->ca[0] != '\0';

    mysql_options(mysql, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &is_wanted);
    mysql_options(mysql, MYSQL_OPT_SSL_ENFORCE, &is_wanted);
    if (is_wanted)
        mysql_options(mysql, MYSQL_OPT_SSL_CA, address->ca);
    else if (address->host[0])
        mysql_options(mysql, MARIADB_OPT_RESTRICTED_AUTH, SAFE_LOGINS);
    if (address->cert[0]) {
        mysql_options(mysql, MYSQL_OPT_SSL_CERT, address->cert);
        mysql_options(mysql, MYSQL_OPT_SSL_KEY, address->key);
    }
}

/* Session settings that must not depend on the server's defaults: no silent truncation of text, and
 * no waiting for locks for longer than we wait for the server. */
static void set_session(MYSQL *mysql, const struct sl_mysql_address *address)
{
    const unsigned wait_s = (address->timeout_s + 1) / 2;
    char sql[160];

    snprintf(sql, sizeof(sql),
             "SET autocommit = 1, sql_mode = 'STRICT_ALL_TABLES', innodb_lock_wait_timeout = %u, "
             "lock_wait_timeout = %u",
             wait_s, wait_s);
    mysql_options(mysql, MYSQL_INIT_COMMAND, sql);
    mysql_options(mysql, MYSQL_SET_CHARSET_NAME, "utf8mb4");
}

static void set_options(MYSQL *mysql, const struct sl_mysql_address *address)
{
    const unsigned protocol = address->socket[0] ? MYSQL_PROTOCOL_SOCKET : MYSQL_PROTOCOL_TCP;
    const unsigned timeout_s = address->timeout_s, no = 0;

    mysql_options(mysql, MYSQL_OPT_PROTOCOL, &protocol); /* "localhost" must not mean a socket */
    mysql_options(mysql, MYSQL_OPT_CONNECT_TIMEOUT, &timeout_s);
    mysql_options(mysql, MYSQL_OPT_READ_TIMEOUT, &timeout_s);
    mysql_options(mysql, MYSQL_OPT_WRITE_TIMEOUT, &timeout_s);
    mysql_options(mysql, MYSQL_OPT_LOCAL_INFILE, &no); /* the server may not read our files */
    set_tls(mysql, address);
    set_session(mysql, address);
}

int sl_mysql_link_connect(struct sl_mysql_link *link, const struct sl_mysql_address *address,
                          struct failure *reterr)
{
    char password[SL_MYSQL_PASSWORD_SIZE];
    int r;

    pthread_once(&library_once, start_library);
    r = sl_mysql_address_password(address, password, reterr);
    if (r < 0)
        return r;
    link->mysql = library_works ? mysql_init(NULL) : NULL;
    if (!link->mysql) {
        r = failure_set(reterr, -ENOMEM, "out of memory");
    } else {
        set_options(link->mysql, address);
        if (!mysql_real_connect(link->mysql, address->host[0] ? address->host : NULL, address->user,
                                password, address->database, address->port,
                                address->socket[0] ? address->socket : NULL, 0))
            r = failed(link, reterr);
    }
    explicit_bzero(password, sizeof(password));
    if (r < 0)
        sl_mysql_link_close(link);
    return r;
}

void sl_mysql_link_close(struct sl_mysql_link *link)
{
    mysql_close(link->mysql); /* NULL is allowed */
    link->mysql = NULL;
}

int sl_mysql_link_run(struct sl_mysql_link *link, struct sl_slice sql, MYSQL_RES **ret_rows,
                      struct failure *reterr)
{
    MYSQL_RES *rows;

    if (mysql_real_query(link->mysql, sql.data, sql.size) != 0)
        return failed(link, reterr);
    if (!ret_rows)
        return 0;
    rows = mysql_store_result(link->mysql);
    if (!rows)
        return failed(link, reterr);
    *ret_rows = rows;
    return 0;
}
