/* gateway/process/folder.h - directories of our own. */
#pragma once

#include "base/failure.h"

/* mkdir -p with mode 0700; the directory may exist already. 0; a negative errno: *reterr says
 * which directory. */
int folder_make(const char *path, struct failure *reterr);
