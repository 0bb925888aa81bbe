/* bench/fanout_options.h - the command line of bench/fanout. */
#pragma once

#include <sys/types.h>

#include "bench/fanout_clients.h"
#include "bench/fanout_publish.h"

struct options {
    struct client_settings clients;
    struct publish_settings publish;
    bool from_log; /* posts are already published; the path says from where */
    unsigned idle_s, max_s;
    pid_t server;
};

/* Ends the program with the usage if an option is wrong or missing. */
void options_read(struct options *ret_options, int argc, char **argv);
