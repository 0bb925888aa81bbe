#include "gateway/process/start_notice.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/close_fd.h"
#include "base/log.h"
#include "gateway/process/service_manager.h"
#include "src/redis/redis_address.h"

int start_notice_init(struct start_notice *notice, const struct config *config, int started_fd,
                      struct failure *reterr)
{
    *notice = (struct start_notice){.ready_fd = -1, .started_fd = started_fd};
    if (config->ready_fd == 0)
        return 0;
    if (fcntl((int)config->ready_fd, F_SETFD, FD_CLOEXEC) < 0)
        return config_refuse(config, CONFIG_OPTION_ready_fd, reterr, -EBADF,
                             "%d is not an open descriptor", (int)config->ready_fd);
    notice->ready_fd = (int)config->ready_fd;
    return 0;
}

void start_notice_tell_manager(const struct start_facts *facts)
{
    char state[64];

    snprintf(state, sizeof(state), "MAINPID=%d\nREADY=1", (int)facts->pid);
    service_manager_tell(state);
}

/* Writes {"port":8080,"redis":"unix:///...","pid":1234} and closes the file. */
static void write_ready_line(int fd, const struct start_facts *facts)
{
    const struct listener *listeners = facts->listeners;
    char shown_url[SL_REDIS_ADDRESS_TEXT_SIZE];
    struct sl_redis_address address;
    struct buffer line = BUFFER_INIT;

    if (sl_redis_address_parse(sl_slice_str(facts->redis_url), &address, NULL) == 0) {
        sl_redis_address_print(&address, shown_url, sizeof(shown_url));
        buffer_append_format(&line, "{\"port\":%u,", listeners[LISTENER_PUBLIC].port);
        if (listeners[LISTENER_OPS].count > 0)
            buffer_append_format(&line, "\"ops_port\":%u,", listeners[LISTENER_OPS].port);
        buffer_append_str(&line, "\"redis\":");
        buffer_append_json_string(&line, sl_slice_str(shown_url));
        buffer_append_format(&line, ",\"pid\":%d}\n", (int)facts->pid);
    }
    if (line.failed || write(fd, line.data, line.size) != (ssize_t)line.size)
        log_warn("ready_fd_not_written", "error=\"%s\"", strerror(errno));
    buffer_done(&line);
}

static void log_ready(const struct start_facts *facts)
{
    const struct listener *listeners = facts->listeners;

    if (listeners[LISTENER_OPS].count > 0)
        log_info("ready", "port=%u ops_port=%u workers=%u", listeners[LISTENER_PUBLIC].port,
                 listeners[LISTENER_OPS].port, facts->workers);
    else
        log_info("ready", "port=%u workers=%u", listeners[LISTENER_PUBLIC].port, facts->workers);
}

void start_notice_tell(struct start_notice *notice, const struct start_facts *facts)
{
    log_ready(facts);
    if (notice->ready_fd >= 0)
        write_ready_line(notice->ready_fd, facts);
    if (notice->started_fd >= 0 && write(notice->started_fd, "\n", 1) < 0)
        log_warn("start_not_told", "error=\"%s\"", strerror(errno));
    start_notice_done(notice);
}

void start_notice_done(struct start_notice *notice)
{
    close_fd(&notice->ready_fd);
    close_fd(&notice->started_fd);
}
