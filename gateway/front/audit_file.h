/* gateway/front/audit_file.h - opens the audit log for appending.
 *
 * Blocks on the disk. */
#pragma once

#include "base/failure.h"

/* Opens a regular file, created with mode 0640 if there is none. Returns a descriptor, which can
 * also be read if the permissions allow it; a negative errno: *reterr says why. */
int audit_file_open(const char *path, struct failure *reterr);
