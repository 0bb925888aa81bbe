/* gateway/access/control_message.h - the questions and answers that workers send each other through
 * Redis.
 *
 * A message is a JSON object of at most CONTROL_MESSAGE_MAX bytes with exactly the expected
 * members; everything else on the channel is refused here. Another version of the program may use
 * another `v`, which is refused, too; then the answer is reported as incomplete. A message never
 * contains a token, only the claims of one that was verified. */
#pragma once

#include <stdint.h>

#include "base/buffer.h"
#include "gateway/access/connection_id.h"
#include "gateway/front/token.h"
#include "gateway/metrics/stream_kind.h"

enum {
    CONTROL_MESSAGE_MAX = 256 << 10,
    CONTROL_ROWS_MAX = 100, /* rows of an answer, which is one page of a list */
    CONTROL_ADDRESS_SIZE = 46,
    CONTROL_PATH_SIZE = 64
};

enum control_operation {
    CONTROL_LIST,
    CONTROL_END,
    CONTROL_RENEW,
    CONTROL_RULES, /* which connections do not use the current rules of the holder yet? */
    CONTROL_OPERATION_COUNT
};

struct control_question {
    uint64_t number;             /* identifies the question; its answers repeat it */
    char from[WORKER_NAME_SIZE]; /* the worker that asks */
    enum control_operation operation;
    char holder[TOKEN_SUBJECT_SIZE]; /* only connections of this subject; empty: of all subjects */
    char id[CONNECTION_ID_SIZE];     /* only this connection; empty: all */
    char after[CONNECTION_ID_SIZE];  /* for a list: only connections with greater ids; empty: all */
    struct token token;              /* for a renewal: the new token, which has been verified */
    uint64_t version;                /* for rules: their current version */
};

/* The result of a renewal: done, or why the new token cannot replace the old one. */
enum control_result {
    CONTROL_DONE,
    CONTROL_NO_SUCH_CONNECTION,
    CONTROL_ANOTHER_SUBJECT,
    CONTROL_NARROWER_SCOPE,
    CONTROL_NARROWER_LIMITS,
    CONTROL_TOKEN_REVOKED,
    CONTROL_RESULT_COUNT
};

/* A connection in a list. */
struct control_row {
    char id[CONNECTION_ID_SIZE];
    char subject[TOKEN_SUBJECT_SIZE];   /* empty: the token has no subject */
    char address[CONTROL_ADDRESS_SIZE]; /* in text form; empty: unknown */
    char path[CONTROL_PATH_SIZE];       /* for a dialect; empty: `stream` says which path */
    enum stream_kind stream;
    enum stream_format format;
    uint64_t since_ms;      /* Unix time */
    uint64_t expires_ms;    /* Unix time at which the token expires; 0: never */
    uint64_t streams;       /* opened on the connection, apart from its own */
    uint64_t filters;       /* of all its streams together */
    uint64_t filter_bytes;  /* memory used by these filters, in bytes */
    uint64_t lag_ms;        /* of the stream that lags the most */
    uint64_t events, bytes; /* sent */
};

struct control_answer {
    uint64_t number;
    char from[WORKER_NAME_SIZE];
    uint64_t workers; /* the number of workers of the gateway, all of which answer; 0: unknown,
                         because they are ending */
    enum control_result result;
    uint64_t matched;         /* the number of connections to which the question applies */
    struct control_row *rows; /* owned; sorted by id; if there are more, the first */
    size_t row_count;
};

struct control_message {
    bool is_answer;
    struct control_question question;
    struct control_answer answer;
};

void control_question_print(const struct control_question *question, struct buffer *ret_json);
void control_answer_print(const struct control_answer *answer, struct buffer *ret_json);

/* 0: free it with control_message_done(); -EBADMSG: not a valid message; -ENOMEM. */
int control_message_read(struct sl_slice text, struct control_message *ret_message);
void control_message_done(struct control_message *message);

void control_answer_done(struct control_answer *answer);
/* Allocates space for CONTROL_ROWS_MAX rows, unless there is some. 0; -ENOMEM. */
int control_answer_make_room(struct control_answer *answer);
/* Inserts the row in the order of ids; only the CONTROL_ROWS_MAX lowest ids are kept.
 * control_answer_make_room() must have been called. */
void control_answer_add(struct control_answer *answer, const struct control_row *row);
