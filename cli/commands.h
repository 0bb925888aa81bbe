/* cli/commands.h - the table of all commands. */
#pragma once

#include "cli/command_table.h"

extern const struct command_table commands;
