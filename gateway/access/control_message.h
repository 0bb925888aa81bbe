/* gateway/access/control_message.h - what workers ask each other by way of Redis, and answer.
 *
 * A message is one JSON object with exactly the members that it should have, of at most
 * CONTROL_MESSAGE_MAX bytes: whatever else comes on the channel is refused here, in one place. A
 * program of another version says another `v`, and is not understood; who asked is told that the
 * answer is not complete. It names no token: of one that was checked it holds what was found. */
#pragma once

#include <stdint.h>

#include "base/buffer.h"
#include "gateway/access/connection_id.h"
#include "gateway/front/token.h"
#include "gateway/metrics/stream_kind.h"

enum {
    CONTROL_MESSAGE_MAX = 256 << 10,
    CONTROL_ROWS_MAX = 100, /* of an answer: a page */
    CONTROL_ADDRESS_SIZE = 46,
    CONTROL_PATH_SIZE = 64
};

enum control_operation {
    CONTROL_LIST,
    CONTROL_END,
    CONTROL_RENEW,
    CONTROL_RULES, /* the holder's rules have changed: who has not followed yet? */
    CONTROL_OPERATION_COUNT
};

struct control_question {
    uint64_t number;             /* by which its answers are known */
    char from[WORKER_NAME_SIZE]; /* whom to answer */
    enum control_operation operation;
    char holder[TOKEN_SUBJECT_SIZE]; /* of these connections alone; empty: of everybody's */
    char id[CONNECTION_ID_SIZE];     /* of this one alone; empty: of all */
    char after[CONNECTION_ID_SIZE];  /* of a list: those with greater ids; empty: all */
    struct token token;              /* of a renewal: the new one, which was good */
    uint64_t version;                /* of rules: theirs now */
};

/* Why a token does not take the place of another. */
enum control_result {
    CONTROL_DONE,
    CONTROL_NO_SUCH_CONNECTION,
    CONTROL_ANOTHER_SUBJECT,
    CONTROL_NARROWER_SCOPE,
    CONTROL_NARROWER_LIMITS,
    CONTROL_TOKEN_REVOKED,
    CONTROL_RESULT_COUNT
};

/* One connection, as it is told. */
struct control_row {
    char id[CONNECTION_ID_SIZE];
    char subject[TOKEN_SUBJECT_SIZE];   /* empty: its token has none */
    char address[CONTROL_ADDRESS_SIZE]; /* text; empty: not known */
    char path[CONTROL_PATH_SIZE];       /* of a dialect; empty: as `stream` says */
    enum stream_kind stream;
    enum stream_format format;
    uint64_t since_ms;      /* Unix time */
    uint64_t expires_ms;    /* when its token ends it; 0: never */
    uint64_t streams;       /* opened on it, beside its own */
    uint64_t filters;       /* on all of them */
    uint64_t filter_bytes;  /* what they cost */
    uint64_t lag_ms;        /* of the stream that is furthest behind */
    uint64_t events, bytes; /* sent */
};

struct control_answer {
    uint64_t number;
    char from[WORKER_NAME_SIZE];
    uint64_t workers; /* of its gateway, all of which are to answer; 0: they end one by one */
    enum control_result result;
    uint64_t matched;         /* connections that the question was of, in all */
    struct control_row *rows; /* in the order of their ids, the first of them; ours */
    size_t row_count;
};

struct control_message {
    bool is_answer;
    struct control_question question;
    struct control_answer answer;
};

void control_question_print(const struct control_question *question, struct buffer *ret_json);
void control_answer_print(const struct control_answer *answer, struct buffer *ret_json);

/* 0: end it with control_message_done(); -EBADMSG: it is none; -ENOMEM. */
int control_message_read(struct sl_slice text, struct control_message *ret_message);
void control_message_done(struct control_message *message);

void control_answer_done(struct control_answer *answer);
/* Room for a page of rows. 0; -ENOMEM. */
int control_answer_make_room(struct control_answer *answer);
/* Puts the row in its place, or leaves it out: the least CONTROL_ROWS_MAX of them stay. There is
 * room. */
void control_answer_add(struct control_answer *answer, const struct control_row *row);
