/* gateway/provider/set_file.h - the last good set of a source: a file that is there whole, or as it
 * was before. */
#pragma once

#include "base/buffer.h"
#include "base/failure.h"

/* For its owner alone. 0; a negative errno: *reterr names the file, and it is as it was. */
int set_file_write(const char *path, struct sl_slice content, struct failure *reterr);
/* Fills the empty buffer. 0; a negative errno. */
int set_file_read(const char *path, struct buffer *content);
