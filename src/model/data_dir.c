#include "src/model/data_dir.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int fill(char *path, const char *folder, const char *below, struct failure *reterr)
{
    if (strlen(folder) + strlen(below) >= SL_DATA_DIR_SIZE)
        return failure_set(reterr, -EINVAL, "the path of the data directory is too long");
    snprintf(path, SL_DATA_DIR_SIZE, "%s%s", folder, below);
    return 0;
}

static int from_home(char *path, struct failure *reterr)
{
    const char *home = getenv("HOME");
    const struct passwd *user;

    if (geteuid() == 0)
        return fill(path, "/var/lib/sluice", "", reterr);
    if (!home || home[0] != '/') {
        user = getpwuid(geteuid());
        home = user ? user->pw_dir : NULL;
    }
    if (!home || home[0] != '/')
        return failure_set(reterr, -ENOENT,
                           "no home directory to keep data in; set SLUICE_DATA_DIR");
    return fill(path, home, "/.local/state/sluice", reterr);
}

int sl_data_dir(char ret_path[static SL_DATA_DIR_SIZE], struct failure *reterr)
{
    const char *own = getenv("SLUICE_DATA_DIR");
    const char *state = getenv("XDG_STATE_HOME");

    if (own && own[0] == '/')
        return fill(ret_path, own, "", reterr);
    if (own && own[0])
        return failure_set(reterr, -EINVAL, "SLUICE_DATA_DIR is not an absolute path: '%s'", own);
    if (state && state[0] == '/')
        return fill(ret_path, state, "/sluice", reterr);
    return from_home(ret_path, reterr);
}
