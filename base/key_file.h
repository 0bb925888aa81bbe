/* base/key_file.h - reads a small file that holds a key or a secret. */
#pragma once

#include <stdbool.h>

#include "base/buffer.h"
#include "base/failure.h"

enum { KEY_FILE_MAX_BYTES = 65536 };

/* Fills the empty buffer `content`, whose memory never moves, so that no copy stays behind;
 * *ret_is_exposed: other users of the machine may read the file. 0; a negative errno: *reterr names
 * the file and what is wrong with it. */
int key_file_read(const char *path, struct buffer *content, bool *ret_is_exposed,
                  struct failure *reterr);

/* The same for a secret: one newline at its end does not count, and it is not empty. */
int key_file_read_secret(const char *path, struct buffer *content, bool *ret_is_exposed,
                         struct failure *reterr);

/* buffer_done(), after the content has been overwritten. */
void key_file_done(struct buffer *content);
