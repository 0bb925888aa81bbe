/* gateway/process/process_end.h - describes how a process ended, for log and messages. */
#pragma once

#include <signal.h>

enum { PROCESS_END_SIZE = 64 };

/* Writes "with status 1" or "by signal 9 (Killed)" from the result of waitid(2). Returns `room`. */
const char *process_end_describe(const siginfo_t *how, char room[static PROCESS_END_SIZE]);
