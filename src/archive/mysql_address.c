/* mysql_address.c - splits a URL at the question mark, the slash and the last @, and parses the
 * options by a table.
 *
 * Each part is checked and decoded into a buffer of fixed size, so nothing is allocated. Conditions
 * on several parts (a key needs a certificate, a socket excludes a host) are checked last. A
 * password is read when it is needed, from its file each time, so that it can be changed. Error
 * messages name the part, and never quote what may be a secret. */
#include "src/archive/mysql_address.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PORT = 3306, TIMEOUT_S = 5, TIMEOUT_MAX_S = 3600 };

static const char PASSWORD_VARIABLE[] = "SLUICE_ARCHIVE_PASSWORD";

/* ---- options ---- */

#define PATH(name, field)                                                                          \
    {                                                                                              \
        name, offsetof(struct sl_mysql_address, field),                                            \
            sizeof(((struct sl_mysql_address *)0)->field)                                          \
    }

static const struct path_option {
    const char *name;
    size_t offset, size;
} path_options[] = {
    PATH("socket", socket), PATH("password-file", password_file),
    PATH("ssl-ca", ca),     PATH("ssl-cert", cert),
    PATH("ssl-key", key),
};

static int parse_path(const struct path_option *option, struct sl_slice value,
                      struct sl_mysql_address *address, struct failure *reterr)
{
    char *room = (char *)address + option->offset;
    char what[64];
    int r;

    if (room[0])
        return failure_set(reterr, -EINVAL, "the archive's %s is given twice", option->name);
    snprintf(what, sizeof(what), "archive's %s", option->name);
    r = sl_url_decode(value, room, option->size, what, reterr);
    if (r == 0 && room[0] != '/')
        return failure_set(reterr, -EINVAL, "the %s is not an absolute path", what);
    return r;
}

static int parse_option(struct sl_slice text, struct sl_mysql_address *address,
                        struct failure *reterr)
{
    size_t equals = sl_url_index(text, '=');
    struct sl_slice name = sl_url_head(text, equals);
    struct sl_slice value = sl_slice_from(text, equals < text.size ? equals + 1 : equals);

    for (size_t i = 0; i < sizeof(path_options) / sizeof(path_options[0]); i++) {
        if (sl_slice_is(name, path_options[i].name))
            return parse_path(&path_options[i], value, address, reterr);
    }
    if (!sl_slice_is(name, "timeout"))
        return failure_set(reterr, -EINVAL,
                           "behind the ? of an archive may stand socket, password-file, ssl-ca, "
                           "ssl-cert, ssl-key and timeout");
    if (address->timeout_s)
        return failure_set(reterr, -EINVAL, "the archive's timeout is given twice");
    if (sl_url_number(value, TIMEOUT_MAX_S, &address->timeout_s) < 0 || address->timeout_s == 0)
        return failure_set(reterr, -EINVAL,
                           "the archive's timeout is not a number of seconds from 1 to %d",
                           TIMEOUT_MAX_S);
    return 0;
}

static int parse_options(struct sl_slice text, struct sl_mysql_address *address,
                         struct failure *reterr)
{
    int r = 0;

    while (r == 0 && text.size > 0) {
        size_t end = sl_url_index(text, '&');

        r = parse_option(sl_url_head(text, end), address, reterr);
        text = sl_slice_from(text, end < text.size ? end + 1 : end);
    }
    if (r == 0 && address->timeout_s == 0)
        address->timeout_s = TIMEOUT_S;
    return r;
}

/* ---- user, host and database ---- */

static int parse_login(struct sl_slice text, struct sl_mysql_address *address,
                       struct failure *reterr)
{
    size_t colon = sl_url_index(text, ':');
    int r;

    r = sl_url_decode(sl_url_head(text, colon), address->user, sizeof(address->user),
                      "archive's user", reterr);
    if (r == 0 && colon < text.size)
        r = sl_url_decode(sl_slice_from(text, colon + 1), address->password,
                          sizeof(address->password), "archive's password", reterr);
    return r;
}

/* [USER[:PASSWORD]@][HOST[:PORT]] */
static int parse_authority(struct sl_slice text, struct sl_mysql_address *address,
                           struct failure *reterr)
{
    struct sl_slice endpoint;
    size_t at = text.size;
    int r = 0;

    /* the last @, so that a password may contain an unescaped @ */
    while (at > 0 && text.data[at - 1] != '@')
        at--;
    if (at > 0)
        r = parse_login(sl_url_head(text, at - 1), address, reterr);
    if (r == 0 && !address->user[0])
        r = failure_set(reterr, -EINVAL, "the archive's URL names no user before an @");
    endpoint = sl_slice_from(text, at);
    address->port = PORT;
    if (r == 0 && endpoint.size > 0)
        r = sl_url_endpoint(endpoint, "archive's", address->host, &address->port, reterr);
    return r;
}

static int parse_database(struct sl_slice text, struct sl_mysql_address *address,
                          struct failure *reterr)
{
    if (text.size == 0)
        return failure_set(reterr, -EINVAL,
                           "the archive's URL names no database behind the host, as in "
                           "mysql://user@host/database");
    if (sl_url_index(text, '/') < text.size)
        return failure_set(reterr, -EINVAL,
                           "the archive's database has a slash in its name, or behind it");
    return sl_url_decode(text, address->database, sizeof(address->database), "archive's database",
                         reterr);
}

/* Checks conditions that concern several parts. */
static int check_together(struct sl_mysql_address *address, struct failure *reterr)
{
    if (address->password[0] && address->password_file[0])
        return failure_set(reterr, -EINVAL, "the archive has a password and a password-file, too");
    if (address->socket[0] && address->host[0] && strcmp(address->host, "localhost") != 0)
        return failure_set(reterr, -EINVAL,
                           "the archive's socket is on this machine, so no host stands before it");
    if (address->socket[0] && address->ca[0])
        return failure_set(reterr, -EINVAL, "through the archive's socket there is no TLS");
    if (!address->socket[0] && !address->host[0])
        return failure_set(reterr, -EINVAL, "the archive's URL names no host");
    if (!address->cert[0] != !address->key[0])
        return failure_set(reterr, -EINVAL, "the archive's ssl-cert and ssl-key need each other");
    if (address->cert[0] && !address->ca[0])
        return failure_set(reterr, -EINVAL, "the archive's ssl-cert needs an ssl-ca");
    if (address->socket[0])
        address->host[0] = '\0';
    return 0;
}

int sl_mysql_address_parse(struct sl_slice rest, struct sl_mysql_address *ret_address,
                           struct failure *reterr)
{
    struct sl_mysql_address address = {.timeout_s = 0};
    size_t mark = sl_url_index(rest, '?'), slash;
    struct sl_slice authority = sl_url_head(rest, mark);
    int r;

    if (!sl_slice_starts_with(authority, SL_SLICE("//")))
        return failure_set(reterr, -EINVAL,
                           "the URL of an archive in MySQL is "
                           "mysql://user[:password]@host[:port]/database");
    authority = sl_slice_from(authority, 2);
    slash = sl_url_index(authority, '/');
    r = parse_authority(sl_url_head(authority, slash), &address, reterr);
    if (r == 0)
        r = parse_database(sl_slice_from(authority, slash < authority.size ? slash + 1 : slash),
                           &address, reterr);
    if (r == 0)
        r = parse_options(sl_slice_from(rest, mark < rest.size ? mark + 1 : mark), &address,
                          reterr);
    if (r == 0)
        r = check_together(&address, reterr);
    if (r == 0)
        *ret_address = address;
    explicit_bzero(address.password, sizeof(address.password));
    return r;
}

/* ---- the password ---- */

static int read_password(const char *path, char ret_password[static SL_MYSQL_PASSWORD_SIZE],
                         struct failure *reterr)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = fd < 0 ? -1 : read(fd, ret_password, SL_MYSQL_PASSWORD_SIZE);
    int error = errno;

    if (fd >= 0)
        close(fd);
    if (size < 0)
        return failure_set(reterr, -EACCES, "cannot read the archive's password-file '%s': %s",
                           path, strerror(error));
    if (size > 0 && ret_password[size - 1] == '\n')
        size--;
    if (size == 0 || size == SL_MYSQL_PASSWORD_SIZE || memchr(ret_password, '\0', (size_t)size))
        return failure_set(reterr, -EINVAL,
                           "the archive's password-file '%s' is empty, longer than %d bytes, or "
                           "holds a NUL byte",
                           path, SL_MYSQL_PASSWORD_SIZE - 1);
    ret_password[size] = '\0';
    return 0;
}

int sl_mysql_address_password(const struct sl_mysql_address *address,
                              char ret_password[static SL_MYSQL_PASSWORD_SIZE],
                              struct failure *reterr)
{
    const char *password = address->password;

    if (address->password_file[0])
        return read_password(address->password_file, ret_password, reterr);
    if (!password[0] && getenv(PASSWORD_VARIABLE))
        password = getenv(PASSWORD_VARIABLE);
    if (strlen(password) >= SL_MYSQL_PASSWORD_SIZE)
        return failure_set(reterr, -EINVAL, "%s is longer than %d bytes", PASSWORD_VARIABLE,
                           SL_MYSQL_PASSWORD_SIZE - 1);
    strcpy(ret_password, password);
    return 0;
}

void sl_mysql_address_print(const struct sl_mysql_address *address,
                            char room[static SL_MYSQL_ADDRESS_TEXT_SIZE])
{
    const bool is_v6 = strchr(address->host, ':') != NULL;

    if (address->socket[0])
        snprintf(room, SL_MYSQL_ADDRESS_TEXT_SIZE, "%s at %s", address->database, address->socket);
    else
        snprintf(room, SL_MYSQL_ADDRESS_TEXT_SIZE, "%s at %s%s%s:%u", address->database,
                 is_v6 ? "[" : "", address->host, is_v6 ? "]" : "", (unsigned)address->port);
}
