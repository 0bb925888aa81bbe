/* src/archive/mysql_address.h - where a database of MySQL or MariaDB is: an URL, taken apart.
 *
 *     mysql://USER[:PASSWORD]@HOST[:PORT]/DATABASE[?OPTIONS]
 *     mysql://USER[:PASSWORD]@/DATABASE?socket=/path/to/socket[&OPTIONS]
 *
 *     password-file=/path    the password, one newline at its end does not count
 *     ssl-ca=/path           TLS only, with a server whose certificate this authority (PEM) has
 *                            signed for HOST
 *     ssl-cert=, ssl-key=    with it: our own certificate
 *     timeout=SECONDS        to connect, and of the server's silence in the middle of an answer
 *
 * Names, password and paths are percent-decoded, an IPv6 host stands in brackets. Without any
 * password in the URL that of the environment is taken, SLUICE_ARCHIVE_PASSWORD. No message ever
 * holds one. */
#pragma once

#include <stdint.h>

#include "base/failure.h"
#include "base/slice.h"
#include "src/model/url_parts.h"

enum { SL_MYSQL_PATH_SIZE = 1024, SL_MYSQL_PASSWORD_SIZE = 512 };

struct sl_mysql_address {
    char host[SL_URL_HOST_SIZE]; /* IPv6 without brackets; empty with a socket */
    uint16_t port;
    char socket[108]; /* empty: none */
    char user[256];
    char password[SL_MYSQL_PASSWORD_SIZE]; /* empty: it is elsewhere, or there is none */
    char database[256];
    char password_file[SL_MYSQL_PATH_SIZE]; /* empty, as the following: none */
    char ca[SL_MYSQL_PATH_SIZE], cert[SL_MYSQL_PATH_SIZE], key[SL_MYSQL_PATH_SIZE];
    uint32_t timeout_s;
};

/* `rest`: what stands behind "mysql:". 0; -EINVAL: *reterr says what is wrong. */
int sl_mysql_address_parse(struct sl_slice rest, struct sl_mysql_address *ret_address,
                           struct failure *reterr);

/* The password, wherever it is, empty when there is none; read anew each time. 0; -EACCES: its
 * file cannot be read; -EINVAL: what stands there is no password. */
int sl_mysql_address_password(const struct sl_mysql_address *address,
                              char ret_password[static SL_MYSQL_PASSWORD_SIZE],
                              struct failure *reterr);

enum { SL_MYSQL_ADDRESS_TEXT_SIZE = 640 };

/* "DATABASE at HOST:PORT" or "DATABASE at /path/to/socket", for messages. */
void sl_mysql_address_print(const struct sl_mysql_address *address,
                            char room[static SL_MYSQL_ADDRESS_TEXT_SIZE]);
