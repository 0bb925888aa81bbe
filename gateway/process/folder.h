/* gateway/process/folder.h - creates directories. */
#pragma once

#include "base/failure.h"

/* mkdir -p with mode 0700; the directory may exist. 0; a negative errno: *reterr says which
 * directory failed. */
int folder_make(const char *path, struct failure *reterr);
