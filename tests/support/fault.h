/* tests/support/fault.h - a process that is killed behind any command it sends to Redis.
 *
 * For programs that are linked with -Wl,--wrap=sl_redis_connection_append: every command of
 * a sl_redis_link passes there. The command that is the last leaves; whether Redis runs it is seen
 * afterwards, its answer never. */
#pragma once

#include <stdint.h>

#include "tests/support/core.h"

/* From now on this process sends `commands` more commands and is killed behind the last of them
 * (SIGKILL). 0: never. */
void fault_after(uint64_t commands);

enum fault_end { FAULT_KILLED, FAULT_ENDED, FAULT_FAILED };

/* Runs `act` in a child with a connection of its own, which is killed behind so many commands.
 * `act` must not use cmocka: it says what went wrong and calls _exit(EXIT_FAILURE). FAULT_ENDED: it
 * was through before that. */
enum fault_end fault_run(const struct core *core, uint64_t commands,
                         void (*act)(struct core *core));

/* Waits until Redis has done what the dead had sent: until nobody but `core` is connected. */
void fault_settle(struct core *core);
