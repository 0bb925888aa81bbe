/* gateway/front/audit_file.h - the file that the settings name for auditors, opened to be appended
 * to.
 *
 * Blocks on the disk. */
#pragma once

#include "base/failure.h"

/* A regular file, made with mode 0640 if there is none. A descriptor, which may be read, too, where
 * that is permitted; a negative errno: *reterr says
 * why. */
int audit_file_open(const char *path, struct failure *reterr);
