/* audit_log.c - two buffers: lines that wait, and lines that a thread of libuv's pool is writing.
 *
 * There is one write at a time. When it ends, all lines that wait are written together, so a slow
 * disk gets fewer and larger writes. If more than AUDIT_WAITING_MAX bytes wait, lines are lost.
 *
 * A full disk may accept only part of a write; lines that are not written completely are lost. Each
 * write first reads the last byte of the file. If that is not a newline, it begins with one, so
 * that the remainder of a cut line, from any worker, does not spoil the next line. Nothing is
 * written a second time, so the lines of the file are in order.
 *
 * When another file is opened, it replaces the old one after the current write. */
#include "gateway/access/audit_log.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/utf8.h"
#include "gateway/front/audit_file.h"

struct audit_log {
    uv_loop_t *loop;
    struct metrics *metrics;
    uv_work_t write;
    int fd;      /* -1: off */
    int next_fd; /* replaces `fd` after the current write; -1: off */
    bool is_writing;
    bool has_next; /* `next_fd` is set, even if it is -1 */
    struct buffer waiting, written;
    ssize_t taken; /* bytes of `written` that are in the file; a negative errno: none */
    size_t waiting_lines, written_lines;
    struct log_rate lost_rate;
    uint64_t refused_second, refused_count, held_back;
};

/* --- the file --- */

static void close_file(int fd)
{
    if (fd >= 0)
        close(fd);
}

/* Must not be called during a write. */
static void change_file(struct audit_log *audit)
{
    if (!audit->has_next)
        return;
    close_file(audit->fd);
    audit->fd = audit->next_fd;
    audit->has_next = false;
}

void audit_log_set_file_take(struct audit_log *audit, int fd)
{
    if (audit->has_next)
        close_file(audit->next_fd);
    audit->next_fd = fd;
    audit->has_next = true;
    if (!audit->is_writing)
        change_file(audit);
}

int audit_log_open(struct audit_log *audit, const char *path, struct failure *reterr)
{
    int fd = path ? audit_file_open(path, reterr) : -1;

    if (path && fd < 0)
        return fd;
    audit_log_set_file_take(audit, fd);
    return 0;
}

struct audit_log *audit_log_new(uv_loop_t *loop, struct metrics *metrics)
{
    struct audit_log *audit = mem_zalloc(sizeof(*audit));

    if (!audit)
        return NULL;
    audit->loop = loop;
    audit->metrics = metrics;
    audit->fd = audit->next_fd = -1;
    return audit;
}

void audit_log_free(struct audit_log *audit)
{
    if (!audit)
        return;
    assert(!audit->is_writing);
    change_file(audit);
    close_file(audit->fd);
    buffer_done(&audit->waiting);
    buffer_done(&audit->written);
    mem_free(audit);
}

/* --- writing --- */

static void lose(struct audit_log *audit, size_t lines, const char *why)
{
    uint64_t held_back;

    if (lines == 0)
        return;
    metric_add(audit->metrics, METRIC_AUDIT_LINES_LOST, lines);
    if (log_rate_allows(&audit->lost_rate, uv_now(audit->loop), &held_back))
        log_error("audit_lines_lost", "lines=%zu why=\"%s\" held_back=%" PRIu64, lines, why,
                  held_back);
}

static size_t lines_in(const char *bytes, size_t size)
{
    const char *end = bytes + size;
    size_t count = 0;

    for (const char *at = bytes; (at = memchr(at, '\n', (size_t)(end - at))); at++)
        count++;
    return count;
}

/* Without permission to read the file this is unknown; false is assumed. */
static bool ends_within_a_line(int fd)
{
    struct stat status;
    char last;

    return fstat(fd, &status) == 0 && status.st_size > 0 &&
           pread(fd, &last, 1, status.st_size - 1) == 1 && last != '\n';
}

/* Runs in a thread of the pool. */
static void write_aside(uv_work_t *work)
{
    struct audit_log *audit = work->data;
    char newline = '\n';
    const struct iovec parts[] = {{&newline, 1}, {audit->written.data, audit->written.size}};
    bool is_within = ends_within_a_line(audit->fd);
    ssize_t n;

    do
        n = writev(audit->fd, is_within ? parts : parts + 1, is_within ? 2 : 1);
    while (n < 0 && errno == EINTR);
    audit->taken = n < 0 ? -errno : n - (is_within && n > 0);
}

static void begin_write(struct audit_log *audit);

static void on_written(uv_work_t *work, int status)
{
    struct audit_log *audit = work->data;
    size_t there = audit->taken > 0 ? lines_in(audit->written.data, (size_t)audit->taken) : 0;

    (void)status; /* work is never cancelled */
    lose(audit, audit->written_lines - there,
         audit->taken < 0 ? uv_strerror((int)audit->taken) : "the disk accepted only a part");
    metric_add(audit->metrics, METRIC_AUDIT_LINES, there);
    buffer_clear(&audit->written);
    audit->is_writing = false;
    change_file(audit);
    begin_write(audit);
}

static void begin_write(struct audit_log *audit)
{
    struct buffer rest = audit->written;
    int r;

    if (audit->is_writing || audit->waiting_lines == 0)
        return;
    audit->written = audit->waiting;
    audit->waiting = rest;
    audit->written_lines = audit->waiting_lines;
    audit->waiting_lines = 0;
    if (audit->fd < 0 || audit->written.failed) {
        lose(audit, audit->written_lines, audit->fd < 0 ? "it was switched off" : "out of memory");
        buffer_done(&audit->written);
        return;
    }
    audit->write.data = audit;
    r = uv_queue_work(audit->loop, &audit->write, write_aside, on_written);
    audit->is_writing = r == 0;
    if (r < 0) {
        lose(audit, audit->written_lines, uv_strerror(r));
        buffer_clear(&audit->written);
    }
}

/* --- lines --- */

bool audit_begin(const struct audit_log *audit, const char *event, struct buffer *ret_json)
{
    char when[CLOCK_RFC3339_SIZE];

    if (!audit || (audit->has_next ? audit->next_fd : audit->fd) < 0)
        return false;
    *ret_json = BUFFER_INIT;
    clock_format_rfc3339(clock_wall_ms(), when);
    buffer_append_format(ret_json, "{\"at\":\"%s\",\"event\":\"%s\"", when, event);
    return true;
}

void audit_text(struct buffer *json, const char *name, struct sl_slice text)
{
    if (text.size > AUDIT_TEXT_MAX) {
        text = utf8_cut(text, AUDIT_TEXT_MAX);
        buffer_append_format(json, ",\"%s_is_cut\":true", name);
    }
    buffer_append_format(json, ",\"%s\":", name);
    buffer_append_json_string(json, text);
}

void audit_number(struct buffer *json, const char *name, uint64_t number)
{
    buffer_append_format(json, ",\"%s\":%" PRIu64, name, number);
}

void audit_address(struct buffer *json, struct sl_slice address)
{
    char text[INET6_ADDRSTRLEN];

    if (address.size != 4 && address.size != 16)
        return;
    if (inet_ntop(address.size == 4 ? AF_INET : AF_INET6, address.data, text, sizeof(text)))
        audit_text(json, "address", sl_slice_str(text));
}

void audit_end_take(struct audit_log *audit, struct buffer *json)
{
    buffer_append_str(json, "}\n");
    if (json->failed || audit->waiting.size + json->size > AUDIT_WAITING_MAX) {
        lose(audit, 1, json->failed ? "out of memory" : "the disk is too slow");
    } else {
        buffer_append_slice(&audit->waiting, buffer_slice(json));
        audit->waiting_lines++;
    }
    buffer_done(json);
    begin_write(audit);
}

bool audit_begin_refused(struct audit_log *audit, const char *event, struct buffer *ret_json)
{
    uint64_t second;

    if (!audit_begin(audit, event, ret_json))
        return false;
    second = uv_now(audit->loop) / 1000;
    if (second != audit->refused_second) {
        audit->refused_second = second;
        audit->refused_count = 0;
    }
    if (++audit->refused_count > AUDIT_REFUSED_PER_S) {
        audit->held_back++;
        buffer_done(ret_json);
        return false;
    }
    if (audit->held_back > 0)
        audit_number(ret_json, "held_back", audit->held_back);
    audit->held_back = 0;
    return true;
}
