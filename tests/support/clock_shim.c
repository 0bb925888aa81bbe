/* clock_shim.c - an adjustable wall clock, preloaded into a real program.
 *
 * CLOCK_SHIM_FILE names a file of eight bytes: how many microseconds the wall clock is ahead, as a
 * signed integer in this machine's byte order. It is mapped once; writing to it sets the clock of
 * every program that was started with it. Monotonic clocks are unchanged.
 *
 * The kernel is called directly: looking up the replaced functions may allocate, and a program with
 * its own allocator asks for the time before that is ready. */
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const _Atomic int64_t *ahead_us;

__attribute__((constructor)) static void map_file(void)
{
    const char *name = getenv("CLOCK_SHIM_FILE");
    int fd = name ? open(name, O_RDONLY | O_CLOEXEC) : -1;
    void *mapped;

    if (fd < 0)
        return;
    mapped = mmap(NULL, sizeof(*ahead_us), PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (mapped != MAP_FAILED)
        ahead_us = mapped;
}

static int64_t wall_us(void)
{
    struct timespec now;

    syscall(SYS_clock_gettime, CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000 + (ahead_us ? *ahead_us : 0);
}

int clock_gettime(clockid_t clock, struct timespec *ret_now)
{
    int64_t us;

    if (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)
        return (int)syscall(SYS_clock_gettime, clock, ret_now);
    us = wall_us();
    *ret_now = (struct timespec){.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
    return 0;
}

int gettimeofday(struct timeval *restrict ret_now, void *restrict zone)
{
    int64_t us = wall_us();

    (void)zone;
    *ret_now = (struct timeval){.tv_sec = us / 1000000, .tv_usec = us % 1000000};
    return 0;
}

time_t time(time_t *ret_now)
{
    time_t now = wall_us() / 1000000;

    if (ret_now)
        *ret_now = now;
    return now;
}
