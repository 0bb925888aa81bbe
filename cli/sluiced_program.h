/* cli/sluiced_program.h - finds the sluiced of this installation. */
#pragma once

#include <limits.h>

/* In the sbin directory next to this program's directory, because on Debian that is not in the PATH
 * of users other than root; else in the PATH. */
const char *sluiced_program(char room[static PATH_MAX]);
