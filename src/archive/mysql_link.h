/* src/archive/mysql_link.h - a connection to MySQL or MariaDB with errno results and bounded waits.
 *
 *     r = sl_mysql_link_connect(&link, &address, &failure);
 *     if (r == 0)
 *         r = sl_mysql_link_run(&link, sql, &rows, &failure);
 *     ...
 *     mysql_free_result(rows);
 *     sl_mysql_link_close(&link);
 *
 * Connecting, writing and each answer may take address.timeout_s; looking up a host name takes as
 * long as the system's resolver allows.
 *
 * The link does not reconnect by itself, because only the caller knows whether a statement may be
 * repeated. `trouble` says what a failure means for that. A link belongs to one thread. */
#pragma once

#include "base/failure.h"
#include "base/slice.h"
#include "src/archive/mysql_address.h"

struct st_mysql; /* MYSQL and MYSQL_RES of <mysql.h> */
struct st_mysql_res;

enum sl_mysql_trouble {
    SL_MYSQL_TROUBLE_NONE,     /* the statement itself; it would fail again */
    SL_MYSQL_TROUBLE_LOST,     /* connection lost; whether the statement was executed is unknown */
    SL_MYSQL_TROUBLE_DEADLOCK, /* another transaction was preferred; a repetition may succeed */
};

struct sl_mysql_link {
    struct st_mysql *mysql;        /* NULL: not connected */
    enum sl_mysql_trouble trouble; /* of the last failure */
    unsigned code;                 /* MySQL's error number */
};

#define SL_MYSQL_LINK_INIT ((struct sl_mysql_link){.mysql = NULL})

/* 0; -EAGAIN: the server is not available, or has no room for a connection; -EACCES: the server
 * refuses the login, or its certificate is not valid; -ENOENT: there is no such database; -EINVAL:
 * as sl_mysql_address_password(); -ENOMEM; -EIO. */
int sl_mysql_link_connect(struct sl_mysql_link *link, const struct sl_mysql_address *address,
                          struct failure *reterr);
void sl_mysql_link_close(struct sl_mysql_link *link);

/* Runs a statement in one round trip. `ret_rows` is for statements that return rows, NULL for
 * others. 0; -EAGAIN: the connection is lost, rows are locked for too long, or the server shuts
 * down; -ENOSPC; -EROFS; -EACCES; -EBADMSG: the tables are not ours, or damaged; -ENOMEM; -EIO. */
int sl_mysql_link_run(struct sl_mysql_link *link, struct sl_slice sql,
                      struct st_mysql_res **ret_rows, struct failure *reterr);
