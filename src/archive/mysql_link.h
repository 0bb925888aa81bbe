/* src/archive/mysql_link.h - one connection to MySQL or MariaDB: errors as errnos, time that is
 * bounded.
 *
 *     r = sl_mysql_link_connect(&link, &address, &failure);
 *     if (r == 0)
 *         r = sl_mysql_link_run(&link, sql, &rows, &failure);
 *     ...
 *     mysql_free_result(rows);
 *     sl_mysql_link_close(&link);
 *
 * Connecting, writing and each answer have address.timeout_s; looking up a host's name has what the
 * system's resolver gives it.
 *
 * It does not connect again by itself: who runs a statement knows whether it may be run twice.
 * `trouble` says what a failure means for that. Belongs to one thread. */
#pragma once

#include "base/failure.h"
#include "base/slice.h"
#include "src/archive/mysql_address.h"

struct st_mysql; /* MYSQL and MYSQL_RES of <mysql.h> */
struct st_mysql_res;

enum sl_mysql_trouble {
    SL_MYSQL_TROUBLE_NONE,     /* of the statement: it would fail again */
    SL_MYSQL_TROUBLE_LOST,     /* the connection is gone, and whether it was done is not known */
    SL_MYSQL_TROUBLE_DEADLOCK, /* another transaction went first; once more and it may succeed */
};

struct sl_mysql_link {
    struct st_mysql *mysql;        /* NULL: not connected */
    enum sl_mysql_trouble trouble; /* of the last failure */
    unsigned code;                 /* MySQL's own number of it */
};

#define SL_MYSQL_LINK_INIT ((struct sl_mysql_link){.mysql = NULL})

/* 0; -EAGAIN: the server is not there, or has no room for one more; -EACCES: it does not want us,
 * or is not who it should be; -ENOENT: there is no such database; -EINVAL: as
 * sl_mysql_address_password(); -ENOMEM; -EIO. */
int sl_mysql_link_connect(struct sl_mysql_link *link, const struct sl_mysql_address *address,
                          struct failure *reterr);
void sl_mysql_link_close(struct sl_mysql_link *link);

/* Runs a statement: one round trip. `ret_rows` for those that have rows, NULL for others. 0;
 * -EAGAIN: the connection is lost, others hold the rows for too long, or the server ends; -ENOSPC;
 * -EROFS; -EACCES; -EBADMSG: other tables than ours, or damaged ones; -ENOMEM; -EIO. */
int sl_mysql_link_run(struct sl_mysql_link *link, struct sl_slice sql,
                      struct st_mysql_res **ret_rows, struct failure *reterr);
