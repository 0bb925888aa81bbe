/* gateway/provider/set_file.h - the file with the last good key set of a source, which is replaced
 * atomically. */
#pragma once

#include "base/buffer.h"
#include "base/failure.h"

/* Only its owner can read it. 0; a negative errno: *reterr names the file, and it is unchanged. */
int set_file_write(const char *path, struct sl_slice content, struct failure *reterr);
/* Fills the empty buffer. 0; a negative errno. */
int set_file_read(const char *path, struct buffer *content);
