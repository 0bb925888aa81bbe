/* bench/fanout_options.h - the command line of bench/fanout. */
#pragma once

#include <sys/types.h>

#include "bench/fanout_clients.h"
#include "bench/fanout_publish.h"

struct options {
    struct client_settings clients;
    struct publish_settings publish;
    bool from_log; /* the posts have been published; the path says since when */
    unsigned idle_s, max_s;
    pid_t server;
};

/* Ends the program with the usage when something is wrong. */
void options_read(struct options *ret_options, int argc, char **argv);
