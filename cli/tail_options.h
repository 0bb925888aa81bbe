/* cli/tail_options.h - the command line of `sluice tail`: the stream, its parameters, and how to
 * print it. */
#pragma once

#include <curl/curl.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "cli/cli.h"

enum { TAIL_PARAMETERS_MAX = 32 };

struct tail_arguments {
    const char *base, *token, *cacert; /* of the server */
    const char *stream;                /* the last part of its path */
    uint64_t limit;                    /* number of messages to print; 0: no limit */
    bool is_pretty;
    bool is_uncompressed;
    struct buffer values[TAIL_PARAMETERS_MAX]; /* of the parameters; without data: not given */
};

extern const struct cli_option tail_options[];

/* Reads the command line. A parameter that the stream does not have, and one that it needs and is
 * missing, end the program with a message. tail_arguments_done() is needed at the end. */
void tail_options_read(struct cli *cli, int argc, char **argv,
                       struct tail_arguments *ret_arguments);
void tail_arguments_done(struct tail_arguments *arguments);

/* Appends the parameters as a form; a failure is that of the buffer. `curl` is a context for
 * escaping. */
void tail_options_append_form(struct tail_arguments *arguments, CURL *curl, struct buffer *form);

/* The given value of a parameter, and the name of its option, for a refusal (refusal.h). */
const char *tail_options_value(const void *arguments, const char *param, const char **ret_option);
