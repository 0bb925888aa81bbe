/* gateway/process/service_manager.h - reports the state to systemd, or another service manager with
 * its protocol.
 *
 * Does nothing unless the environment has NOTIFY_SOCKET (see sd_notify(3)). */
#pragma once

/* `state` as in "STOPPING=1": one assignment in each line. */
void service_manager_tell(const char *state);
