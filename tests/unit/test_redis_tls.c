/* Links over TLS to a real Redis: what works, and the message for each misconfiguration. */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <hiredis/hiredis.h>

#include "base/alloc.h"
#include "src/redis/redis_connection.h"
#include "src/redis/redis_dial.h"
#include "src/redis/redis_link.h"
#include "src/redis/redis_tls.h"
#include "src/social/follows.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/interruptions.h"
#include "tests/support/peer.h"
#include "tests/support/tls_redis.h"

#define LOCAL "DNS:localhost,IP:127.0.0.1"

enum { HOUR_S = 3600, LONG_MS = 60000, SHORT_MS = 200 };

static struct tls_redis redis;
static struct certificate_authority stranger;

static const char *in_folder(const char *name)
{
    return tls_redis_file(&redis, name);
}

/* What the authority signs in addition to the certificate that the server uses first. */
static void sign_others(void)
{
    certificate_sign_pair(&redis.authority, LOCAL, -HOUR_S / 2, in_folder("old.pem"),
                          in_folder("old-key.pem"));
    certificate_sign_pair(&redis.authority, "DNS:redis.example", HOUR_S, in_folder("named.pem"),
                          in_folder("named-key.pem"));
}

static int start_server(void **state)
{
    (void)state;
    tls_redis_init(&redis, LOCAL);
    sign_others();
    certificate_authority_init(&stranger, in_folder("stranger.pem"), "Stranger");
    certificate_sign_pair(&stranger, "DNS:client", HOUR_S, in_folder("strange.pem"),
                          in_folder("strange-key.pem"));
    EVP_PKEY_free(certificate_write_key(in_folder("locked.pem"), CERTIFICATE_EC, "password"));
    return 0;
}

static int stop_server(void **state)
{
    (void)state;
    tls_redis_done(&redis);
    certificate_authority_done(&stranger);
    return 0;
}

static void configure(const char *name, const char *value)
{
    redisContext *admin = redis_server_connect(&redis.server);

    redis_server_run(admin, "CONFIG SET %s %s", name, value);
    redisFree(admin);
}

/* From now on the server uses this certificate. */
static void show(const char *certificate, const char *key)
{
    redisContext *admin = redis_server_connect(&redis.server);

    redis_server_run(admin, "CONFIG SET tls-cert-file %s tls-key-file %s", in_folder(certificate),
                     in_folder(key));
    redisFree(admin);
}

/* rediss:// at `host` with the authority, and further parameters such as "&ssl-name=x". */
static const char *url(const char *host, const char *more)
{
    static char room[512];

    snprintf(room, sizeof(room), "rediss://%s:%s?ssl-ca=%s%s", host, redis.port,
             in_folder("ca.pem"), more);
    return room;
}

static int open_url(const char *text, struct sl_redis_link **ret_link, struct failure *failure)
{
    const struct sl_redis_link_options options = {
        .connect_ms = LONG_MS, .answer_ms = LONG_MS, .retry_ms = LONG_MS};
    struct sl_redis_address address;

    if (sl_redis_address_parse(sl_slice_str(text), &address, failure) < 0)
        fail_msg("%s: %s", text, failure->text);
    return sl_redis_link_open(&address, &options, ret_link, failure);
}

static void open_and_close(const char *text)
{
    struct sl_redis_link *link = NULL;
    struct failure failure;

    if (open_url(text, &link, &failure) < 0)
        fail_msg("%s: %s", text, failure.text);
    sl_redis_link_close(link);
}

static void refuse(const char *text, int error, const char *message)
{
    struct sl_redis_link *link = NULL;
    struct failure failure;
    int r = open_url(text, &link, &failure);

    if (r != error)
        fail_msg("%s: %d, %s", text, r, failure.text);
    assert_null(link);
    if (!strstr(failure.text, message))
        fail_msg("%s: said '%s', not '%s'", text, failure.text, message);
}

static struct sl_redis_connection *dial(void)
{
    struct sl_redis_connection *connection = NULL;
    struct sl_redis_address address;
    struct failure failure;

    if (sl_redis_address_parse(sl_slice_str(url("localhost", "")), &address, &failure) < 0 ||
        sl_redis_dial(&address, &address.endpoint, LONG_MS, LONG_MS, &connection, &failure) < 0)
        fail_msg("%s", failure.text);
    return connection;
}

static void echo(struct sl_redis_connection *connection, const char *word, size_t size)
{
    assert_int_equal(sl_redis_connection_append(connection, 2, (const char *[]){"ECHO", word},
                                                (size_t[]){4, size}, NULL),
                     0);
}

static void hear(struct sl_redis_connection *connection, const char *word, size_t size)
{
    struct failure failure;
    redisReply *reply = NULL;

    if (sl_redis_connection_read(connection, &reply, &failure) < 0)
        fail_msg("%s", failure.text);
    assert_int_equal(reply->len, size);
    assert_memory_equal(reply->str, word, size);
    freeReplyObject(reply);
}

/* ---- what works ---- */

static void test_commands_are_answered_in_order(void **state)
{
    struct sl_redis_connection *connection = dial();
    redisReply *reply = NULL;
    char word[16];

    (void)state;
    for (int i = 0; i < 1000; i++) {
        snprintf(word, sizeof(word), "word%d", i);
        echo(connection, word, strlen(word));
    }
    for (int i = 0; i < 1000; i++) {
        snprintf(word, sizeof(word), "word%d", i);
        hear(connection, word, strlen(word));
    }
    assert_int_equal(sl_redis_connection_poll(connection, &reply, NULL), 0);
    assert_null(reply);
    echo(connection, "last", 4);
    assert_int_equal(sl_redis_connection_flush(connection, NULL), 0);
    do
        assert_int_equal(sl_redis_connection_poll(connection, &reply, NULL), 0);
    while (!reply);
    assert_string_equal(reply->str, "last");
    freeReplyObject(reply);
    sl_redis_connection_close(connection);
}

static void test_large_values_come_and_go_under_interruptions(void **state)
{
    enum { SIZE = 8 * 1024 * 1024 };
    struct sl_redis_connection *connection;
    char *large = malloc(SIZE);

    (void)state;
    assert_non_null(large);
    for (size_t i = 0; i < SIZE; i++)
        large[i] = (char)(i % 251);
    interruptions_begin(NULL);
    connection = dial();
    for (size_t size = SIZE; size > 0; size /= 7) {
        echo(connection, large, size);
        hear(connection, large, size);
    }
    interruptions_end();
    sl_redis_connection_close(connection);
    free(large);
}

static void test_link_outlives_a_restart_and_reads_renewed_files(void **state)
{
    struct sl_redis_link *link = NULL;
    struct sl_call call = SL_CALL_INIT;
    struct failure failure;
    redisReply *reply = NULL;

    (void)state;
    assert_int_equal(open_url(url("127.0.0.1", ""), &link, &failure), 0);
    certificate_authority_done(&redis.authority);
    certificate_authority_init(&redis.authority, in_folder("ca.pem"), "Authority");
    certificate_sign_pair(&redis.authority, LOCAL, HOUR_S, in_folder("cert.pem"),
                          in_folder("key.pem"));
    sign_others();
    redis_server_restart(&redis.server);
    assert_int_equal(sl_following_call(&call, 4096, NULL), 0);
    if (sl_redis_link_run(link, &call, &reply, &failure) < 0)
        fail_msg("%s", failure.text);
    freeReplyObject(reply);
    sl_call_done(&call);
    sl_redis_link_close(link);
}

static void test_tls_1_2_is_good_enough(void **state)
{
    (void)state;
    configure("tls-protocols", "TLSv1.2");
    open_and_close(url("localhost", ""));
    configure("tls-protocols", "");
}

/* ---- verifying the server ---- */

static void test_name_and_ip_address_are_looked_for_in_the_certificate(void **state)
{
    (void)state;
    open_and_close(url("localhost", ""));
    open_and_close(url("127.0.0.1", ""));
    show("named.pem", "named-key.pem");
    refuse(url("localhost", ""), -EACCES, "the certificate of Redis is not for localhost");
    refuse(url("127.0.0.1", ""), -EACCES, "the certificate of Redis is not for 127.0.0.1");
    refuse(url("localhost", "&ssl-name=10.0.0.1"), -EACCES, "is not for 10.0.0.1");
    refuse(url("localhost", "&ssl-name=other.example"), -EACCES, "is not for other.example");
    open_and_close(url("localhost", "&ssl-name=redis.example"));
    open_and_close(url("127.0.0.1", "&ssl-name=redis.example"));
    show("cert.pem", "key.pem");
}

static void test_certificate_of_somebody_unknown_is_refused(void **state)
{
    char text[128];

    (void)state;
    snprintf(text, sizeof(text), "rediss://localhost:%s?ssl-ca=%s", redis.port,
             in_folder("stranger.pem"));
    refuse(text, -EACCES, "the certificate of Redis is not trusted: ");
    snprintf(text, sizeof(text), "rediss://localhost:%s",
             redis.port); /* the system's authorities */
    refuse(text, -EACCES, "(ssl-ca in the URL names the file of who has signed it)");
}

static void test_expired_certificate_is_refused_when_connecting_again(void **state)
{
    struct sl_redis_link *link = NULL;
    struct sl_call call = SL_CALL_INIT;
    struct failure failure;
    redisReply *reply = NULL;
    redisContext *admin = redis_server_connect(&redis.server);

    (void)state;
    assert_int_equal(open_url(url("localhost", ""), &link, &failure), 0);
    show("old.pem", "old-key.pem");
    redis_server_run(admin, "CLIENT KILL TYPE normal SKIPME yes");
    redisFree(admin);
    assert_int_equal(sl_following_call(&call, 4096, NULL), 0);
    assert_int_equal(sl_redis_link_run(link, &call, &reply, &failure), -EIO);
    assert_non_null(
        strstr(failure.text, "the certificate of Redis is refused: certificate has expired"));
    show("cert.pem", "key.pem");
    assert_int_equal(sl_redis_link_run(link, &call, &reply, &failure), 0);
    freeReplyObject(reply);
    sl_call_done(&call);
    sl_redis_link_close(link);
}

static void test_certificate_of_ours_is_shown_and_judged(void **state)
{
    char more[256];

    (void)state;
    configure("tls-auth-clients", "yes");
    refuse(url("localhost", ""), -EACCES,
           "Redis wants a certificate of ours (ssl-cert and ssl-key");
    snprintf(more, sizeof(more), "&ssl-cert=%s&ssl-key=%s", in_folder("strange.pem"),
             in_folder("strange-key.pem"));
    refuse(url("localhost", more), -EACCES, "Redis refuses our certificate: unknown CA");
    snprintf(more, sizeof(more), "&ssl-cert=%s&ssl-key=%s", in_folder("named.pem"),
             in_folder("named-key.pem"));
    open_and_close(url("localhost", more));
    configure("tls-protocols", "TLSv1.2");
    open_and_close(url("localhost", more));
    refuse(url("localhost", ""), -EACCES, "Redis wants a certificate of ours");
    configure("tls-protocols", "");
    configure("tls-auth-clients", "no");
}

/* ---- files ---- */

static void refuse_files(const char *ca, const char *cert, const char *key, const char *message)
{
    char text[512];

    snprintf(text, sizeof(text), "rediss://localhost:%s?ssl-ca=%s", redis.port, in_folder(ca));
    if (cert)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "&ssl-cert=%s&ssl-key=%s",
                 in_folder(cert), in_folder(key));
    refuse(text, -EINVAL, message);
}

static void test_files_that_are_no_use_are_named(void **state)
{
    struct sl_redis_address address = {.is_tls = false, .tls.ca = "/nonexistent"};
    struct failure failure;

    (void)state;
    refuse_files("none.pem", NULL, NULL, "cannot read the ssl-ca '/tmp/sluice-tls-");
    refuse_files("none.pem", NULL, NULL, "none.pem': No such file or directory");
    refuse_files("key.pem", NULL, NULL, "key.pem' holds no certificate");
    refuse_files("ca.pem", "none.pem", "key.pem", "cannot read the ssl-cert");
    refuse_files("ca.pem", "cert.pem", "none.pem", "cannot read the ssl-key");
    refuse_files("ca.pem", "key.pem", "key.pem", "ssl-cert '/tmp/sluice-tls-");
    refuse_files("ca.pem", "cert.pem", "cert.pem", "cert.pem' holds no private key");
    refuse_files("ca.pem", "cert.pem", "locked.pem", "or one with a password");
    refuse_files("ca.pem", "cert.pem", "old-key.pem", "is not that of the ssl-cert");
    assert_int_equal(sl_redis_tls_check(&address, &failure), 0);
    address.is_tls = true;
    assert_int_equal(sl_redis_tls_check(&address, &failure), -EINVAL);
    assert_string_equal(failure.text,
                        "cannot read the ssl-ca '/nonexistent': No such file or directory");
    address.tls.ca[0] = '\0';
    assert_int_equal(sl_redis_tls_check(&address, &failure), 0);
}

/* ---- a peer that speaks another protocol ---- */

static void refuse_plain(uint32_t connect_ms, const char *message)
{
    const struct sl_redis_link_options options = {.connect_ms = connect_ms};
    struct sl_redis_address address = {.endpoint.host = "localhost", .is_tls = true};
    struct sl_redis_link *link = NULL;
    struct failure failure;

    address.endpoint.port = (uint16_t)atoi(redis.plain_port);
    assert_true(sl_redis_link_open(&address, &options, &link, &failure) < 0);
    assert_null(link);
    if (!strstr(failure.text, message))
        fail_msg("said '%s', not '%s'", failure.text, message);
}

/* Redis 7 takes the handshake for a command and waits for its rest, newer versions refuse it; a
 * server may also refuse the connection with a message. */
static void test_redis_without_tls_behind_rediss_is_called_by_its_name(void **state)
{
    redisContext *admin = redis_server_connect(&redis.server);

    (void)state;
    refuse_plain(SHORT_MS, "begins with redis, not rediss");
    redis_server_run(admin, "CONFIG SET maxclients 1");
    refuse_plain(LONG_MS,
                 "Redis answers without TLS: the URL of such a one begins with redis, not rediss");
    redis_server_run(admin, "CONFIG SET maxclients 1000");
    redisFree(admin);
}

static void test_redis_with_tls_behind_redis_is_called_by_its_name(void **state)
{
    static const char message[] =
        "Redis closed the connection at once: if it uses TLS, the URL must begin with rediss, "
        "not redis";
    struct sl_meta found, wanted = sl_meta_wanted(1);
    struct sl_redis_link_options options = {.retry_ms = 0};
    struct sl_redis_address address;
    struct sl_redis_link *link = NULL;
    struct failure failure;
    char text[128];

    (void)state;
    snprintf(text, sizeof(text), "redis://:password@localhost:%s", redis.port);
    assert_int_equal(sl_redis_address_parse(sl_slice_str(text), &address, &failure), 0);
    assert_int_equal(sl_redis_link_open(&address, &options, &link, &failure), -ECONNREFUSED);
    assert_non_null(strstr(failure.text, message));
    address.login.password[0] = '\0'; /* nothing is sent before the first call */
    assert_int_equal(sl_redis_link_open(&address, &options, &link, &failure), 0);
    assert_int_equal(sl_redis_link_meta(link, &wanted, &found, &failure), -EIO);
    assert_non_null(strstr(failure.text, message));
    sl_redis_link_close(link);
}

/* Accepts one connection and closes it as soon as something arrives. */
static void *hang_up(void *context)
{
    struct pollfd waiting = {.fd = *(int *)context, .events = POLLIN};
    int connection = poll(&waiting, 1, LONG_MS) == 1 ? accept(waiting.fd, NULL, NULL) : -1;
    char bytes[4096];

    if (connection >= 0 && recv(connection, bytes, sizeof(bytes), 0) > 0)
        shutdown(connection, SHUT_WR);
    while (connection >= 0 && recv(connection, bytes, sizeof(bytes), 0) > 0)
        ;
    close(connection);
    return NULL;
}

static void test_peer_that_does_not_shake_hands_is_left(void **state)
{
    const struct sl_redis_link_options options = {.connect_ms = SHORT_MS};
    struct sl_redis_address address = {.endpoint.host = "127.0.0.1", .is_tls = true};
    struct sl_redis_link *link = NULL;
    struct sockaddr_in where;
    struct failure failure;
    pthread_t thread;
    int listener = peer_listen(&where);

    (void)state;
    address.endpoint.port = ntohs(where.sin_port);
    assert_int_equal(sl_redis_link_open(&address, &options, &link, &failure), -ECONNREFUSED);
    assert_non_null(strstr(failure.text, "Redis said nothing where TLS was to be agreed on"));
    close(accept(listener, NULL, NULL));
    assert_int_equal(pthread_create(&thread, NULL, hang_up, &listener), 0);
    assert_int_equal(
        sl_redis_link_open(&address, &(struct sl_redis_link_options){0}, &link, &failure),
        -ECONNREFUSED);
    if (!strstr(failure.text, "Redis closed the connection during the TLS handshake"))
        fail_msg("%s", failure.text);
    pthread_join(thread, NULL);
    close(listener);
}

static void test_out_of_memory_is_told(void **state)
{
    const struct sl_redis_link_options options = {.retry_ms = 0};
    struct sl_redis_address address;
    struct sl_redis_link *link = NULL;
    struct failure failure;
    int r = -ENOMEM;

    (void)state;
    assert_int_equal(sl_redis_address_parse(sl_slice_str(url("localhost", "")), &address, NULL), 0);
    for (uint64_t n = 0; r < 0; n++) {
        mem_fail_after(n);
        r = sl_redis_link_open(&address, &options, &link, &failure);
        mem_fail_never();
        if (r < 0)
            assert_int_equal(r, -ENOMEM);
    }
    sl_redis_link_close(link);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_commands_are_answered_in_order),
        cmocka_unit_test(test_large_values_come_and_go_under_interruptions),
        cmocka_unit_test(test_link_outlives_a_restart_and_reads_renewed_files),
        cmocka_unit_test(test_tls_1_2_is_good_enough),
        cmocka_unit_test(test_name_and_ip_address_are_looked_for_in_the_certificate),
        cmocka_unit_test(test_certificate_of_somebody_unknown_is_refused),
        cmocka_unit_test(test_expired_certificate_is_refused_when_connecting_again),
        cmocka_unit_test(test_certificate_of_ours_is_shown_and_judged),
        cmocka_unit_test(test_files_that_are_no_use_are_named),
        cmocka_unit_test(test_redis_without_tls_behind_rediss_is_called_by_its_name),
        cmocka_unit_test(test_redis_with_tls_behind_redis_is_called_by_its_name),
        cmocka_unit_test(test_peer_that_does_not_shake_hands_is_left),
        cmocka_unit_test(test_out_of_memory_is_told),
    };

    return cmocka_run_group_tests(tests, start_server, stop_server);
}
