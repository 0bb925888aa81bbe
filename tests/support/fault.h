/* tests/support/fault.h - a process that is killed after any command that it sends to Redis.
 *
 * For programs that are linked with -Wl,--wrap=sl_redis_connection_append: every command of an
 * sl_redis_link passes there. The last command is sent; whether Redis runs it is seen afterwards,
 * but its answer is never read. */
#pragma once

#include <stdint.h>

#include "tests/support/core.h"

/* From now on this process sends `commands` more commands and is killed after the last of them
 * (SIGKILL). 0: never. */
void fault_after(uint64_t commands);

enum fault_end { FAULT_KILLED, FAULT_ENDED, FAULT_FAILED };

/* Runs `act` in a child process with its own connection, which is killed after `commands` commands.
 * `act` must not use cmocka: it prints errors and calls _exit(EXIT_FAILURE). FAULT_ENDED: it
 * finished before that. */
enum fault_end fault_run(const struct core *core, uint64_t commands,
                         void (*act)(struct core *core));

/* Waits until Redis has done what the killed process sent: until only `core` is connected. */
void fault_settle(struct core *core);
