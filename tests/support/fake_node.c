/* fake_node.c - a thread that accepts connections, reads commands and answers them from a table.
 * Shutting down the listener ends it. */
#include "tests/support/fake_node.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <hiredis/hiredis.h>

#include "tests/support/cmocka_all.h"

/* Returns the answer to a command, and records the command; NULL: none. */
static const char *find_answer(struct fake_node *node, const char *command)
{
    const char *answer = NULL;
    size_t used;

    pthread_mutex_lock(&node->lock);
    used = strlen(node->seen);
    snprintf(node->seen + used, sizeof(node->seen) - used, "%s ", command);
    for (unsigned i = 0; i < node->rule_count; i++) {
        if (strcmp(node->rules[i].command, command) != 0)
            continue;
        answer = node->rules[i].answers[node->rules[i].used];
        if (node->rules[i].used + 1 < node->rules[i].count)
            node->rules[i].used++;
    }
    pthread_mutex_unlock(&node->lock);
    return answer;
}

static void hang_up(struct fake_connection *connection)
{
    redisReaderFree(connection->reader);
    close(connection->fd);
    connection->fd = -1;
}

static void serve(struct fake_node *node, struct fake_connection *connection)
{
    const char *answer = "";
    char bytes[65536];
    ssize_t count = read(connection->fd, bytes, sizeof(bytes));
    void *request = NULL;

    if (count > 0)
        redisReaderFeed(connection->reader, bytes, (size_t)count);
    else
        answer = NULL;
    while (answer && redisReaderGetReply(connection->reader, &request) == REDIS_OK && request) {
        answer = find_answer(node, ((redisReply *)request)->element[0]->str);
        freeReplyObject(request);
        if (answer && write(connection->fd, answer, strlen(answer)) < 0)
            answer = NULL;
    }
    if (!answer)
        hang_up(connection);
}

/* false: the test is over. */
static bool accept_one(struct fake_node *node)
{
    int fd = accept(node->listener, NULL, NULL);

    for (size_t i = 0; fd >= 0 && i < FAKE_CONNECTIONS_MAX; i++) {
        if (node->connections[i].fd >= 0)
            continue;
        node->connections[i] = (struct fake_connection){fd, redisReaderCreate()};
        return true;
    }
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static void *run(void *context)
{
    struct fake_node *node = context;
    struct pollfd polled[FAKE_CONNECTIONS_MAX + 1];
    bool goes_on = true;

    while (goes_on) {
        for (size_t i = 0; i < FAKE_CONNECTIONS_MAX; i++)
            polled[i] = (struct pollfd){node->connections[i].fd, POLLIN, 0};
        polled[FAKE_CONNECTIONS_MAX] = (struct pollfd){node->listener, POLLIN, 0};
        poll(polled, FAKE_CONNECTIONS_MAX + 1, -1);
        for (size_t i = 0; i < FAKE_CONNECTIONS_MAX; i++) {
            if (polled[i].revents)
                serve(node, &node->connections[i]);
        }
        if (polled[FAKE_CONNECTIONS_MAX].revents)
            goes_on = accept_one(node);
    }
    for (size_t i = 0; i < FAKE_CONNECTIONS_MAX; i++) {
        if (node->connections[i].fd >= 0)
            hang_up(&node->connections[i]);
    }
    return NULL;
}

void fake_node_start(struct fake_node *node)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);

    *node = (struct fake_node){.endpoint.host = "127.0.0.1"};
    pthread_mutex_init(&node->lock, NULL);
    for (size_t i = 0; i < FAKE_CONNECTIONS_MAX; i++)
        node->connections[i].fd = -1;
    node->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(node->listener, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(node->listener, 8), 0);
    assert_int_equal(getsockname(node->listener, (struct sockaddr *)&address, &size), 0);
    node->endpoint.port = ntohs(address.sin_port);
    assert_int_equal(pthread_create(&node->thread, NULL, run, node), 0);
}

void fake_node_stop(struct fake_node *node)
{
    shutdown(node->listener, SHUT_RDWR);
    pthread_join(node->thread, NULL);
    close(node->listener);
    for (unsigned i = 0; i < node->rule_count; i++) {
        for (unsigned k = 0; k < node->rules[i].count; k++)
            free(node->rules[i].answers[k]);
    }
    pthread_mutex_destroy(&node->lock);
}

void fake_node_answers(struct fake_node *node, const char *command, const char *format, ...)
{
    unsigned i = 0;
    va_list args;

    pthread_mutex_lock(&node->lock);
    while (i < node->rule_count && strcmp(node->rules[i].command, command) != 0)
        i++;
    assert_true(i < FAKE_RULES_MAX && node->rules[i].count < FAKE_ANSWERS_MAX);
    if (i == node->rule_count) {
        snprintf(node->rules[i].command, sizeof(node->rules[i].command), "%s", command);
        node->rule_count++;
    }
    va_start(args, format);
    assert_true(vasprintf(&node->rules[i].answers[node->rules[i].count], format, args) >= 0);
    va_end(args);
    node->rules[i].count++;
    pthread_mutex_unlock(&node->lock);
}

static void name_slots(struct fake_node *node, unsigned last, const struct fake_node *master)
{
    fake_node_answers(node, "CLUSTER", "*1\r\n*3\r\n:0\r\n:%u\r\n*2\r\n$9\r\n127.0.0.1\r\n:%u\r\n",
                      last, (unsigned)master->endpoint.port);
}

void fake_node_names(struct fake_node *node, const struct fake_node *master)
{
    name_slots(node, 16383, master);
}

void fake_node_names_some(struct fake_node *node, const struct fake_node *master)
{
    name_slots(node, 10922, master);
}

void fake_node_seen(struct fake_node *node, char *room, size_t room_size)
{
    pthread_mutex_lock(&node->lock);
    snprintf(room, room_size, "%s", node->seen);
    node->seen[0] = '\0';
    pthread_mutex_unlock(&node->lock);
}
