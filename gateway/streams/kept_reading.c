/* kept_reading.c - reads changed rules once for all streams of their subject.
 *
 * The worker that changes rules sends their new version to all workers through the control channel,
 * and repeats this until no stream has an older one. If a stream misses that, it finds out itself,
 * because it checks the version every CHECK_PARTS seconds. Limits: one reading for a subject at a
 * time. In a turn, streams are updated for FOLLOW_US plus one stream; for the others the rules are
 * read again. */
#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "gateway/access/rule_store.h"
#include "gateway/streams/kept_rules.h"

enum { CHECK_PARTS = 5, FOLLOW_US = 2000 };

struct kept_reading {
    struct streams *streams;
    struct list_node node; /* in streams->kept_readings */
    bool again;            /* they have changed since the request was sent */
    char holder[TOKEN_SUBJECT_SIZE];
};

/* --- reading --- */

static void reading_free(struct kept_reading *reading)
{
    list_remove(&reading->streams->kept_readings, &reading->node);
    mem_free(reading);
}

static bool is_of(const struct stream *stream, const char *holder)
{
    return stream_goes_on(stream) && strcmp(stream_token(stream)->holder, holder) == 0;
}

/* Updates streams. true: some are left. */
static bool follow(const struct kept_reading *reading, const struct subject_rules *rules)
{
    const uint64_t begun_us = clock_monotonic_us();

    LIST_EACH(&reading->streams->kept_streams, node)
    {
        struct stream *stream = LIST_OWNER(node, struct kept_rules, node)->stream;

        if (!is_of(stream, reading->holder) || stream->kept_rules->version == rules->version)
            continue;
        if (clock_monotonic_us() - begun_us >= FOLLOW_US)
            return true;
        kept_rules_follow(stream, rules);
    }
    return false;
}

static void ask(struct kept_reading *reading);

/* If Redis does not answer, the next check reads them again. */
static void on_rules(void *owner, int r, struct subject_rules *rules, const char *why)
{
    struct kept_reading *reading = owner;

    (void)why;
    if (r == 0 && (follow(reading, rules) || reading->again))
        ask(reading);
    else
        reading_free(reading);
}

static void ask(struct kept_reading *reading)
{
    reading->again = false;
    if (rule_store_get(reading->streams->settings.rules, sl_slice_str(reading->holder), on_rules,
                       reading) < 0)
        reading_free(reading);
}

static void read_rules(struct streams *streams, const char *holder)
{
    struct kept_reading *reading;

    LIST_EACH(&streams->kept_readings, node)
    {
        reading = LIST_OWNER(node, struct kept_reading, node);
        if (strcmp(reading->holder, holder) == 0) {
            reading->again = true;
            return;
        }
    }
    reading = mem_zalloc(sizeof(*reading));
    if (!reading)
        return;
    reading->streams = streams;
    memcpy(reading->holder, holder, strlen(holder) + 1);
    list_append(&streams->kept_readings, &reading->node);
    ask(reading);
}

static uint64_t tell_waits(struct streams *streams, const char *holder, uint64_t version)
{
    uint64_t waiting = 0;

    LIST_EACH(&streams->rule_waits, node)
    {
        struct rule_wait *wait = LIST_OWNER(node, struct rule_wait, node);

        if (strcmp(wait->holder, holder) != 0)
            continue;
        if (version > wait->version)
            wait->version = version;
        waiting++;
    }
    return waiting;
}

uint64_t kept_rules_notify(struct streams *streams, const char *holder, uint64_t version)
{
    uint64_t older = 0;

    LIST_EACH(&streams->kept_streams, node)
    {
        const struct stream *stream = LIST_OWNER(node, struct kept_rules, node)->stream;

        older += is_of(stream, holder) && stream->kept_rules->version < version;
    }
    if (older > 0)
        read_rules(streams, holder);
    return older + tell_waits(streams, holder, version);
}

/* --- checking the version --- */

struct look {
    struct streams *streams;
    admission_ticket ticket; /* of the stream, which may have ended since */
    char connection_id[CONNECTION_ID_SIZE];
};

static void on_version(void *owner, int r, uint64_t version, const char *why)
{
    const struct look look = *(struct look *)owner;
    const struct stream *stream = look.streams->by_ticket[look.ticket];

    (void)why;
    mem_free(owner);
    if (r < 0 || !stream || strcmp(stream->connection_id, look.connection_id) != 0 ||
        !stream->kept_rules || stream->kept_rules->version == version)
        return;
    read_rules(look.streams, stream_token(stream)->holder);
}

static void look_at(const struct stream *stream)
{
    struct streams *streams = stream->streams;
    struct look *look = mem_zalloc(sizeof(*look));

    if (!look)
        return;
    look->streams = streams;
    look->ticket = stream->ticket;
    memcpy(look->connection_id, stream->connection_id, sizeof(look->connection_id));
    if (rule_store_look(streams->settings.rules, sl_slice_str(stream_token(stream)->holder),
                        on_version, look) < 0)
        mem_free(look);
}

void kept_rules_check(struct streams *streams)
{
    streams->kept_part = (streams->kept_part + 1) % CHECK_PARTS;
    LIST_EACH(&streams->kept_streams, node)
    {
        const struct stream *stream = LIST_OWNER(node, struct kept_rules, node)->stream;

        if (stream_goes_on(stream) && (uint32_t)stream->ticket % CHECK_PARTS == streams->kept_part)
            look_at(stream);
    }
}
