/* tests/support/reply_of.h - parses bytes of Redis's protocol into a reply. */
#pragma once

struct redisReply;

/* Parses one whole reply of version 2 of the protocol; otherwise the test fails. The caller frees
 * it. */
struct redisReply *reply_of(const char *bytes);
