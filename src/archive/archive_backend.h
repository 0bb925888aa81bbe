/* src/archive/archive_backend.h - the functions that an archive backend implements. archive.c
 * chooses the backend by the URL's scheme.
 *
 * The contracts are those of archive.h. A backend's own struct begins with `struct sl_archive`. */
#pragma once

#include "src/archive/archive.h"

struct sl_archive_backend {
    /* Checks `rest`, which follows the scheme and its colon. */
    int (*check)(const char *rest, struct failure *reterr);
    /* `rest` has been checked. */
    int (*open)(const char *rest, const char *database_id, enum sl_archive_mode mode,
                struct sl_archive **ret_archive, struct failure *reterr);
    void (*close)(struct sl_archive *archive);
    int (*verify)(struct sl_archive *archive, struct failure *reterr);
    int (*store)(struct sl_archive *archive, const struct sl_archive_post *posts, size_t count,
                 struct failure *reterr);
    int (*erase)(struct sl_archive *archive, const uint64_t *posts, size_t count,
                 struct failure *reterr);
    int (*list)(struct sl_archive *archive, uint64_t user, uint64_t before, size_t limit,
                struct sl_archive_page *page, struct failure *reterr);
    int (*find)(struct sl_archive *archive, const uint64_t *posts, size_t count,
                struct sl_archive_page *page, struct failure *reterr);
};

struct sl_archive {
    const struct sl_archive_backend *backend;
    char identity[SL_ARCHIVE_IDENTITY_SIZE]; /* "": none yet */
};

extern const struct sl_archive_backend sl_archive_sqlite, sl_archive_mysql;

/* Makes the identity of a new archive. */
void sl_archive_make_identity(char room[static SL_ARCHIVE_IDENTITY_SIZE]);

/* Adds a copy of the post to a page. 0; -ENOMEM. */
int sl_archive_page_add(struct sl_archive_page *page, const struct sl_archive_post *post,
                        struct failure *reterr);
