/* tests/support/killed_cli.c - `sluice`, killed after the Nth command that it sends to Redis:
 * SLUICE_KILLED_BEHIND=N in the environment. */
#include <stdlib.h>

#include "tests/support/fault.h"

__attribute__((constructor)) static void begin(void)
{
    const char *commands = getenv("SLUICE_KILLED_BEHIND");

    if (commands)
        fault_after(strtoull(commands, NULL, 10));
}
