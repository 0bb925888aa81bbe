/* bench/sink.h - clients of delivery that accept everything at once: delivery itself counts what
 * they are sent (client.sent_bytes). If one is evicted, the program ends with a message. */
#pragma once

#include "gateway/delivery/client.h"

extern const struct transport sink;
