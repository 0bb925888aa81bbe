/* base/key_file.h - reads a small file that contains a key or a secret. */
#pragma once

#include <stdbool.h>

#include "base/buffer.h"
#include "base/failure.h"

enum { KEY_FILE_MAX_BYTES = 65536 };

/* Reads the file into the empty buffer `content`, whose memory is never moved, so that no copy of
 * the secret remains. *ret_is_exposed: other users of the machine may read the file. 0; a negative
 * errno: *reterr names the file and the problem. */
int key_file_read(const char *path, struct buffer *content, bool *ret_is_exposed,
                  struct failure *reterr);

/* The same for a secret: one newline at its end is ignored, and it must not be empty. */
int key_file_read_secret(const char *path, struct buffer *content, bool *ret_is_exposed,
                         struct failure *reterr);

/* Overwrites the content, then calls buffer_done(). */
void key_file_done(struct buffer *content);
