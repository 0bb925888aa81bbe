/* src/archive/archive.h - the archive: posts on disk that a capped profile in Redis no longer
 * holds.
 *
 *     r = sl_archive_open("sqlite:/var/lib/sluice/archive.db", meta.database_id, SL_ARCHIVE_MAKE,
 *                         &archive, &failure);
 *     r = sl_archive_store(archive, posts, count, &failure);
 *     r = sl_archive_list(archive, user, before, 20, &page, &failure);
 *     sl_archive_close(archive);
 *
 * An archive belongs to one database, whose id it stores. A post in it never changes: it can be
 * stored, once or several times, and erased. An erased post stays erased even if it is stored again
 * later. So tasks that store and erase may run late, twice, and in any order.
 *
 * The archive does not know who may see a post. What is read from it must be passed to Redis, which
 * applies the rules (src/archive/archived.h). An open archive is one connection and belongs to one
 * thread; several may be open at once, in several processes. Every call may block on the disk or on
 * the server.
 *
 *     sqlite:PATH, sqlite:///PATH                                 an SQLite file
 *     mysql://USER[:PASSWORD]@HOST[:PORT]/DATABASE[?OPTIONS]      tables in an existing database of
 *     mariadb://...                                               MySQL or MariaDB
 *
 * OPTIONS are name=value pairs joined by &: socket=/path instead of a host; password-file=/path
 * (without it and without a PASSWORD, the environment variable SLUICE_ARCHIVE_PASSWORD is used);
 * ssl-ca=/path for TLS with a verified server certificate; ssl-cert=/path and ssl-key=/path for a
 * client certificate; timeout=SECONDS (5) for connecting and for each answer. Names and paths are
 * percent-encoded. No error message contains a password.
 *
 * With a server, storing, erasing, listing and finding take one round trip each, however many posts
 * they concern. Posts of more than about 256 KB take two more, and one for each part of that size.
 * Verifying takes one, opening three besides those of the login. A connection lost since the last
 * call is reopened by the next one. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/export.h"
#include "base/failure.h"
#include "base/slice.h"

struct sl_archive;

struct sl_archive_post {
    uint64_t id, user;    /* ids of Sluice */
    struct sl_slice json; /* the post's hash, as an object of strings */
};

/* Posts that were read. `json` is valid as long as the page. */
struct sl_archive_page {
    struct sl_archive_post *posts;
    size_t count;
    size_t room; /* private */
};

#define SL_ARCHIVE_PAGE_INIT ((struct sl_archive_page){.count = 0})

SL_EXPORT void sl_archive_page_done(struct sl_archive_page *page);

enum sl_archive_mode {
    SL_ARCHIVE_READ, /* it must exist */
    SL_ARCHIVE_KEEP, /* it must exist; opened for writing */
    SL_ARCHIVE_MAKE, /* created if it does not exist */
};

/* Identifies an archive: 32 random hexadecimal digits and a NUL, stored in the archive when it is
 * created. A copy of an archive has the same identity, a new archive another. Databases remember
 * the identity of the archive that holds their posts (src/tasks/worker_archive.h). */
enum { SL_ARCHIVE_IDENTITY_SIZE = 33 };

/* Checks the URL without opening anything. 0; -EINVAL: *reterr says what is wrong. */
SL_EXPORT int sl_archive_check(const char *url, struct failure *reterr);

/* `database_id`: as in sl_meta; NULL, for reading only: the archive of any database. 0; -EINVAL: as
 * sl_archive_check(); -ENOENT: there is none; -ESTALE: it belongs to another database or was made
 * by a newer Sluice; -EBADMSG: damaged, or not an archive; -EAGAIN: the server is not available
 * now; -EACCES: the server refuses the login, or its certificate is not valid; -EIO; -ENOMEM. */
SL_EXPORT int sl_archive_open(const char *url, const char *database_id, enum sl_archive_mode mode,
                              struct sl_archive **ret_archive, struct failure *reterr);
SL_EXPORT void sl_archive_close(struct sl_archive *archive); /* NULL is allowed */

/* "" for an archive of an earlier version that has not been opened for writing yet. */
SL_EXPORT const char *sl_archive_identity(const struct sl_archive *archive);

/* All calls below return 0; -EAGAIN: others are writing for too long, or the server is not
 * available, try again later; -ENOSPC: the disk is full; -EROFS; -EBADMSG: damaged; -EACCES;
 * -ENOMEM; -EIO; or an error of sl_archive_open() if they had to reconnect. A failed call has
 * changed nothing, except that after -EAGAIN because a server went away, all or nothing may have
 * been done. Repeating a call is always safe. */

/* Checks that the open archive is still the one that the URL leads to. Call it after a store,
 * before the posts are dropped elsewhere: what is stored in a file that has been removed is lost
 * when the file is closed. -ESTALE: removed or replaced; close the archive. */
SL_EXPORT int sl_archive_verify(struct sl_archive *archive, struct failure *reterr);

/* Stores the posts durably, except those that were erased. */
SL_EXPORT int sl_archive_store(struct sl_archive *archive, const struct sl_archive_post *posts,
                               size_t count, struct failure *reterr);
/* Erases the posts for ever, whether they have been stored before or not. */
SL_EXPORT int sl_archive_erase(struct sl_archive *archive, const uint64_t *posts, size_t count,
                               struct failure *reterr);
/* Reads the newest posts of a user: up to `limit` with ids below `before` (0: from the newest).
 * Like sl_archive_find() it fills an empty page. */
SL_EXPORT int sl_archive_list(struct sl_archive *archive, uint64_t user, uint64_t before,
                              size_t limit, struct sl_archive_page *ret_page,
                              struct failure *reterr);
/* Reads those of the given posts that exist, in the same order. */
SL_EXPORT int sl_archive_find(struct sl_archive *archive, const uint64_t *posts, size_t count,
                              struct sl_archive_page *ret_page, struct failure *reterr);
