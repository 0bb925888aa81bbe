#include "gateway/process/process_end.h"

#include <stdio.h>
#include <string.h>

const char *process_end_describe(const siginfo_t *how, char room[static PROCESS_END_SIZE])
{
    if (how->si_code == CLD_EXITED)
        snprintf(room, PROCESS_END_SIZE, "with status %d", how->si_status);
    else
        snprintf(room, PROCESS_END_SIZE, "by signal %d (%s)", how->si_status,
                 strsignal(how->si_status));
    return room;
}
