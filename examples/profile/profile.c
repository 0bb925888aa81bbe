/* profile.c - what a site shows of a user: name, counters, newest posts, newest followers.
 *
 *     profile URL LOGIN
 *
 * URL is redis://... or unix:///... The page takes two round trips: the user, a page of posts and a
 * page of followers are requested together; then the followers that are in other shards, if the
 * database has more than one. Reads need no request id and may always be repeated. */
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <signal.h>
#include <sluice/follows.h>
#include <sluice/meta.h>
#include <sluice/post_rows.h>
#include <sluice/redis_address.h>
#include <sluice/redis_link.h>
#include <sluice/reply.h>
#include <sluice/users.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NEWEST = 10 };

struct segment {
    struct sl_redis_link *link;
    struct sl_meta meta;
    struct failure failure;
};

static int find_database(struct segment *page, const char *url)
{
    const struct sl_redis_link_options options = {.retry_ms = 2000};
    const struct sl_meta wanted = sl_meta_wanted(0);
    struct sl_redis_address address;
    int r;

    r = sl_redis_address_parse(sl_slice_str(url), &address, &page->failure);
    if (r == 0)
        r = sl_redis_link_open(&address, &options, &page->link, &page->failure);
    if (r == 0)
        r = sl_redis_link_meta(page->link, &wanted, &page->meta, &page->failure);
    return r;
}

static int show_user(struct segment *page, const redisReply *reply)
{
    struct sl_user_row row;
    int r;

    r = sl_users_reply(reply, 1, &page->failure);
    if (r == 0)
        r = sl_users_at(reply, 0, &row, &page->failure);
    if (r < 0)
        return r;
    printf("%.*s (@%.*s), since %.*s\n", SL_SLICE_ARG(row.user.name), SL_SLICE_ARG(row.user.login),
           SL_SLICE_ARG(row.signup));
    printf("%" PRIu64 " posts, %" PRIu64 " followers, follows %" PRIu64 "\n", row.posts,
           row.followers, row.following);
    return 0;
}

static int show_posts(struct segment *page, const redisReply *reply)
{
    size_t count = 0;
    int r;

    r = sl_post_list_reply(reply, &count, &page->failure);
    for (size_t i = 0; r == 0 && i < count; i++) {
        struct sl_post_row row;

        r = sl_post_list_at(reply, i, &row, &page->failure);
        if (r == 0)
            printf("%" PRIu64 " likes, %" PRIu64 " comments: %.*s\n", row.likes, row.comments,
                   SL_SLICE_ARG(row.json));
    }
    return r;
}

static void show_follower(const struct sl_user_row *row)
{
    printf("followed by @%.*s\n", SL_SLICE_ARG(row->user.login));
}

/* Followers in other shards; the list has only their ids. */
static int show_far_followers(struct segment *page, const struct sl_user_ref *far, size_t count)
{
    struct sl_shard_calls calls = SL_SHARD_CALLS_INIT;
    redisReply *replies[NEWEST] = {NULL}; /* there are at most as many calls as users */
    int r;

    r = sl_users_calls(&calls, &page->meta, far, count, &page->failure);
    if (r == 0 && calls.count > 0)
        r = sl_redis_link_run_many(page->link, calls.calls, calls.count, replies, &page->failure);
    for (size_t i = 0; r == 0 && i < calls.count; i++) {
        size_t rows;

        sl_shard_calls_items(&calls, i, &rows);
        r = sl_users_reply(replies[i], rows, &page->failure);
        for (size_t j = 0; r == 0 && j < rows; j++) {
            struct sl_user_row row;

            r = sl_users_at(replies[i], j, &row, &page->failure);
            if (r == 0)
                show_follower(&row);
        }
    }
    for (size_t i = 0; i < NEWEST; i++)
        freeReplyObject(replies[i]);
    sl_shard_calls_done(&calls);
    return r;
}

static int show_followers(struct segment *page, const redisReply *reply)
{
    struct sl_user_ref far[NEWEST];
    size_t far_count = 0, count = 0;
    int r;

    r = sl_user_list_reply(reply, &count, &page->failure);
    for (size_t i = 0; r == 0 && i < count && far_count < NEWEST; i++) {
        struct sl_listed_user listed;

        r = sl_user_list_at(reply, i, &listed, &page->failure);
        if (r == 0 && listed.row.user.login.data)
            show_follower(&listed.row);
        else if (r == 0)
            far[far_count++] = sl_user_by_id(listed.row.user.id);
    }
    return r < 0 ? r : show_far_followers(page, far, far_count);
}

enum { USER, POSTS, FOLLOWERS, QUESTIONS };

/* Requests everything in the user's shard in one round trip. */
static int ask(struct segment *page, const struct sl_user_ref *user, struct sl_call *calls,
               redisReply **ret_replies)
{
    const struct sl_page newest = {.limit = NEWEST};
    int r;

    r = sl_user_row_call(&calls[USER], &page->meta, user, &page->failure);
    if (r == 0)
        r = sl_post_list_call(&calls[POSTS], &page->meta, SL_READER_NOBODY, user, &newest,
                              &page->failure);
    if (r == 0)
        r = sl_follower_list_call(&calls[FOLLOWERS], &page->meta, user, &newest, &page->failure);
    if (r == 0)
        r = sl_redis_link_run_many(page->link, calls, QUESTIONS, ret_replies, &page->failure);
    return r;
}

static int show(struct segment *page, const char *url, const char *login)
{
    const struct sl_user_ref user = sl_user_by_login(sl_slice_str(login));
    struct sl_call calls[QUESTIONS] = {{0}};
    redisReply *replies[QUESTIONS] = {NULL};
    int r;

    r = find_database(page, url);
    if (r == 0)
        r = ask(page, &user, calls, replies);
    if (r == 0)
        r = show_user(page, replies[USER]);
    if (r == 0)
        r = show_posts(page, replies[POSTS]);
    if (r == 0)
        r = show_followers(page, replies[FOLLOWERS]);
    for (size_t i = 0; i < QUESTIONS; i++) {
        freeReplyObject(replies[i]);
        sl_call_done(&calls[i]);
    }
    sl_redis_link_close(page->link);
    return r;
}

int main(int argc, char **argv)
{
    struct segment page = {.link = NULL};

    if (argc != 3) {
        fprintf(stderr, "usage: profile URL LOGIN\n");
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    if (show(&page, argv[1], argv[2]) < 0) {
        fprintf(stderr, "profile: %s\n", page.failure.text);
        return 1;
    }
    return 0;
}
