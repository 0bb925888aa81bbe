/* tests/support/interruptions.h - a signal every few milliseconds, whose handler lets system calls
 * end with EINTR. One at a time in a process, for the thread that begins it. */
#pragma once

/* `when_interrupted` (may be NULL) is called by the handler with the number of signals so far. */
void interruptions_begin(void (*when_interrupted)(unsigned times));
void interruptions_end(void);
