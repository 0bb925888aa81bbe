/* gateway/api/archive_reader.h - reads the archive (src/archive/archive.h) without blocking the
 * loop.
 *
 * Reading blocks on the disk or on a server, so it is done on a thread of libuv's pool, one read at
 * a time, so that at most one thread waits; the result arrives on the loop. The archive is opened
 * for the first read, and again after a failure. If it is not available (-EAGAIN), all waiting
 * reads fail at once. Belongs to the thread of the loop. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "src/archive/archive.h"

struct archive_reader;

/* `r` is the result of the function in src/archive/archive.h; 0: `page`, which the callee may take.
 * Called with -ECANCELED for outstanding reads when the reader is freed. */
typedef void (*archive_read_fn)(void *owner, int r, struct sl_archive_page *page,
                                const struct failure *failure);

/* `url` is copied. A read that has waited for `timeout_ms` fails with -EAGAIN. NULL: out of
 * memory. */
struct archive_reader *archive_reader_new(uv_loop_t *loop, const char *url, uint64_t timeout_ms);
/* The loop is needed until the current read has returned. NULL is allowed. */
void archive_reader_free(struct archive_reader *reader);

/* 0: `done` will be called, later; -EAGAIN: too many reads wait; -ENOMEM. */
int archive_reader_find(struct archive_reader *reader, const uint64_t *posts, size_t count,
                        archive_read_fn done, void *owner);
int archive_reader_list(struct archive_reader *reader, uint64_t user, uint64_t before, size_t limit,
                        archive_read_fn done, void *owner);
