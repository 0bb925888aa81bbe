#include "tests/support/interruptions.h"

#include <signal.h>
#include <stddef.h>
#include <sys/time.h>

enum { EVERY_US = 5000 };

static void (*callback)(unsigned times);
static volatile sig_atomic_t times;

static void on_alarm(int number)
{
    (void)number;
    times++;
    if (callback)
        callback((unsigned)times);
}

static void set_timer(long every_us)
{
    const struct itimerval timer = {{0, every_us}, {0, every_us}};

    setitimer(ITIMER_REAL, &timer, NULL);
}

void interruptions_begin(void (*when_interrupted)(unsigned times))
{
    const struct sigaction action = {.sa_handler = on_alarm}; /* no SA_RESTART */

    callback = when_interrupted;
    times = 0;
    sigaction(SIGALRM, &action, NULL);
    set_timer(EVERY_US);
}

void interruptions_end(void)
{
    set_timer(0);
    signal(SIGALRM, SIG_IGN);
}
