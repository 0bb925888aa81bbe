/* gateway/front/site.h - the pages that are built into sluiced: which file a request gets, and how.
 *
 * A site is a list of files in memory, each as it is and compressed; web/ is where it comes from.
 * Pure: a request in, an answer out. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "gateway/http/http.h"

struct site_file {
    const char *path; /* of the URL */
    const char *content_type;
    const char *hash;  /* of the content; letters and digits */
    bool is_document;  /* a document, asked for anew each time; else its path names its content */
    bool is_for_all;   /* else for operators, where they have a port of their own */
    const char *plain; /* both contents are borrowed for as long as the program runs */
    size_t plain_size;
    const char *gzip;
    size_t gzip_size;
};

struct site {
    const struct site_file *files;
    size_t count; /* 0: built without */
};

/* The one that web/CMakeLists.txt makes; only sluiced itself links it. */
extern const struct site dashboard_site;

struct site_answer {
    int status; /* 200, or 304: the client has it */
    const char *content_type;
    const char *cache_control;
    struct sl_slice body; /* belongs to the site */
};

/* NULL: there is nothing at this path. */
const struct site_file *site_find(const struct site *site, struct sl_slice path);

/* Fills *ret_answer and appends the headers beside Content-Type, Content-Length and Cache-Control,
 * each with its CRLF. */
void site_answer(const struct site_file *file, const struct http_request *http,
                 struct buffer *headers, struct site_answer *ret_answer);
