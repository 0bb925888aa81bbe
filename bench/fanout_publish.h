/* bench/fanout_publish.h - the publisher: posts into Redis, or into an HTTP server, from its own
 * thread.
 *
 * Post n is {"id":..,"type":"post","post":{..,"text":"WORD NS N ..."}}: NS is CLOCK_MONOTONIC when
 * it was published, WORD is kwK for posts with a keyword and "none" for others. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

struct publish_settings {
    const char *redis;     /* HOST:PORT or the path of a socket; NULL: HTTP */
    const char *channel;   /* of Redis */
    uint16_t http_port;    /* on loopback */
    const char *http_path; /* %d: the number of the keyword */
    uint64_t posts;
    unsigned size;     /* bytes of an event */
    double rate;       /* posts a second; 0: as fast as possible */
    uint64_t burst;    /* without a rate: how many are sent at once, when all before have been
                          delivered; 0: no bursts */
    const char *texts; /* a file with one escaped text per line, used in turn; NULL: words */
    uint64_t window;   /* without a rate: posts not yet delivered to all; 0: no limit */
    uint64_t deliveries_per_post;
    uint64_t keywords;      /* 0: none */
    uint64_t keyword_every; /* one post in this many has one */
    const _Atomic uint64_t *delivered;
    const _Atomic int *is_over; /* nobody waits for posts any more */
};

/* The number of the first post with the keyword `keyword`, and the distance to the next one. */
uint64_t publish_first_with(const struct publish_settings *settings, uint64_t keyword);
uint64_t publish_stride(const struct publish_settings *settings);

/* Publishes all posts. For a thread: `settings` is a struct publish_settings; returns NULL. */
void *publish_run(void *settings);
