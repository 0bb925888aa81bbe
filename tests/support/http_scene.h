/* tests/support/http_scene.h - an HTTP server on loopback, its handler, and peers that send
 * requests.
 *
 * There is one fixture, set up for each test by scene_begin(), whose state is a pointer to whether
 * it uses TLS. The handler answers /echo with the body, /large with LARGE bytes, /later when the
 * test does, /refused with a refusal and any other path with the path itself; /no is refused before
 * its body, /take is taken over. */
#pragma once

#include "gateway/http/http_connection.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/test_loop.h"
#include "tests/support/peer.h"

enum {
    MAX_HEAD = 1024,
    MAX_BODY = 200000,
    TIMEOUT_MS = 3600000,
    SHORT_MS = 20,
    PEERS = 8,
    MANY_TURNS = 100,
    SMALL = 4096,
    LARGE = 300000,
    OUTPUT_MAX = 65536 /* of answers that wait for the peer; plus one more */
};

#define GET(path)  "GET " path " HTTP/1.1\r\nHost: x\r\n\r\n"
#define HEAD(path) "HEAD " path " HTTP/1.1\r\nHost: x\r\n\r\n"
#define POST(size, more)                                                                           \
    "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: " size "\r\n" more "\r\n"
#define UPGRADE "GET /take HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: other\r\n\r\n"

struct http_scene {
    bool with_tls, with_proxy;
    struct test_loop test_loop;
    uv_prepare_t turn_end;
    struct turn turns;
    struct wires *wires;
    struct metrics_board *board;
    struct metrics *metrics;
    struct http_server_settings settings;
    struct http_server *server;
    int listener;
    struct sockaddr_in address;
    struct peer peers[PEERS];
    char large[LARGE];
    struct http_connection *asked; /* the last one passed to the handler */
    struct http_connection *later[PEERS];
    size_t later_count, handled, abandoned;
    struct wire taken;
    struct buffer taken_heard;
    bool taken_is_closed;
};

extern struct http_scene scene;

/* For all tests of a program: a folder with a certificate. */
int scene_make_folder(void **state);
int scene_remove_folder(void **state);
int scene_begin(void **state);
int scene_end(void **state);

/* Each test runs over plain connections and over TLS. */
#define HTTP_TEST(test)                                                                            \
    cmocka_unit_test_prestate_setup_teardown(test, scene_begin, scene_end, &(bool){false}),        \
        cmocka_unit_test_prestate_setup_teardown(test, scene_begin, scene_end, &(bool){true})

void scene_stop(void);
void scene_start_again(void); /* after the test has changed the settings */
void scene_create_wires(void);

#define TURN_UNTIL(condition) TURNS_UNTIL(&scene.test_loop, scene_turn(), condition)

/* The loop, and each peer, does what it can do now. */
void scene_turn(void);
void scene_turn_often(void);

void scene_accept(int send_size); /* of our socket's buffer; 0: the default */
struct peer *scene_enter(size_t i);
/* Connects a peer that reads little at a time, if at all. */
struct peer *scene_enter_slowly(size_t i);
void scene_say(struct peer *peer, const char *text);
void scene_answer(struct http_connection *connection, struct sl_slice text);

/* Returns a summary of the answers: "200 body, 400 code". `heads`: a letter for each answer, `h`
 * for one to HEAD; NULL: there are none. */
const char *scene_summary(const struct peer *peer, const char *heads);
void scene_expect_of(struct peer *peer, const char *expected, const char *heads);
void scene_expect(struct peer *peer, const char *expected);
void scene_expect_end(struct peer *peer,
                      const char *expected); /* and then the stream ends properly */
void scene_expect_hung_up(struct peer *peer);
void scene_await_metric(enum metric metric, uint64_t value);
void scene_await_input(
    size_t size); /* waits until a head, or part of one, of this many bytes has arrived */
struct http_connection *scene_newest(void);
void scene_await_stage(const struct http_connection *connection, enum http_stage stage);
