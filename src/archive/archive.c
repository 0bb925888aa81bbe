/* archive.c - opens an archive by the backend for its URL's scheme and passes calls on to it.
 *
 * A backend is a row of `kinds`. A page that could not be read completely is freed here. */
#include "src/archive/archive.h"

#include <errno.h>
#include <string.h>

#include "src/archive/archive_backend.h"

static const struct {
    const char *scheme;
    const struct sl_archive_backend *backend;
} kinds[] = {
    {"sqlite", &sl_archive_sqlite},
    {"mysql", &sl_archive_mysql},
    {"mariadb", &sl_archive_mysql},
};

static int find_backend(const char *url, const struct sl_archive_backend **ret_backend,
                        const char **ret_rest, struct failure *reterr)
{
    const char *colon = strchr(url, ':');
    struct sl_slice scheme;

    if (!colon)
        return failure_set(reterr, -EINVAL,
                           "'%s' is not the URL of an archive, as in sqlite:/path/to/file", url);
    scheme = sl_slice(url, (size_t)(colon - url));
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (!sl_slice_is(scheme, kinds[i].scheme))
            continue;
        *ret_backend = kinds[i].backend;
        *ret_rest = colon + 1;
        return kinds[i].backend->check(colon + 1, reterr);
    }
    return failure_set(reterr, -EINVAL,
                       "there are no archives of the kind '%.*s', only sqlite, mysql and mariadb",
                       SL_SLICE_ARG(scheme));
}

int sl_archive_check(const char *url, struct failure *reterr)
{
    const struct sl_archive_backend *backend;
    const char *rest;

    return find_backend(url, &backend, &rest, reterr);
}

int sl_archive_open(const char *url, const char *database_id, enum sl_archive_mode mode,
                    struct sl_archive **ret_archive, struct failure *reterr)
{
    const struct sl_archive_backend *backend;
    const char *rest;
    int r = find_backend(url, &backend, &rest, reterr);

    return r < 0 ? r : backend->open(rest, database_id, mode, ret_archive, reterr);
}

void sl_archive_close(struct sl_archive *archive)
{
    if (archive)
        archive->backend->close(archive);
}

const char *sl_archive_identity(const struct sl_archive *archive)
{
    return archive->identity;
}

int sl_archive_verify(struct sl_archive *archive, struct failure *reterr)
{
    return archive->backend->verify(archive, reterr);
}

int sl_archive_store(struct sl_archive *archive, const struct sl_archive_post *posts, size_t count,
                     struct failure *reterr)
{
    return archive->backend->store(archive, posts, count, reterr);
}

int sl_archive_erase(struct sl_archive *archive, const uint64_t *posts, size_t count,
                     struct failure *reterr)
{
    return archive->backend->erase(archive, posts, count, reterr);
}

int sl_archive_list(struct sl_archive *archive, uint64_t user, uint64_t before, size_t limit,
                    struct sl_archive_page *ret_page, struct failure *reterr)
{
    struct sl_archive_page page = SL_ARCHIVE_PAGE_INIT;
    int r = archive->backend->list(archive, user, before, limit, &page, reterr);

    if (r < 0)
        sl_archive_page_done(&page);
    else
        *ret_page = page;
    return r;
}

int sl_archive_find(struct sl_archive *archive, const uint64_t *posts, size_t count,
                    struct sl_archive_page *ret_page, struct failure *reterr)
{
    struct sl_archive_page page = SL_ARCHIVE_PAGE_INIT;
    int r = archive->backend->find(archive, posts, count, &page, reterr);

    if (r < 0)
        sl_archive_page_done(&page);
    else
        *ret_page = page;
    return r;
}
