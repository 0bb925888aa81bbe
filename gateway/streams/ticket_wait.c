#include "gateway/streams/ticket_wait.h"

#include <errno.h>

int ticket_wait_check_room(const struct streams *streams, struct http_refusal *refusal)
{
    if (streams->tickets_waited_for < TICKETS_WAITED_FOR_MAX)
        return 0;
    http_refuse(refusal, 503, "busy", NULL, "too many tickets are being looked up");
    refusal->retry_after_s = HTTP_RETRY_AFTER_S;
    return -EPROTO;
}

void ticket_wait_init(struct ticket_wait *wait, struct streams *streams,
                      struct http_connection *connection, streams_refused_fn refused)
{
    *wait = (struct ticket_wait){streams, connection, refused};
    streams->tickets_waited_for++;
}

void ticket_wait_done(struct ticket_wait *wait)
{
    wait->streams->tickets_waited_for--;
}

static void on_abandoned(void *owner)
{
    ((struct ticket_wait *)owner)->connection = NULL;
}

void ticket_wait_begin(struct ticket_wait *wait)
{
    http_answer_later(wait->connection, on_abandoned, wait);
}

void ticket_wait_refuse(struct ticket_wait *wait, const struct http_refusal *refusal)
{
    if (wait->connection)
        wait->refused(wait->connection, refusal);
    wait->connection = NULL;
}

int ticket_refuse_for_redis(struct http_refusal *refusal, const char *message)
{
    http_refuse(refusal, 503, "redis_away", NULL, "%s", message);
    refusal->retry_after_s = HTTP_RETRY_AFTER_S;
    return -EPROTO;
}
