/* cli/sluiced_program.h - where is the sluiced of this installation? */
#pragma once

#include <limits.h>

/* In the sbin beside this program's folder, for Debian keeps it out of the PATH of those who are not
 * root; else one of the PATH. */
const char *sluiced_program(char room[static PATH_MAX]);
