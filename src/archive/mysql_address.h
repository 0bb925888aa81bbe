/* src/archive/mysql_address.h - parses the URL of a database of MySQL or MariaDB.
 *
 *     mysql://USER[:PASSWORD]@HOST[:PORT]/DATABASE[?OPTIONS]
 *     mysql://USER[:PASSWORD]@/DATABASE?socket=/path/to/socket[&OPTIONS]
 *
 *     password-file=/path    contains the password; one newline at its end is ignored
 *     ssl-ca=/path           TLS only; the server's certificate must be signed for HOST by this
 *                            authority (PEM)
 *     ssl-cert=, ssl-key=    in addition: a client certificate
 *     timeout=SECONDS        for connecting, and for the server's silence within an answer
 *
 * Names, password and paths are percent-decoded; an IPv6 host is written in brackets. Without a
 * password in the URL, the environment variable SLUICE_ARCHIVE_PASSWORD is used. No error message
 * contains a password. */
#pragma once

#include <stdint.h>

#include "base/failure.h"
#include "base/slice.h"
#include "src/model/url_parts.h"

enum { SL_MYSQL_PATH_SIZE = 1024, SL_MYSQL_PASSWORD_SIZE = 512 };

struct sl_mysql_address {
    char host[SL_URL_HOST_SIZE]; /* IPv6 without brackets; empty if `socket` is set */
    uint16_t port;
    char socket[108]; /* empty: none */
    char user[256];
    char password[SL_MYSQL_PASSWORD_SIZE]; /* empty: stored elsewhere, or none */
    char database[256];
    char password_file[SL_MYSQL_PATH_SIZE]; /* empty, like the following fields: none */
    char ca[SL_MYSQL_PATH_SIZE], cert[SL_MYSQL_PATH_SIZE], key[SL_MYSQL_PATH_SIZE];
    uint32_t timeout_s;
};

/* `rest` is what follows "mysql:". 0; -EINVAL: *reterr says what is wrong. */
int sl_mysql_address_parse(struct sl_slice rest, struct sl_mysql_address *ret_address,
                           struct failure *reterr);

/* Reads the password from wherever it is stored; empty when there is none. A file is read anew each
 * time. 0; -EACCES: the file cannot be read; -EINVAL: its content is not a password. */
int sl_mysql_address_password(const struct sl_mysql_address *address,
                              char ret_password[static SL_MYSQL_PASSWORD_SIZE],
                              struct failure *reterr);

enum { SL_MYSQL_ADDRESS_TEXT_SIZE = 640 };

/* "DATABASE at HOST:PORT" or "DATABASE at /path/to/socket", for messages. */
void sl_mysql_address_print(const struct sl_mysql_address *address,
                            char room[static SL_MYSQL_ADDRESS_TEXT_SIZE]);
