/* gateway/front/site.h - the web pages that are built into sluiced.
 *
 * A site is a list of files in memory, each plain and compressed; they are built in web/. Pure
 * functions: a request in, an answer out. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "gateway/http/http.h"

struct site_file {
    const char *path; /* of the URL */
    const char *content_type;
    const char *hash;  /* of the content; letters and digits */
    bool is_document;  /* a document, which is revalidated each time; otherwise its path contains
                          its hash */
    bool is_for_all;   /* otherwise for operators only, if they have a separate port */
    const char *plain; /* both contents are borrowed for the lifetime of the program */
    size_t plain_size;
    const char *gzip;
    size_t gzip_size;
};

struct site {
    const struct site_file *files;
    size_t count; /* 0: built without pages */
};

/* Made by web/CMakeLists.txt; only linked into sluiced. */
extern const struct site dashboard_site;

struct site_answer {
    int status; /* 200, or 304: the client has it */
    const char *content_type;
    const char *cache_control;
    struct sl_slice body; /* belongs to the site */
};

/* NULL: there is nothing at this path. */
const struct site_file *site_find(const struct site *site, struct sl_slice path);

/* Fills *ret_answer and appends the headers other than Content-Type, Content-Length and
 * Cache-Control, each with its CRLF. */
void site_answer(const struct site_file *file, const struct http_request *http,
                 struct buffer *headers, struct site_answer *ret_answer);
