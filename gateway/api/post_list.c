/* post_list.c - lists of a post: the users who like it, and its comments.
 *
 * Redis is asked first. A post that Redis lacks may be in the archive; its lists are still in
 * Redis, but who may see them is decided by the post as stored in the archive. A page costs one
 * round trip, two with the archive in between. */
#include "gateway/api/request.h"
#include "src/archive/archived.h"
#include "src/social/likes.h"
#include "src/social/posts.h"

struct api_post_list {
    int (*build)(struct sl_call *call, const struct sl_meta *meta, uint64_t reader, uint64_t post,
                 const struct sl_page *page, struct failure *reterr);
    int (*build_archived)(struct sl_call *call, const struct sl_meta *meta, uint64_t reader,
                          const struct sl_archive_post *post, const struct sl_page *page,
                          struct failure *reterr);
    api_step_fn on_page;
};

static const struct api_post_list likes = {sl_like_list_call, sl_archived_like_list_call,
                                           api_list_on_users};
static const struct api_post_list comments = {sl_comment_list_call, sl_archived_comment_list_call,
                                              api_list_on_posts};

static int on_archived(struct api_request *request, const redisReply *reply)
{
    const struct sl_meta meta = api_meta(request);
    struct failure failure;
    int r;

    (void)reply;
    if (request->archived.count == 0)
        return api_no_post(request);
    r = request->post_list->build_archived(&request->call, &meta, request->caller,
                                           request->archived.posts, &request->page, &failure);
    return api_send(request, r, &failure, request->post_list->on_page);
}

static int on_page(struct api_request *request, const redisReply *reply)
{
    return api_try_archive(request, reply, request->post_list->on_page, on_archived);
}

static int begin(struct api_request *request, const struct api_post_list *list)
{
    const struct sl_meta meta = api_meta(request);
    struct failure failure;
    int r;

    request->post_list = list;
    request->page.is_bare = api_wants_bare(request);
    r = list->build(&request->call, &meta, request->caller, request->post, &request->page,
                    &failure);
    return api_send(request, r, &failure, on_page);
}

int likes_list(struct api_request *request, const redisReply *reply)
{
    (void)reply;
    return begin(request, &likes);
}

int posts_comments(struct api_request *request, const redisReply *reply)
{
    (void)reply;
    return begin(request, &comments);
}
