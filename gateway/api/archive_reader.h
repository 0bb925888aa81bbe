/* gateway/api/archive_reader.h - reads the archive (src/archive/archive.h) without stalling the
 * loop.
 *
 * The archive blocks, on the disk or on its server, so it is read on a thread of libuv's pool, one
 * question at a time, so that no more than one thread ever waits there; the answer comes back on
 * the loop. It is opened when it is first asked, and again after it failed. When it is away
 * (-EAGAIN) everybody who waits is told so at once. Belongs to the thread of the loop. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "src/archive/archive.h"

struct archive_reader;

/* `r` as of the question's function in src/archive/archive.h; 0: `page`, which the callee may take.
 * Also called, with -ECANCELED, for what is under way when the reader is freed. */
typedef void (*archive_read_fn)(void *owner, int r, struct sl_archive_page *page,
                                const struct failure *failure);

/* NULL: out of memory. `url` is copied. Whoever has waited for `patience_ms` is not asked about any
 * more, but told -EAGAIN. */
struct archive_reader *archive_reader_new(uv_loop_t *loop, const char *url, uint64_t patience_ms);
/* The loop is needed until what is under way has come back. NULL is fine. */
void archive_reader_free(struct archive_reader *reader);

/* 0: `done` will be called, later; -EAGAIN: too many wait already; -ENOMEM. */
int archive_reader_find(struct archive_reader *reader, const uint64_t *posts, size_t count,
                        archive_read_fn done, void *owner);
int archive_reader_list(struct archive_reader *reader, uint64_t user, uint64_t before, size_t limit,
                        archive_read_fn done, void *owner);
