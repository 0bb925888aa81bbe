#include "cli/sluiced_program.h"

#include <string.h>
#include <unistd.h>

const char *sluiced_program(char room[static PATH_MAX])
{
    ssize_t size = readlink("/proc/self/exe", room, PATH_MAX - sizeof("/../sbin/sluiced"));
    char *slash;

    room[size > 0 ? size : 0] = '\0';
    slash = strrchr(room, '/');
    if (slash) {
        strcpy(slash, "/../sbin/sluiced");
        if (access(room, X_OK) == 0)
            return room;
    }
    return "sluiced";
}
