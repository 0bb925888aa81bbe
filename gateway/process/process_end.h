/* gateway/process/process_end.h - how a process ended, in words for log and messages. */
#pragma once

#include <signal.h>

enum { PROCESS_END_SIZE = 64 };

/* "with status 1", "by signal 9 (Killed)": from what waitid(2) said, into `room`, which is
 * returned. */
const char *process_end_describe(const siginfo_t *how, char room[static PROCESS_END_SIZE]);
