/* doorway.c - one visitor per connection whose request is not complete yet.
 *
 * Most heads are there when the connection is accepted, so a look is taken at once and the usual
 * visitor never waits. Looking does not take anything from the socket; only when the head is whole
 * and sound is it read, and then the body by its length. The others get a poll
 * handle; a list in order of arrival, all with the same time limit, needs one timer. A visitor that
 * is refused is answered, then its input is read and thrown away until it closes, for closing over
 * unread bytes would reset the connection and could take the answer with it. */
#include "gateway/http/doorway.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/list.h"
#include "base/log.h"
#include "gateway/http/entrances.h"
#include "gateway/http/http.h"
#include "gateway/http/request_head.h"

enum {
    READ_SIZE = 16384,
    LINGER_MS = 2000,
    TOSSED_MAX = 4 << 20,
    BODIES_MAX = 64 << 20, /* bytes of all bodies that are coming in */
    RETRY_AFTER_S = 2
};

struct visitor {
    struct doorway *doorway;
    uv_poll_t poll;
    int fd;
    bool has_begun;     /* a part of its head has come */
    bool is_refused;    /* answered; what still comes is thrown away */
    struct buffer head; /* put right; empty until it is complete */
    struct buffer body;
    size_t body_left; /* to come */
    size_t tossed;
    int low_water; /* of the socket: it is readable with so many bytes */
    uint64_t deadline_ms;
    struct list_node node; /* in `waiting` or `leaving`: both in order of deadline */
};

struct doorway {
    struct doorway_settings settings;
    struct entrances *entrances;
    uv_timer_t *timer;
    struct list waiting; /* for the rest of their request */
    struct list leaving; /* refused */
    size_t body_bytes;   /* of all visitors' bodies */
    struct buffer head;  /* scratch */
    char *input;         /* of one look: max_head_bytes and one more */
};

static void free_timer(uv_handle_t *timer)
{
    mem_free(timer);
}

static void arm_timer(struct doorway *doorway);
static void visitor_ready(uv_poll_t *poll, int status, int events);

/* --- visitors --- */

static void visitor_release(uv_handle_t *poll)
{
    struct visitor *visitor = LIST_OWNER(poll, struct visitor, poll);

    if (visitor->fd >= 0)
        close(visitor->fd);
    buffer_done(&visitor->head);
    mem_free(visitor);
}

/* What was seen stays in the socket: it is readable again only when there is more. */
static void await_more_than(struct visitor *visitor, size_t size)
{
    int low_water = (int)size + 1;

    if (low_water == visitor->low_water)
        return;
    visitor->low_water = low_water;
    setsockopt(visitor->fd, SOL_SOCKET, SO_RCVLOWAT, &low_water, sizeof(low_water));
}

static void begin_to_wait(struct visitor *visitor)
{
    list_append(&visitor->doorway->waiting, &visitor->node);
    metric_add(visitor->doorway->settings.metrics, METRIC_HANDSHAKES_PENDING, 1);
}

static void stop_waiting(struct visitor *visitor)
{
    list_remove(&visitor->doorway->waiting, &visitor->node);
    metric_sub(visitor->doorway->settings.metrics, METRIC_HANDSHAKES_PENDING, 1);
}

/* The body is wanted no more, or has changed hands. */
static void drop_body(struct visitor *visitor)
{
    visitor->doorway->body_bytes -= visitor->body.size;
    buffer_done(&visitor->body);
}

static void visitor_end(struct visitor *visitor)
{
    struct doorway *doorway = visitor->doorway;

    drop_body(visitor);
    if (visitor->is_refused)
        list_remove(&doorway->leaving, &visitor->node);
    else
        stop_waiting(visitor);
    uv_close((uv_handle_t *)&visitor->poll, visitor_release);
}

static void refusal_print(const struct http_refusal *refusal, struct buffer *response)
{
    struct buffer json = BUFFER_INIT;

    http_refusal_print(refusal, &json);
    buffer_append_format(response,
                         "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\n"
                         "Content-Length: %zu\r\nCache-Control: no-store\r\n",
                         refusal->status, http_reason(refusal->status), json.size);
    if (refusal->retry_after_s)
        buffer_append_format(response, "Retry-After: %u\r\n", refusal->retry_after_s);
    buffer_append_str(response, "Connection: close\r\n\r\n");
    buffer_append_slice(response, buffer_slice(&json));
    if (json.failed)
        response->failed = true;
    buffer_done(&json);
}

static void answer(int fd, const struct http_refusal *refusal)
{
    struct buffer response = BUFFER_INIT;

    refusal_print(refusal, &response);
    if (!response.failed && send(fd, response.data, response.size, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
        log_debug("refusal_unsent", "errno=%d", errno);
    buffer_done(&response);
    shutdown(fd, SHUT_WR);
}

static void visitor_refuse(struct visitor *visitor, const struct http_refusal *refusal)
{
    struct doorway *doorway = visitor->doorway;

    metric_add(doorway->settings.metrics, METRIC_REFUSED_AT_DOOR, 1);
    answer(visitor->fd, refusal);
    drop_body(visitor);
    stop_waiting(visitor);
    visitor->is_refused = true;
    visitor->deadline_ms = uv_now(doorway->settings.loop) + LINGER_MS;
    list_append(&doorway->leaving, &visitor->node);
    await_more_than(visitor, 0); /* what has been seen must be read now, too */
    uv_poll_start(&visitor->poll, UV_READABLE, visitor_ready);
    arm_timer(doorway);
}

/* Reads what there is into scratch and forgets it. */
static void visitor_toss(struct visitor *visitor)
{
    char room[READ_SIZE];
    ssize_t size = recv(visitor->fd, room, sizeof(room), MSG_DONTWAIT);

    if (size < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    visitor->tossed += size > 0 ? (size_t)size : 0;
    if (size <= 0 || visitor->tossed > TOSSED_MAX)
        visitor_end(visitor);
}

/* --- requests --- */

enum progress {
    PROGRESS_MORE,
    PROGRESS_BODY,
    PROGRESS_COMPLETE,
    PROGRESS_REFUSED,
    PROGRESS_BROKEN
};

/* What has come of a request. */
struct reading {
    size_t size; /* of what there is, in the doorway's input */
    size_t head_size;
    size_t body_size; /* to come, behind the head */
    struct http_refusal refusal;
};

static enum progress peek_head(struct doorway *doorway, int fd, struct reading *reading)
{
    size_t max = doorway->settings.max_head_bytes;
    ssize_t size = recv(fd, doorway->input, max + 1, MSG_DONTWAIT | MSG_PEEK);

    reading->size = size > 0 ? (size_t)size : 0;
    if (size < 0 && (errno == EAGAIN || errno == EINTR))
        return PROGRESS_MORE;
    if (size <= 0)
        return PROGRESS_BROKEN;
    reading->head_size = request_head_end(sl_slice(doorway->input, reading->size));
    if (reading->head_size > max || (reading->head_size == 0 && reading->size > max)) {
        http_refuse(&reading->refusal, 431, "headers_too_large", NULL,
                    "the request line and headers may have %zu bytes", max);
        return PROGRESS_REFUSED;
    }
    return reading->head_size ? PROGRESS_COMPLETE : PROGRESS_MORE;
}

/* Takes the head from the socket and puts it right, into the doorway's `head`. A body is never left
 * to libwebsockets: it would take what the client sent ahead together with it, and 4.1 takes a head
 * that was read for it for the beginning of the body. PROGRESS_COMPLETE: the request has none. */
static enum progress take_head(struct doorway *doorway, int fd, struct reading *reading)
{
    static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
    struct request_head facts;
    int r;

    buffer_clear(&doorway->head);
    r = request_head_rewrite(sl_slice(doorway->input, reading->head_size),
                             doorway->settings.max_body_bytes, &doorway->head, &facts,
                             &reading->refusal);
    if (r < 0)
        return r == -EPROTO ? PROGRESS_REFUSED : PROGRESS_BROKEN;
    if (facts.expects_continue && reading->size == reading->head_size &&
        send(fd, go_on, sizeof(go_on) - 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
        return PROGRESS_BROKEN;
    if (recv(fd, doorway->input, reading->head_size, MSG_DONTWAIT) != (ssize_t)reading->head_size)
        return PROGRESS_BROKEN;
    reading->body_size = facts.body_size;
    return facts.body_size ? PROGRESS_BODY : PROGRESS_COMPLETE;
}

static void admit(struct doorway *doorway, int fd, struct sl_slice head, struct buffer *body)
{
    doorway->settings.admit(doorway->settings.owner, fd, head, body);
}

/* As much as has come. */
static enum progress read_body(struct visitor *visitor, struct http_refusal *refusal)
{
    struct doorway *doorway = visitor->doorway;
    size_t wanted = visitor->body_left < READ_SIZE ? visitor->body_left : READ_SIZE;
    char *room;
    ssize_t size;

    if (doorway->body_bytes > BODIES_MAX) {
        http_refuse(refusal, 503, "busy", NULL, "this server is reading too much at once");
        refusal->retry_after_s = RETRY_AFTER_S;
        return PROGRESS_REFUSED;
    }
    room = buffer_reserve(&visitor->body, wanted);
    if (!room)
        return PROGRESS_BROKEN;
    size = recv(visitor->fd, room, wanted, MSG_DONTWAIT);
    if (size < 0 && (errno == EAGAIN || errno == EINTR))
        return PROGRESS_MORE;
    if (size <= 0)
        return PROGRESS_BROKEN;
    visitor->body.size += (size_t)size;
    visitor->body_left -= (size_t)size;
    doorway->body_bytes += (size_t)size;
    return visitor->body_left ? PROGRESS_MORE : PROGRESS_COMPLETE;
}

/* The descriptor is the next owner's, who watches it itself. */
static void visitor_admit(struct visitor *visitor)
{
    struct doorway *doorway = visitor->doorway;
    struct buffer body = visitor->body;
    int fd = visitor->fd;

    uv_poll_stop(&visitor->poll);
    visitor->fd = -1;
    doorway->body_bytes -= body.size;
    visitor->body = BUFFER_INIT;
    admit(doorway, fd, buffer_slice(&visitor->head), &body);
    buffer_done(&body);
    visitor_end(visitor);
}

static void visitor_read_body(struct visitor *visitor)
{
    struct http_refusal refusal;

    switch (read_body(visitor, &refusal)) {
    case PROGRESS_COMPLETE:
        visitor_admit(visitor);
        break;
    case PROGRESS_REFUSED:
        visitor_refuse(visitor, &refusal);
        break;
    case PROGRESS_BROKEN:
        visitor_end(visitor);
        break;
    default:
        break;
    }
}

/* Its head has been taken from the socket. */
static void visitor_take_head(struct visitor *visitor, const struct reading *reading)
{
    buffer_append_slice(&visitor->head, buffer_slice(&visitor->doorway->head));
    visitor->body_left = reading->body_size;
    visitor->has_begun = true;
    await_more_than(visitor, 0);
    if (visitor->head.failed)
        visitor_end(visitor);
    else if (visitor->body_left)
        visitor_read_body(visitor);
    else
        visitor_admit(visitor);
}

static void visitor_read_head(struct visitor *visitor, int events)
{
    struct reading reading;
    enum progress progress;

    progress = peek_head(visitor->doorway, visitor->fd, &reading);
    if (progress == PROGRESS_MORE && (events & UV_DISCONNECT))
        progress = PROGRESS_BROKEN; /* no more will come */
    if (progress == PROGRESS_COMPLETE)
        progress = take_head(visitor->doorway, visitor->fd, &reading);
    switch (progress) {
    case PROGRESS_MORE:
        await_more_than(visitor, reading.size);
        visitor->has_begun = reading.size > 0;
        break;
    case PROGRESS_BODY:
    case PROGRESS_COMPLETE:
        visitor_take_head(visitor, &reading);
        break;
    case PROGRESS_REFUSED:
        visitor_refuse(visitor, &reading.refusal);
        break;
    case PROGRESS_BROKEN:
        visitor_end(visitor);
        break;
    }
}

static void visitor_ready(uv_poll_t *poll, int status, int events)
{
    struct visitor *visitor = LIST_OWNER(poll, struct visitor, poll);

    if (status < 0)
        visitor_end(visitor);
    else if (visitor->is_refused)
        visitor_toss(visitor);
    else if (visitor->head.size > 0)
        visitor_read_body(visitor);
    else
        visitor_read_head(visitor, events);
}

/* A connection whose request is not complete. Takes `fd` whatever happens. NULL: no memory. */
static struct visitor *visitor_new(struct doorway *doorway, int fd, bool has_begun)
{
    struct visitor *visitor = mem_zalloc(sizeof(*visitor));

    if (!visitor || uv_poll_init(doorway->settings.loop, &visitor->poll, fd) < 0) {
        mem_free(visitor);
        close(fd);
        return NULL;
    }
    visitor->doorway = doorway;
    visitor->fd = fd;
    visitor->low_water = 1;
    visitor->has_begun = has_begun;
    visitor->deadline_ms = uv_now(doorway->settings.loop) + doorway->settings.timeout_ms;
    begin_to_wait(visitor);
    uv_poll_start(&visitor->poll, UV_READABLE | UV_DISCONNECT, visitor_ready);
    arm_timer(doorway);
    return visitor;
}

/* --- time --- */

static struct visitor *first_of(struct list *list)
{
    struct list_node *node = list_first(list);

    return node ? LIST_OWNER(node, struct visitor, node) : NULL;
}

static void on_timer(uv_timer_t *timer)
{
    struct doorway *doorway = timer->data;
    uint64_t now = uv_now(doorway->settings.loop);
    struct http_refusal refusal;
    struct visitor *visitor;

    http_refuse(&refusal, 408, "request_timeout", NULL, "the request took too long to arrive");
    while ((visitor = first_of(&doorway->waiting)) && visitor->deadline_ms <= now) {
        if (visitor->has_begun)
            visitor_refuse(visitor, &refusal);
        else
            visitor_end(visitor); /* nothing was asked, so nothing is answered */
    }
    while ((visitor = first_of(&doorway->leaving)) && visitor->deadline_ms <= now)
        visitor_end(visitor);
    arm_timer(doorway);
}

static void arm_timer(struct doorway *doorway)
{
    struct visitor *waiting = first_of(&doorway->waiting), *leaving = first_of(&doorway->leaving);
    uint64_t now = uv_now(doorway->settings.loop), due = UINT64_MAX;

    if (waiting)
        due = waiting->deadline_ms;
    if (leaving && leaving->deadline_ms < due)
        due = leaving->deadline_ms;
    if (due == UINT64_MAX)
        uv_timer_stop(doorway->timer);
    else
        uv_timer_start(doorway->timer, on_timer, due > now ? due - now : 0, 0);
}

/* --- coming in --- */

static void welcome(void *owner, int fd)
{
    struct doorway *doorway = owner;
    struct visitor *visitor;
    struct reading reading;
    enum progress progress;

    if (doorway->settings.is_tls) {
        admit(doorway, fd, SL_SLICE_NONE, NULL);
        return;
    }
    progress = peek_head(doorway, fd, &reading);
    if (progress == PROGRESS_COMPLETE)
        progress = take_head(doorway, fd, &reading);
    if (progress == PROGRESS_COMPLETE) {
        admit(doorway, fd, buffer_slice(&doorway->head), &(struct buffer){0});
        return;
    }
    if (progress == PROGRESS_BROKEN) {
        close(fd);
        return;
    }
    if (progress != PROGRESS_REFUSED && doorway->waiting.count >= doorway->settings.max_pending) {
        metric_add(doorway->settings.metrics, METRIC_HANDSHAKES_DROPPED, 1);
        close(fd);
        return;
    }
    visitor = visitor_new(doorway, fd, reading.size > 0);
    if (!visitor)
        return;
    if (progress == PROGRESS_BODY)
        visitor_take_head(visitor, &reading);
    else if (progress == PROGRESS_REFUSED)
        visitor_refuse(visitor, &reading.refusal);
    else
        await_more_than(visitor, reading.size);
}

/* One request a turn, however many the client has sent ahead. */
void doorway_welcome_back(struct doorway *doorway, int fd)
{
    if (doorway->waiting.count >= doorway->settings.max_pending) {
        metric_add(doorway->settings.metrics, METRIC_HANDSHAKES_DROPPED, 1);
        close(fd);
        return;
    }
    visitor_new(doorway, fd, false);
}

/* --- life --- */

struct doorway *doorway_new(const struct doorway_settings *settings)
{
    struct doorway *doorway = mem_zalloc(sizeof(*doorway));

    if (!doorway)
        return NULL;
    doorway->settings = *settings;
    list_init(&doorway->waiting);
    list_init(&doorway->leaving);
    doorway->input = mem_alloc(settings->max_head_bytes + 1);
    doorway->timer = mem_zalloc(sizeof(*doorway->timer));
    doorway->entrances =
        entrances_new(&(struct entrances_settings){.loop = settings->loop,
                                                   .listeners = settings->listeners,
                                                   .listener_count = settings->listener_count,
                                                   .user_timeout_ms = settings->user_timeout_ms,
                                                   .metrics = settings->metrics,
                                                   .welcome = welcome,
                                                   .owner = doorway});
    if (!doorway->input || !doorway->timer || !doorway->entrances) {
        entrances_free(doorway->entrances);
        mem_free(doorway->input);
        mem_free(doorway->timer);
        mem_free(doorway);
        return NULL;
    }
    uv_timer_init(settings->loop, doorway->timer);
    doorway->timer->data = doorway;
    return doorway;
}

void doorway_open(struct doorway *doorway)
{
    entrances_open(doorway->entrances);
}

void doorway_stop(struct doorway *doorway, bool empties_queues)
{
    entrances_close(doorway->entrances, empties_queues);
}

bool doorway_is_busy(const struct doorway *doorway, bool counts_silent)
{
    if (!list_is_empty(&doorway->leaving))
        return true;
    LIST_EACH(&doorway->waiting, node)
    {
        if (counts_silent || LIST_OWNER(node, struct visitor, node)->has_begun)
            return true;
    }
    return false;
}

void doorway_free(struct doorway *doorway)
{
    if (!doorway)
        return;
    entrances_free(doorway->entrances);
    LIST_EACH(&doorway->waiting, waiting)
    visitor_end(LIST_OWNER(waiting, struct visitor, node));
    LIST_EACH(&doorway->leaving, leaving)
    visitor_end(LIST_OWNER(leaving, struct visitor, node));
    uv_close((uv_handle_t *)doorway->timer, free_timer);
    buffer_done(&doorway->head);
    mem_free(doorway->input);
    mem_free(doorway);
}
