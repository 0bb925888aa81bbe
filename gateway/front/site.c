/* site.c - finds a file and answers with it, compressed or not, or with 304.
 *
 * The list is short and searched linearly. Files are compressed when they are built in, never here.
 * A document may be cached but must be revalidated each time; everything else has its hash in its
 * name and is cached for a year. The two forms of a file have separate tags. Headers forbid pages
 * to load anything from elsewhere, because they show what users have written. */
#include "gateway/front/site.h"

#include <string.h>

#include "gateway/http/accept_encoding.h"

/* Nothing from elsewhere, no inline scripts, no embedding in frames: the text of a post can be
 * shown but never executed. */
#define PAGE_POLICY                                                                                \
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "                    \
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "            \
    "require-trusted-types-for 'script'; trusted-types hub"

const struct site_file *site_find(const struct site *site, struct sl_slice path)
{
    for (size_t i = 0; site && i < site->count; i++) {
        if (sl_slice_is(path, site->files[i].path))
            return &site->files[i];
    }
    return NULL;
}

/* "HASH" or "HASH-gzip": different bytes must have different tags (RFC 9110, 8.8.3). */
static bool tag_is(struct sl_slice tag, const struct site_file *file, const char *ending)
{
    size_t hash_size = strlen(file->hash), ending_size = strlen(ending);

    if (sl_slice_starts_with(tag, SL_SLICE("W/"))) /* the weak comparison: 13.1.2 */
        tag = sl_slice_from(tag, 2);
    return tag.size == hash_size + ending_size + 2 && tag.data[0] == '"' &&
           memcmp(tag.data + 1, file->hash, hash_size) == 0 &&
           memcmp(tag.data + 1 + hash_size, ending, ending_size) == 0 &&
           tag.data[tag.size - 1] == '"';
}

static bool client_has_it(struct sl_slice if_none_match, const struct site_file *file,
                          const char *ending)
{
    while (if_none_match.size > 0) {
        struct sl_slice tag = http_next_element(&if_none_match, ',');

        if (sl_slice_is(tag, "*") || tag_is(tag, file, ending))
            return true;
    }
    return false;
}

void site_answer(const struct site_file *file, const struct http_request *http,
                 struct buffer *headers, struct site_answer *ret_answer)
{
    const struct accept_encoding accept = accept_encoding_read(&http->accept_encoding);
    bool gzip = accept_encoding_prefers(&accept, accept.gzip);
    const char *ending = gzip ? "-gzip" : "";

    *ret_answer = (struct site_answer){
        .status = 200,
        .content_type = file->content_type,
        .cache_control = file->is_document ? "no-cache" : "public, max-age=31536000, immutable",
        .body =
            gzip ? sl_slice(file->gzip, file->gzip_size) : sl_slice(file->plain, file->plain_size),
    };
    buffer_append_format(headers, "ETag: \"%s%s\"\r\nVary: Accept-Encoding\r\n", file->hash,
                         ending);
    if (file->is_document)
        buffer_append_str(headers, "Content-Security-Policy: " PAGE_POLICY "\r\n"
                                   "Referrer-Policy: no-referrer\r\n"
                                   "Cross-Origin-Opener-Policy: same-origin\r\n");
    buffer_append_str(headers, "Cross-Origin-Resource-Policy: same-origin\r\n");
    if (client_has_it(http->if_none_match, file, ending)) {
        ret_answer->status = 304;
        ret_answer->content_type = NULL;
        ret_answer->body = SL_SLICE_NONE;
    } else if (gzip) {
        buffer_append_str(headers, "Content-Encoding: gzip\r\n");
    }
}
