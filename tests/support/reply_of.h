/* tests/support/reply_of.h - what Redis answers, of the bytes that it sends. */
#pragma once

struct redisReply;

/* One whole reply of the protocol's second version; else the test fails. The caller frees it. */
struct redisReply *reply_of(const char *bytes);
