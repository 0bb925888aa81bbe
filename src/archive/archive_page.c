/* archive_page.c - a page of posts, which the backends fill. */
#include <errno.h>

#include "base/alloc.h"
#include "src/archive/archive_backend.h"

void sl_archive_page_done(struct sl_archive_page *page)
{
    for (size_t i = 0; i < page->count; i++)
        mem_free((char *)page->posts[i].json.data);
    mem_free(page->posts);
    *page = SL_ARCHIVE_PAGE_INIT;
}

int sl_archive_page_add(struct sl_archive_page *page, const struct sl_archive_post *post,
                        struct failure *reterr)
{
    struct sl_archive_post copy = *post;

    if (page->count == page->room) {
        size_t room = page->room ? 2 * page->room : 16;
        void *posts = mem_realloc(page->posts, mem_array_size(room, sizeof(*page->posts)));

        if (!posts)
            return failure_set(reterr, -ENOMEM, "out of memory");
        page->posts = posts;
        page->room = room;
    }
    copy.json.data = mem_strndup(post->json.data, post->json.size);
    if (!copy.json.data)
        return failure_set(reterr, -ENOMEM, "out of memory");
    page->posts[page->count++] = copy;
    return 0;
}
