#include "tests/support/reply_of.h"

#include <string.h>

#include <hiredis/hiredis.h>

#include "tests/support/cmocka_all.h"

struct redisReply *reply_of(const char *bytes)
{
    redisReader *reader = redisReaderCreate();
    void *reply = NULL;

    assert_int_equal(redisReaderFeed(reader, bytes, strlen(bytes)), REDIS_OK);
    assert_int_equal(redisReaderGetReply(reader, &reply), REDIS_OK);
    assert_non_null(reply);
    redisReaderFree(reader);
    return reply;
}
