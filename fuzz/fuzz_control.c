/* fuzz_control.c - is every message of the control channel parsed or refused safely?
 *
 * A parsed message is printed and parsed again, with the same result. */
#include "fuzz/fuzz.h"

#include <string.h>

#include "base/alloc.h"
#include "gateway/access/control_message.h"

static void print(const struct control_message *message, struct buffer *ret_text)
{
    if (message->is_answer)
        control_answer_print(&message->answer, ret_text);
    else
        control_question_print(&message->question, ret_text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *copy = mem_copy(data, size);
    struct control_message message, again;
    struct buffer first = BUFFER_INIT, second = BUFFER_INIT;

    if (control_message_read(sl_slice(copy, size), &message) == 0) {
        must(message.answer.row_count <= CONTROL_ROWS_MAX);
        must(memchr(message.question.holder, '\0', sizeof(message.question.holder)) != NULL);
        print(&message, &first);
        must(control_message_read(buffer_slice(&first), &again) == 0);
        print(&again, &second);
        must(sl_slice_equal(buffer_slice(&first), buffer_slice(&second)));
        control_message_done(&again);
        control_message_done(&message);
    }
    buffer_done(&first);
    buffer_done(&second);
    mem_free(copy);
    return 0;
}
