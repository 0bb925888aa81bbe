/* src/archive/archive.h - posts on disk: what falls out of a capped profile in Redis.
 *
 *     r = sl_archive_open("sqlite:/var/lib/sluice/archive.db", meta.database_id, SL_ARCHIVE_MAKE,
 *                         &archive, &failure);
 *     r = sl_archive_store(archive, posts, count, &failure);
 *     r = sl_archive_list(archive, user, before, 20, &page, &failure);
 *     sl_archive_close(archive);
 *
 * An archive belongs to one database, and says so. A post in it never changes: it is stored, once
 * or again, and perhaps erased; what has been erased stays so, whoever stores it afterwards. So
 * tasks that store and erase may come late, twice, and in any order.
 *
 * It knows nothing of who may see a post: what it gives is handed to Redis to be judged
 * (src/archive/archived.h). An open archive is one connection and belongs to one thread; several,
 * in several processes, may be open at once. Every call may block, on the disk or on the server.
 *
 *     sqlite:PATH, sqlite:///PATH                                 a file of SQLite
 *     mysql://USER[:PASSWORD]@HOST[:PORT]/DATABASE[?OPTIONS]      tables in a database of MySQL or
 *     mariadb://...                                               MariaDB, which exists
 *
 * OPTIONS are name=value, with & between them: socket=/path instead of a host; password-file=/path
 * (without it and without a PASSWORD, SLUICE_ARCHIVE_PASSWORD of the environment counts);
 * ssl-ca=/path for TLS with a server whose certificate is checked, ssl-cert=/path and ssl-key=/path
 * for one of our own; timeout=SECONDS (5) to connect and for each answer. Names and paths are
 * percent-encoded. No message holds a password.
 *
 * With a server a call takes one round trip: to store, to erase, to list and to find, however many
 * posts; more than some 256 KB of posts take two more, and one for each such part. To verify takes
 * one. Opening takes three, and those of the login. A connection that was lost since the last call is made anew in the
 * next one. */
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

/* Posts that were read; `json` lives as long as the page. */
struct sl_archive_page {
    struct sl_archive_post *posts;
    size_t count;
    size_t room; /* private */
};

#define SL_ARCHIVE_PAGE_INIT ((struct sl_archive_page){.count = 0})

SL_EXPORT void sl_archive_page_done(struct sl_archive_page *page);

enum sl_archive_mode {
    SL_ARCHIVE_READ, /* there must be one */
    SL_ARCHIVE_KEEP, /* there must be one, and it is to be written to */
    SL_ARCHIVE_MAKE, /* where there is none it is made */
};

/* Which archive it is: random, 32 hexadecimal digits and a NUL, in the archive for as long as it
 * lives. A copy of an archive has it, too; one that is made anew has another. Databases remember
 * the one that their posts went to (src/tasks/worker_archive.h). */
enum { SL_ARCHIVE_IDENTITY_SIZE = 33 };

/* Could this be the URL of an archive? 0; -EINVAL: *reterr says what is wrong. */
SL_EXPORT int sl_archive_check(const char *url, struct failure *reterr);

/* `database_id`: as in sl_meta; NULL, to read only: whosever it is. 0; -EINVAL: as above; -ENOENT:
 * there is none; -ESTALE: that of another database, or made by a newer Sluice; -EBADMSG: damaged,
 * or no archive; -EAGAIN: the server is not there now; -EACCES: it does not want us, or is not who
 * it should be; -EIO, -ENOMEM. */
SL_EXPORT int sl_archive_open(const char *url, const char *database_id, enum sl_archive_mode mode,
                              struct sl_archive **ret_archive, struct failure *reterr);
SL_EXPORT void sl_archive_close(struct sl_archive *archive); /* NULL is fine */

/* "": one of an earlier version, which has none before it is opened to be written to. */
SL_EXPORT const char *sl_archive_identity(const struct sl_archive *archive);

/* All calls return 0; -EAGAIN: others write for too long, or the server is not there, later it may
 * work; -ENOSPC: the disk is full; -EROFS; -EBADMSG: damaged; -EACCES; -ENOMEM; -EIO; and what
 * sl_archive_open() says when it had to connect again. What fails has changed nothing, except with
 * -EAGAIN where a server went away in the middle: then all of it may have been done, or nothing. To
 * do it again is always right. */

/* Is what was opened still where the URL leads? To be asked behind a store, before anything is
 * dropped elsewhere: what is stored in a file that has been removed is gone when it is closed.
 * -ESTALE: it has been removed or replaced; close it. */
SL_EXPORT int sl_archive_verify(struct sl_archive *archive, struct failure *reterr);

/* Keeps all of them, safe on the disk, but those that were erased. */
SL_EXPORT int sl_archive_store(struct sl_archive *archive, const struct sl_archive_post *posts,
                               size_t count, struct failure *reterr);
/* For ever, whether they have been stored before or not. */
SL_EXPORT int sl_archive_erase(struct sl_archive *archive, const uint64_t *posts, size_t count,
                               struct failure *reterr);
/* The newest posts of a user: up to `limit` with ids below `before` (0: from the newest on). Both
 * reads fill an empty page. */
SL_EXPORT int sl_archive_list(struct sl_archive *archive, uint64_t user, uint64_t before,
                              size_t limit, struct sl_archive_page *ret_page,
                              struct failure *reterr);
/* Of these posts those that there are, in the same order. */
SL_EXPORT int sl_archive_find(struct sl_archive *archive, const uint64_t *posts, size_t count,
                              struct sl_archive_page *ret_page, struct failure *reterr);
