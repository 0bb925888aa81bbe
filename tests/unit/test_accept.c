#include <stdio.h>

#include "gateway/http/accept.h"
#include "tests/support/cmocka_all.h"

static enum accept_choice choose(const char *accept)
{
    return accept_choose(&(struct http_list){{sl_slice_str(accept)}});
}

/* `accept` has one element per line; the last line gets the rest. */
static enum accept_choice choose_from_lines(const char *accept)
{
    struct sl_slice rest = sl_slice_str(accept);
    struct http_list list = {0};

    for (size_t i = 0; i < HTTP_LIST_LINES - 1 && rest.size > 0; i++)
        list.lines[i] = http_next_element(&rest, ',');
    list.lines[HTTP_LIST_LINES - 1] = rest;
    return accept_choose(&list);
}

static void test_accept_chooses_the_stream_format(void **state)
{
    static const struct {
        const char *accept;
        enum accept_choice choice;
    } cases[] = {
        {NULL, ACCEPT_NDJSON},
        {"", ACCEPT_NDJSON},
        {"  ", ACCEPT_NDJSON},
        {"*/*", ACCEPT_NDJSON},
        {"application/x-ndjson", ACCEPT_NDJSON},
        {"application/json", ACCEPT_NDJSON},
        {"application/*", ACCEPT_NDJSON},
        {"Application/JSON; charset=utf-8", ACCEPT_NDJSON},
        {"text/event-stream", ACCEPT_SSE},
        {"TEXT/Event-Stream", ACCEPT_SSE},
        {"text/*", ACCEPT_SSE},
        {"text/event-stream;q=0.001", ACCEPT_SSE},
        {"text/event-stream, */*", ACCEPT_SSE},
        {"*/*, text/event-stream", ACCEPT_SSE},
        {"text/event-stream, application/json", ACCEPT_NDJSON},
        {"application/json;q=0.5, text/event-stream;q=0.6", ACCEPT_SSE},
        {"application/json;q=0.6 ,\ttext/event-stream ; Q=0.5", ACCEPT_NDJSON},
        {"text/event-stream;q=0.5, */*;q=0.9", ACCEPT_NDJSON},
        {"text/*;q=1, text/event-stream;q=0, application/*;q=0.1", ACCEPT_NDJSON},
        {"*/*;q=0.3, application/*;q=0, text/html", ACCEPT_SSE},
        {"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", ACCEPT_NDJSON},
        {"text/html, application/json;q=0.0, application/x-ndjson;q=0.1", ACCEPT_NDJSON},
        {"text/event-stream;level=1;q=0.4;ext=2, application/json;q=0.3", ACCEPT_SSE},
        {",, ,application/json,,", ACCEPT_NDJSON},
        {"text/html", ACCEPT_NEITHER},
        {"*/*;q=0", ACCEPT_NEITHER},
        {"text/event-stream;q=0", ACCEPT_NEITHER},
        {"*/json", ACCEPT_NEITHER},
        {"*", ACCEPT_NEITHER},
        {"json", ACCEPT_NEITHER},
        {"/", ACCEPT_NEITHER},
        {"text/event-streams", ACCEPT_NEITHER},
        {"text/event-strea", ACCEPT_NEITHER},
        {"application/json;q=2", ACCEPT_NEITHER},
        {"application/json;q=1.001", ACCEPT_NEITHER},
        {"application/json;q=0.0001", ACCEPT_NEITHER},
        {"application/json;q=", ACCEPT_NEITHER},
        {"application/json;q=x", ACCEPT_NEITHER},
        {"application/json;q=.5", ACCEPT_NEITHER},
        {"application/json;q=1.", ACCEPT_NDJSON},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (choose(cases[i].accept) != cases[i].choice)
            fail_msg("wrong choice for '%s'", cases[i].accept);
        if (choose_from_lines(cases[i].accept) != cases[i].choice)
            fail_msg("wrong choice for '%s' on lines", cases[i].accept);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accept_chooses_the_stream_format),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
