#include "gateway/streams/renewal.h"

#include "base/clock.h"
#include "gateway/streams/stream.h"

uint64_t stream_token_warning_left_ms(const struct stream *stream)
{
    uint64_t ahead = stream->streams->settings.front->token_warning_ms;
    uint64_t expires = stream->own.request.token.expires_ms, now = clock_wall_ms();

    if (stream->was_warned || ahead == 0 || expires == 0)
        return UINT64_MAX;
    return expires > now + ahead ? expires - now - ahead : 0;
}

void stream_warn_of_token(struct stream *stream)
{
    uint64_t expires = stream->own.request.token.expires_ms, now = clock_wall_ms();

    stream->was_warned = true;
    channel_say_token_expiring(&stream->own, expires > now ? expires - now : 0);
}
