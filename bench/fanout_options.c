/* fanout_options.c - getopt_long(3) into the settings of clients and publisher.
 *
 * A command without a required option prints the usage, so that a mistyped command gives no
 * figures. */
#include "bench/fanout_options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum stream_format format_called(const char *name)
{
    for (int i = 0; i < FORMAT_COUNT; i++) {
        if (strcmp(name, format_names[i]) == 0)
            return (enum stream_format)i;
    }
    fprintf(stderr, "fanout: no format is called '%s'\n", name);
    exit(2);
}

static const char usage[] =
    "fanout --port P [--tls] --clients N [--format ws|ndjson|delimited|sse] [--path "
    "/x?track=kw%d]\n"
    "       [--token-file FILE (a token a line)] [--compressed] [--header 'A: b'] [--hello TEXT]\n"
    "       [--at-once N]\n"
    "       [--server PID] [--idle SECONDS] [--max SECONDS]\n"
    "       --churn HANDSHAKES\n"
    "     | --redis HOST:PORT|/SOCKET [--channel C] --posts N [--size BYTES]\n"
    "       [--rate N | --window POSTS | --burst POSTS (sent at once, when all before are "
    "delivered)]\n"
    "       [--texts FILE (a text a line, escaped as in JSON; events as the social core has "
    "them)]\n"
    "       [--keywords K [--keyword-every N]]\n"
    "     | --http-port P --http-path /pub?id=kw%d ... the same\n"
    "     | --from-log --posts N [--keywords K ...]: they are there, and --path says since when\n"
    "%d is the number of the client's or the post's keyword.\n";

void options_read(struct options *ret_options, int argc, char **argv)
{
    static const struct option names[] = {
        {"port", 1, NULL, 'p'},          {"clients", 1, NULL, 'n'},
        {"format", 1, NULL, 'f'},        {"path", 1, NULL, 'u'},
        {"token-file", 1, NULL, 't'},    {"header", 1, NULL, 'H'},
        {"at-once", 1, NULL, 'a'},       {"server", 1, NULL, 's'},
        {"idle", 1, NULL, 'i'},          {"max", 1, NULL, 'm'},
        {"churn", 1, NULL, 'C'},         {"redis", 1, NULL, 'r'},
        {"channel", 1, NULL, 'c'},       {"posts", 1, NULL, 'N'},
        {"size", 1, NULL, 'S'},          {"rate", 1, NULL, 'R'},
        {"window", 1, NULL, 'w'},        {"keywords", 1, NULL, 'k'},
        {"keyword-every", 1, NULL, 'e'}, {"http-port", 1, NULL, 'P'},
        {"http-path", 1, NULL, 'U'},     {"from-log", 0, NULL, 'L'},
        {"tls", 0, NULL, 'T'},           {"compressed", 0, NULL, 'z'},
        {"texts", 1, NULL, 'x'},         {"burst", 1, NULL, 'b'},
        {"hello", 1, NULL, 'h'},         {NULL, 0, NULL, 0},
    };
    struct options *options = ret_options;
    struct client_settings *clients = &options->clients;
    struct publish_settings *publish = &options->publish;

    *options = (struct options){
        .clients = {.path = "/v1/stream/firehose", .count = 100, .at_once = 64},
        .publish = {.channel = "sluice:{0}:live", .size = 500, .keyword_every = 1},
        .max_s = 120,
    };
    for (int name; (name = getopt_long(argc, argv, "", names, NULL)) != -1;) {
        unsigned long long number = optarg ? strtoull(optarg, NULL, 10) : 0;

        switch (name) {
        case 'p':
            clients->port = (uint16_t)number;
            break;
        case 'n':
            clients->count = (uint32_t)number;
            break;
        case 'f':
            clients->format = format_called(optarg);
            break;
        case 'u':
            clients->path = optarg;
            break;
        case 't':
            clients->token_file = optarg;
            break;
        case 'H':
            clients->header = optarg;
            break;
        case 'h':
            clients->hello = optarg;
            break;
        case 'a':
            clients->at_once = (uint32_t)number;
            break;
        case 's':
            options->server = (pid_t)number;
            break;
        case 'i':
            options->idle_s = (unsigned)number;
            break;
        case 'm':
            options->max_s = (unsigned)number;
            break;
        case 'C':
            clients->churn = number;
            break;
        case 'r':
            publish->redis = optarg;
            break;
        case 'c':
            publish->channel = optarg;
            break;
        case 'N':
            publish->posts = number;
            break;
        case 'S':
            publish->size = (unsigned)number;
            break;
        case 'R':
            publish->rate = strtod(optarg, NULL);
            break;
        case 'w':
            publish->window = number;
            break;
        case 'k':
            publish->keywords = number;
            break;
        case 'e':
            publish->keyword_every = number;
            break;
        case 'T':
            clients->is_tls = true;
            break;
        case 'z':
            clients->is_compressed = true;
            break;
        case 'x':
            publish->texts = optarg;
            break;
        case 'b':
            publish->burst = number;
            break;
        case 'L':
            options->from_log = true;
            break;
        case 'P':
            publish->http_port = (uint16_t)number;
            break;
        case 'U':
            publish->http_path = optarg;
            break;
        default:
            fputs(usage, stderr);
            exit(2);
        }
    }
    if (!clients->port || !clients->count || !clients->at_once || publish->size > 60000 ||
        !publish->keyword_every ||
        (!clients->churn &&
         (!publish->posts || (!publish->redis && !publish->http_path && !options->from_log)))) {
        fputs(usage, stderr);
        exit(2);
    }
    if (clients->churn && clients->count > clients->at_once)
        clients->count = clients->at_once;
}
