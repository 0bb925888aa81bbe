/* tests/support/interruptions.h - a signal every few milliseconds, whose handler makes system calls
 * fail with EINTR. Only once per process, for the thread that starts it. */
#pragma once

/* `when_interrupted` (may be NULL) is called by the handler with the number of signals so far. */
void interruptions_begin(void (*when_interrupted)(unsigned times));
void interruptions_end(void);
