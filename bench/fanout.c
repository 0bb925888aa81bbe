/* bench/fanout.c - what does one delivery cost a server, and does everything arrive?
 *
 * Opens many streams on one server, publishes numbered posts, checks that every client gets exactly
 * its own posts, in order and none twice, and prints one line of JSON: counts, latencies, the CPU
 * time of the server's processes and their memory. Except for the format of a post nothing in it is
 * specific to Sluice, so that other servers can be compared. bench/performance runs it. */
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>

#include "bench/fanout_clients.h"
#include "bench/fanout_options.h"
#include "bench/fanout_process.h"
#include "bench/fanout_publish.h"
#include "bench/measure.h"

enum {
    QUIET_MS = 5000, /* if nothing has come for so long, nothing will */
    LINGER_MS = 250, /* after the last post: wait for what should not come */
    STILL_MS = 500   /* between the last handshake and the first post */
};

static struct options options;
static const struct client_counts *counts;
static _Atomic int is_over;
static uint64_t opened_bytes; /* when the first post was sent */

static void publish_all(uint64_t expected)
{
    uint64_t deadline = measure_now_ns() + (uint64_t)options.max_s * 1000000000, quiet_since;
    uint64_t seen = 0, delivered;
    pthread_t thread;

    options.publish.delivered = &counts->delivered;
    options.publish.is_over = &is_over;
    if (options.publish.keywords == 0)
        options.publish.deliveries_per_post = counts->open;
    else
        options.publish.deliveries_per_post = expected / options.publish.posts;
    if (!options.from_log && pthread_create(&thread, NULL, publish_run, &options.publish) != 0)
        measure_fail("thread", NULL);
    quiet_since = measure_now_ns();
    while ((delivered = counts->delivered) < expected && measure_now_ns() < deadline) {
        if (delivered != seen)
            quiet_since = measure_now_ns();
        else if (measure_now_ns() - quiet_since > (uint64_t)QUIET_MS * 1000000)
            break;
        seen = delivered;
        clients_turn(100);
    }
    clients_turn_for(LINGER_MS);
    is_over = 1;
    if (!options.from_log)
        pthread_join(thread, NULL);
}

static double us(uint64_t ns)
{
    return (double)ns / 1000;
}

static double per(double what, uint64_t count)
{
    return count ? what / (double)count : 0;
}

static void report_costs(const struct process_cpu *before, const struct process_cpu *after,
                         uint64_t posts)
{
    uint64_t ns = after->all_ns - before->all_ns;
    uint64_t user = after->user_ms - before->user_ms, sys = after->sys_ms - before->sys_ms;

    printf(", \"cpu_s\": %.4f, \"user_share\": %.3f, \"us_per_delivery\": %.3f, "
           "\"us_per_post\": %.2f, \"us_per_handshake\": %.2f",
           (double)ns / 1e9, per((double)user, user + sys), per(us(ns), counts->delivered),
           per(us(ns), posts), per(us(ns), options.clients.churn ? counts->handshakes : 0));
}

static void report_counts(uint64_t expected)
{
    double seconds = (double)(counts->last_ns - counts->first_ns) / 1e9;
    bool complete = counts->delivered == expected && !counts->missing && !counts->repeated &&
                    !counts->foreign && !counts->unreadable && !counts->closed && !counts->refused;

    printf("{\"format\": \"%s\", \"clients\": %u, \"complete\": %s, \"expected\": %" PRIu64
           ", \"delivered\": %" PRIu64 ", \"missing\": %" PRIu64 ", \"repeated\": %" PRIu64
           ", \"foreign\": %" PRIu64 ", \"unreadable\": %" PRIu64 ", \"refused\": %" PRIu64
           ", \"closed\": %" PRIu64 ", \"handshakes\": %" PRIu64 ", \"bytes\": %" PRIu64
           ", \"complaint\": \"%s\"",
           format_names[options.clients.format], options.clients.count, complete ? "true" : "false",
           expected, (uint64_t)counts->delivered, counts->missing, counts->repeated,
           counts->foreign, counts->unreadable, counts->refused, counts->closed, counts->handshakes,
           counts->bytes - opened_bytes, counts->complaint);
    printf(", \"deliveries_per_s\": %.0f, \"p50_ms\": %.3f, \"p99_ms\": %.3f, \"p999_ms\": %.3f, "
           "\"slowest_ms\": %.3f",
           seconds > 0 ? (double)counts->delivered / seconds : 0,
           latencies_ms(&counts->latencies, 0.5), latencies_ms(&counts->latencies, 0.99),
           latencies_ms(&counts->latencies, 0.999), (double)counts->latencies.slowest_ns / 1e6);
}

static int run(void)
{
    struct process_cpu before, after, idle_from, idle_to;
    struct process_tree tree;
    uint64_t pss, begun_pss, expected, began_ns = measure_now_ns(), opened_ns;

    process_tree_read(options.server, &tree);
    pss = begun_pss = process_pss_bytes(&tree);
    process_cpu_read(&tree, &before);
    opened_ns = measure_now_ns();
    clients_open();
    opened_ns = measure_now_ns() - opened_ns;
    clients_turn_for(options.from_log ? 0 : STILL_MS);
    if (options.clients.churn) {
        process_cpu_read(&tree, &after);
        report_counts(0);
        report_costs(&before, &after, 0);
        printf(", \"handshakes_per_s\": %.0f}\n",
               (double)counts->handshakes * 1e9 / (double)opened_ns);
        return counts->handshakes == options.clients.churn ? 0 : 1;
    }
    pss = process_pss_bytes(&tree) - pss;
    process_cpu_read(&tree, &idle_from);
    if (options.idle_s)
        clients_turn_for((uint64_t)options.idle_s * 1000);
    process_cpu_read(&tree, &idle_to);

    expected = clients_expected();
    opened_bytes = counts->bytes;
    if (!options.from_log)
        process_cpu_read(&tree, &before);
    publish_all(expected);
    process_cpu_read(&tree, &after);
    report_counts(expected);
    report_costs(&before, &after, options.publish.posts);
    printf(", \"pss_after_per_client\": %.0f",
           per((double)process_pss_bytes(&tree) - (double)begun_pss, options.clients.count));
    printf(", \"open_s\": %.3f, \"all_s\": %.3f, \"pss_per_client\": %.0f", (double)opened_ns / 1e9,
           (double)(counts->last_ns - began_ns) / 1e9,
           per((double)(int64_t)pss, options.clients.count));
    if (options.idle_s)
        printf(", \"idle_cpu_percent\": %.3f",
               (double)(idle_to.all_ns - idle_from.all_ns) / 1e7 / options.idle_s);
    printf("}\n");
    return counts->delivered == expected ? 0 : 1;
}

int main(int argc, char **argv)
{
    struct rlimit files;

    options_read(&options, argc, argv);
    signal(SIGPIPE, SIG_IGN);
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    counts = clients_init(&options.clients, &options.publish);
    return run();
}
