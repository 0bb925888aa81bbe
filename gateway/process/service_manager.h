/* gateway/process/service_manager.h - telling systemd, or whoever speaks its protocol, how far we
 * are.
 *
 * Does nothing unless the environment has NOTIFY_SOCKET (see sd_notify(3)). */
#pragma once

/* `state` as in "STOPPING=1": one assignment a line. */
void service_manager_tell(const char *state);
