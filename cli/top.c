/* top.c - sluice top: shows the state of a sluiced, by requesting /status.json repeatedly.
 *
 * On a terminal it is a screen, drawn after every answer, key and change of size; otherwise a line
 * after every answer. One loop waits for the server, the keyboard and signals, so a server that
 * does not answer blocks nothing. A server that is down is reported and asked again; only a refusal
 * of the very first request ends the program. */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <curl/curl.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "cli/argument.h"
#include "cli/screen.h"
#include "cli/server.h"
#include "cli/snapshots.h"
#include "cli/top_view.h"

enum {
    ANSWER_MAX_BYTES = 4 << 20,
    ANSWER_MAX_S = 5, /* after this the server counts as down */
    INTERVAL_MIN_MS = 500,
    INTERVAL_MAX_MS = 3600000,
    CTRL_C = 3,
    CTRL_Z = 26
};

struct top {
    struct cli *cli;
    const char *url; /* as it was given, for display */
    uint64_t interval_ms;
    bool is_once, is_on_screen, has_colors;
    CURL *curl;
    CURLM *multi;
    struct curl_slist *headers;
    char *status_url;
    struct buffer answer;
    struct snapshots snapshots;
    struct failure trouble; /* of the last answer; empty: none */
    bool is_asking;
    uint64_t next_ms; /* time of the next request; monotonic */
    struct screen screen;
    int signals; /* descriptor for the signals that the screen must handle; -1: none */
    bool is_over;
    int status; /* exit status */
};

static void end(struct top *top, int status)
{
    top->is_over = true;
    top->status = status;
}

/* --- output --------------------------------------------------------------------------------- */

static void draw(struct top *top)
{
    bool is_in_trouble = top->trouble.text[0] != '\0';
    struct top_form form = {.page.has_styles = true, .has_colors = top->has_colors};
    struct buffer text = BUFFER_INIT;

    screen_size(&form.page.rows, &form.page.columns);
    if (is_in_trouble) {
        if (form.page.rows > 1)
            form.page.rows--;
        cli_append_word(&text, sl_slice_str(top->trouble.text));
        buffer_append_str(&text, "; trying again\n");
    }
    if (top->snapshots.count > 0)
        top_view_print(&top->snapshots, top->url, &form, &text);
    else if (!is_in_trouble)
        buffer_append_format(&text, "asking %s\n", top->url);
    if (text.failed)
        end(top, cli_failed_with(top->cli, "out of memory"));
    else if (screen_draw(buffer_slice(&text), is_in_trouble) < 0)
        end(top, CLI_FAILED);
    buffer_done(&text);
}

static void print(struct top *top)
{
    static const struct top_form plain = {0};
    struct buffer text = BUFFER_INIT;

    if (top->is_once)
        top_view_print(&top->snapshots, top->url, &plain, &text);
    else
        top_view_print_line(&top->snapshots, &text);
    if (text.failed)
        end(top, cli_failed_with(top->cli, "out of memory"));
    else if (fwrite(text.data, 1, text.size, stdout) != text.size || fflush(stdout) != 0)
        end(top, errno == EPIPE ? CLI_GOOD /* the reader has closed the pipe */
                                : cli_failed_with(top->cli, "cannot write: %s", strerror(errno)));
    else if (top->is_once)
        end(top, CLI_GOOD);
    buffer_done(&text);
}

static void show(struct top *top)
{
    if (top->is_on_screen)
        draw(top);
    else if (!top->trouble.text[0] && top->snapshots.count > 1) /* rates need two snapshots */
        print(top);
}

/* --- requests ------------------------------------------------------------------------------- */

/* Called by libcurl; returning anything but `size` ends the transfer. */
static size_t on_bytes(char *data, size_t one, size_t size, void *context)
{
    struct top *top = context;

    (void)one;
    buffer_append(&top->answer, data, size);
    return top->answer.failed ? 0 : size;
}

static void ask(struct top *top, uint64_t now_ms)
{
    buffer_clear(&top->answer);
    top->next_ms = now_ms + top->interval_ms;
    top->is_asking = curl_multi_add_handle(top->multi, top->curl) == CURLM_OK;
}

static int refused(struct top *top, long status)
{
    json_t *json = json_loadb(buffer_slice(&top->answer).data, top->answer.size, 0, NULL);
    const char *message =
        json_string_value(json_object_get(json_object_get(json, "error"), "message"));
    int r;

    r = failure_set(&top->trouble, -EPROTO, "%s answers with status %ld: %s%s", top->url, status,
                    message ? message : "no reason given",
                    status == 404 ? " (does --ops-listen of sluiced name another address?)" : "");
    json_decref(json);
    return r;
}

static int take_answer(struct top *top, CURLcode code)
{
    long status = 0;

    if (code != CURLE_OK)
        return failure_set(&top->trouble, -EIO, "no answer from %s: %s", top->url,
                           curl_easy_strerror(code));
    curl_easy_getinfo(top->curl, CURLINFO_RESPONSE_CODE, &status);
    if (status != 200)
        return refused(top, status);
    return snapshots_add(&top->snapshots, buffer_slice(&top->answer), &top->trouble);
}

/* If the first request is refused for this reason, later ones would be, too. */
static bool is_for_good(const struct top *top)
{
    long status = 0;

    curl_easy_getinfo(top->curl, CURLINFO_RESPONSE_CODE, &status);
    return top->snapshots.count == 0 && status >= 400 && status < 500 && status != 429;
}

static void on_answer(struct top *top, CURLcode code)
{
    bool was_in_trouble = top->trouble.text[0] != '\0';
    int r;

    r = take_answer(top, code);
    if (r == 0)
        top->trouble.text[0] = '\0';
    if (r < 0 && (top->is_once || is_for_good(top))) {
        screen_leave(&top->screen);
        end(top, cli_failed(top->cli, &top->trouble));
        return;
    }
    if (r < 0 && !was_in_trouble && !top->is_on_screen)
        cli_failed_with(top->cli, "%s; trying again", top->trouble.text);
    show(top);
}

static void take_answers(struct top *top)
{
    CURLMsg *message;
    int running, left;

    curl_multi_perform(top->multi, &running);
    while ((message = curl_multi_info_read(top->multi, &left))) {
        CURLcode code = message->data.result;

        curl_multi_remove_handle(top->multi, top->curl); /* frees the message */
        top->is_asking = false;
        on_answer(top, code);
    }
}

/* --- keys and signals ----------------------------------------------------------------------- */

static void suspend(struct top *top)
{
    screen_leave(&top->screen);
    raise(SIGTSTP); /* continues when the shell says so */
    screen_enter(&top->screen);
    draw(top);
}

static void take_key(struct top *top)
{
    char key;

    if (read(top->screen.keys, &key, 1) != 1 || key == 'q' || key == 'Q' || key == CTRL_C)
        end(top, CLI_GOOD);
    else if (key == CTRL_Z)
        suspend(top);
}

static void take_signal(struct top *top)
{
    struct signalfd_siginfo signal;

    if (read(top->signals, &signal, sizeof(signal)) != sizeof(signal))
        return;
    if (signal.ssi_signo == SIGWINCH)
        draw(top);
    else
        end(top, CLI_GOOD);
}

/* --- the loop ------------------------------------------------------------------------------- */

static void wait_for_something(struct top *top, uint64_t now_ms)
{
    struct curl_waitfd fds[2] = {{.fd = top->signals, .events = CURL_WAIT_POLLIN},
                                 {.fd = top->screen.keys, .events = CURL_WAIT_POLLIN}};
    unsigned count = !top->is_on_screen ? 0 : top->screen.keys < 0 ? 1 : 2;
    uint64_t wait_ms = top->next_ms > now_ms ? top->next_ms - now_ms : 0;

    if (top->is_asking)
        wait_ms = ANSWER_MAX_S * 1000;
    curl_multi_poll(top->multi, fds, count, (int)wait_ms, NULL);
    if (count > 0 && fds[0].revents)
        take_signal(top);
    if (count > 1 && fds[1].revents && !top->is_over)
        take_key(top);
}

static int watch(struct top *top)
{
    if (top->is_on_screen) {
        screen_enter(&top->screen);
        draw(top);
    }
    while (!top->is_over) {
        uint64_t now_ms = clock_monotonic_ms();

        if (!top->is_asking && now_ms >= top->next_ms)
            ask(top, now_ms);
        take_answers(top);
        if (!top->is_over)
            wait_for_something(top, now_ms);
    }
    screen_leave(&top->screen);
    return top->status;
}

/* Signals that would leave the terminal in the wrong state are read by the loop. */
static int take_over_signals(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGQUIT);
    sigaddset(&set, SIGWINCH);
    sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static bool set_token(struct top *top, const char *token)
{
    struct buffer header = BUFFER_INIT;

    buffer_append_format(&header, "Authorization: Bearer %s", token);
    if (buffer_str(&header))
        top->headers = curl_slist_append(NULL, header.data);
    buffer_done(&header);
    return top->headers &&
           curl_easy_setopt(top->curl, CURLOPT_HTTPHEADER, top->headers) == CURLE_OK;
}

/* A terminal without control sequences gets lines. */
static bool is_dumb(void)
{
    const char *kind = getenv("TERM");

    return kind && strcmp(kind, "dumb") == 0;
}

static bool set_up(struct top *top, const char *token, const char *cacert)
{
    CURL *curl = top->curl;

    if (!curl || !top->multi || !top->status_url || (token && !set_token(top, token)))
        return false;
    top->answer.limit = ANSWER_MAX_BYTES;
    curl_easy_setopt(curl, CURLOPT_URL, top->status_url);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "sluice/" SLUICE_VERSION);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_bytes);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, top);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT, (long)ANSWER_MAX_S);
    server_trust(curl, cacert);
    top->is_on_screen = !top->is_once && isatty(STDOUT_FILENO) && !is_dumb();
    top->has_colors = !(getenv("NO_COLOR") && *getenv("NO_COLOR")); /* no-color.org */
    if (top->is_on_screen)
        top->signals = take_over_signals();
    return !top->is_on_screen || top->signals >= 0;
}

/* Seconds with a fraction, or a duration in another form. */
static uint64_t read_interval_ms(const struct cli *cli, const char *text)
{
    char *end;
    double ms = strtod(text, &end) * 1000;

    if (end == text || *end)
        ms = (double)argument_duration_ms(cli, "interval", text, 1000, INTERVAL_MAX_MS);
    if (!(ms >= INTERVAL_MIN_MS && ms <= INTERVAL_MAX_MS))
        cli_usage(cli, "--interval must be from 500ms to 1h, not '%s'", text);
    return (uint64_t)lround(ms);
}

static int run(struct cli *cli, int argc, char **argv)
{
    struct top top = {.cli = cli, .url = server_default_url(), .interval_ms = 2000, .signals = -1};
    const char *token = getenv("SLUICE_TOKEN"), *cacert = NULL;
    int option, status;

    while ((option = cli_option(cli, argc, argv)) >= 0) {
        if (option == 'u')
            top.url = optarg;
        else if (option == 't')
            token = optarg;
        else if (option == 'c')
            cacert = optarg;
        else if (option == 'i')
            top.interval_ms = read_interval_ms(cli, optarg);
        else
            top.is_once = true;
    }
    cli_no_arguments(cli, argc, argv);
    if (token && *token)
        server_check_token(cli, token);
    else
        token = NULL; /* much is also shown without a token */

    curl_global_init(CURL_GLOBAL_DEFAULT);
    top.status_url = server_url(cli, top.url, "/status.json?since=-1s"); /* the past is not shown */
    top.curl = curl_easy_init();
    top.multi = curl_multi_init();
    status = set_up(&top, token, cacert) ? watch(&top) : cli_failed_with(cli, "out of memory");
    if (top.is_asking)
        curl_multi_remove_handle(top.multi, top.curl);
    curl_multi_cleanup(top.multi);
    curl_easy_cleanup(top.curl);
    curl_slist_free_all(top.headers);
    curl_free(top.status_url);
    buffer_done(&top.answer);
    snapshots_done(&top.snapshots);
    if (top.signals >= 0)
        close(top.signals);
    curl_global_cleanup();
    return status;
}

static const struct cli_option options[] = {
    SERVER_OPTION_URL('u', " Or the address of its --ops-listen, if it has one."),
    SERVER_OPTION_TOKEN('t', " It is optional; one with the scope admin shows the subjects of "
                             "the slowest clients."),
    SERVER_OPTION_CACERT('c'),
    {"interval", 'i', "TIME",
     "The time between two snapshots: 500ms to 1h, or a number of seconds; the default is 2s.",
     NULL, CLI_ONCE},
    {"once", 'o', NULL,
     "Take two snapshots, print the page once, and end; with status 1 if the server does not "
     "answer.",
     NULL, CLI_ONCE},
    CLI_OPTIONS_END,
};

const struct command command_top = {
    .name = "top",
    .arguments = "",
    .summary = "watch the state of a sluiced, live",
    .help = "Reads /status.json until q or Ctrl-C: the server's verdict on itself, events in and "
            "out, matches, events queued for clients, streams by kind and transport, the slowest "
            "clients, the workers, and problems since the start. If the server goes away, "
            "it keeps asking. If standard output is not a terminal, each snapshot is a line of "
            "name=value pairs, with a hyphen for an unknown value.",
    .options = options,
    .examples = "sluice top\n"
                "sluice top --url https://live.example.org --interval 10s\n"
                "sluice top --once\n",
    .run = run,
};
