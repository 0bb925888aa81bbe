/* bench/sink.h - clients of delivery that take everything at once: what they are sent is counted by
 * delivery itself (client.sent_bytes). Being evicted ends the program with a message. */
#pragma once

#include "gateway/delivery/client.h"

extern const struct transport sink;
