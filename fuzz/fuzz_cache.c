/* fuzz_cache.c - are any answers of a cache server, and any stored values, handled safely?
 *
 * The input is the answer of a server to every command; then a value, a post and a URL. A thread is
 * the server, on a unix socket. */
#include "fuzz/fuzz.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "src/cache/cache_memcached.h"
#include "src/cache/cached_rows.h"

enum { MAX_BYTES = 4096, TIMEOUT_MS = 10000, AUTHOR = 7 };

static struct sockaddr_un address = {.sun_family = AF_UNIX};
static int listener;
static pthread_mutex_t mutex =
    PTHREAD_MUTEX_INITIALIZER; /* the thread may still be at an earlier input */
static struct sl_slice said;   /* the input; protected by the mutex */

/* Sends the input, closes its sending side, and reads until the peer closes. */
static void serve(int fd)
{
    struct sl_slice left;
    char room[4096];
    ssize_t count;

    pthread_mutex_lock(&mutex);
    left = said;
    while (left.size > 0 && (count = send(fd, left.data, left.size, MSG_NOSIGNAL)) > 0)
        left = sl_slice_from(left, (size_t)count);
    pthread_mutex_unlock(&mutex);
    shutdown(fd, SHUT_WR);
    while (recv(fd, room, sizeof(room), 0) > 0)
        ;
    close(fd);
}

static void *run_server(void *unused)
{
    int fd;

    while ((fd = accept(listener, NULL, NULL)) >= 0)
        serve(fd);
    return unused;
}

static void stop(void)
{
    unlink(address.sun_path);
}

static void set_up(void)
{
    pthread_t thread;

    snprintf(address.sun_path, sizeof(address.sun_path), "/tmp/sluice-fuzz-cache-%ld",
             (long)getpid());
    unlink(address.sun_path);
    listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    must(listener >= 0);
    must(bind(listener, (struct sockaddr *)&address, sizeof(address)) == 0);
    must(listen(listener, 8) == 0);
    must(pthread_create(&thread, NULL, run_server, NULL) == 0);
    pthread_detach(thread);
    atexit(stop);
}

static void on_found(void *context, struct sl_slice key, struct sl_slice value)
{
    size_t *bytes = context;

    must(value.size <= MAX_BYTES && key.size < said.size);
    *bytes += key.size + value.size;
    must(*bytes < said.size); /* nothing is read twice */
}

static void check_result(int r, const struct failure *failure)
{
    must(r == 0 || r == -EIO);
    must(r == 0 || failure->text[0]);
}

static void try_protocol(void)
{
    const struct sl_slice keys[2] = {SL_SLICE("one"), SL_SLICE("two")};
    struct sl_memcached *server = sl_memcached_new(address.sun_path, 0, TIMEOUT_MS, MAX_BYTES);
    struct failure failure = {""};
    size_t bytes = 0, stored;

    must(server);
    check_result(sl_memcached_get(server, keys, 2, on_found, &bytes, &failure), &failure);
    check_result(sl_memcached_put(server, keys, keys, 2, 60, &stored, &failure), &failure);
    must(stored <= 2);
    check_result(sl_memcached_drop(server, keys, 2, &failure), &failure);
    sl_memcached_free(server);
}

/* A post that was stored in the cache is read back unchanged. */
static void try_post(struct sl_slice text)
{
    const struct sl_post_row whole = {.id = 1, .json = text};
    struct sl_post_row bare = {.id = 1, .login = SL_SLICE("l"), .name = SL_SLICE("n")};
    struct buffer value = BUFFER_INIT, json = BUFFER_INIT;
    struct sl_slice rest;
    char *end;

    if (sl_cached_post_value(&value, &whole, SL_CACHED_FROM_REDIS)) {
        bare.author = strtoull(buffer_str(&value) + 1, &end, 10);
        rest = sl_slice_from(buffer_slice(&value), (size_t)(end - value.data) + 1);
        must(rest.size < text.size &&
             memcmp(rest.data, text.data + text.size - rest.size, rest.size) == 0);
        if (sl_cached_post_json(&json, &bare, buffer_slice(&value))) {
            const char *at = memmem(json.data, json.size, rest.data, rest.size - 1);

            must(at && json.data[json.size - 1] == '}');
        }
    }
    buffer_done(&value);
    buffer_done(&json);
}

static void try_value(struct sl_slice text)
{
    const struct sl_post_row row = {
        .id = 1, .author = AUTHOR, .login = SL_SLICE("l"), .name = SL_SLICE("n")};
    struct sl_user_row user = {.user = {.id = 1, .name = SL_SLICE("n")}};
    struct buffer json = BUFFER_INIT;

    if (sl_cached_post_json(&json, &row, text))
        must(json.size > text.size);
    else
        must(json.size == 0);
    if (sl_cached_user_fill(&user, text))
        must(user.user.login.size + user.signup.size + strlen("  0 ") + user.profile.size ==
             text.size);
    buffer_done(&json);
}

static void try_url(struct sl_slice text)
{
    char *url = mem_strndup(text.data, text.size);
    struct failure failure = {""};
    int r;

    must(url);
    r = sl_cache_check(url, &failure);
    must(r == 0 || (r == -EINVAL && failure.text[0]));
    mem_free(url);
}

static void say(struct sl_slice text)
{
    pthread_mutex_lock(&mutex);
    said = text;
    pthread_mutex_unlock(&mutex);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct sl_slice input = sl_slice((const char *)data, size);

    if (!listener)
        set_up();
    say(input);
    try_protocol();
    say(SL_SLICE_NONE);
    try_post(input);
    try_value(input);
    try_url(input);
    return 0;
}
