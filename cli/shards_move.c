/* shards_move.c - sluice shards move: moves shards to a master, one after the other.
 *
 * It calls cli/shard_move.h for each, prints a line when it is done, and on a terminal its
 * progress. It stops at the first failure, because the same is likely to happen to the others. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/database.h"
#include "base/figure.h"
#include "cli/shard_move.h"

enum { PROGRESS_MS = 200 };

static uint32_t parse_number(const struct cli *cli, const char *text, size_t size)
{
    uint32_t number = 0;

    for (size_t i = 0; i < size; i++) {
        if (text[i] < '0' || text[i] > '9' || size > 2)
            cli_usage(cli, "'%s' is not a shard; give numbers from 0 to %d, or ranges such as 4-9",
                      text, SL_SHARDS_MAX - 1);
        number = number * 10 + (uint32_t)(text[i] - '0');
    }
    if (size == 0 || number >= SL_SHARDS_MAX)
        cli_usage(cli, "'%s' is not a shard; give numbers from 0 to %d, or ranges such as 4-9",
                  text, SL_SHARDS_MAX - 1);
    return number;
}

/* Parses "3" or "4-9". */
static uint64_t parse_shards(const struct cli *cli, const char *text)
{
    const size_t size = strcspn(text, "-");
    const uint32_t first = parse_number(cli, text, size);
    const uint32_t last =
        text[size] ? parse_number(cli, text + size + 1, strlen(text + size + 1)) : first;
    uint64_t shards = 0;

    if (last < first)
        cli_usage(cli, "'%s' ends before it begins", text);
    for (uint32_t shard = first; shard <= last; shard++)
        shards |= UINT64_C(1) << shard;
    return shards;
}

/* ---- output ---- */

static void show_progress(const struct shard_move *move)
{
    static uint64_t shown_ms;
    const uint64_t now_ms = clock_monotonic_ms();

    if (now_ms - shown_ms < PROGRESS_MS)
        return;
    shown_ms = now_ms;
    fprintf(stderr, "\rshard %" PRIu32 ": log %s of %s, keys %s of %s \033[K", move->shard,
            figure_count((double)move->entries).text, figure_count((double)move->all_entries).text,
            figure_count((double)move->keys).text, figure_count((double)move->all_keys).text);
}

static void print_done(const struct shard_move *move, uint64_t took_ms)
{
    if (move->is_there) {
        printf("shard %" PRIu32 ": is at %s already\n", move->shard, move->to->name);
        return;
    }
    printf("shard %" PRIu32 ": %s -> %s, ", move->shard, move->from->name, move->to->name);
    if (move->is_by_server)
        printf("%s keys by the servers themselves in %s", figure_count((double)move->all_keys).text,
               figure_seconds((double)took_ms / 1000).text);
    else
        printf("%s events and %s keys in %s, writers waited %s",
               figure_count((double)move->entries).text, figure_count((double)move->keys).text,
               figure_seconds((double)took_ms / 1000).text,
               figure_seconds((double)move->paused_ms / 1000).text);
    if (move->unheard)
        printf("; %s does not know yet: until it does, do not fail over to it, and do not move "
               "the shard again",
               move->unheard->name);
    printf("\n");
    fflush(stdout);
}

/* ---- the command ---- */

static int move_one(const struct cli *cli, struct shard_nodes *nodes, uint32_t shard,
                    struct shard_node *to)
{
    const bool is_seen = isatty(STDERR_FILENO);
    struct shard_move move = {
        .nodes = nodes, .shard = shard, .to = to, .tell = is_seen ? show_progress : NULL};
    const uint64_t begun_ms = clock_monotonic_ms();
    struct failure failure;
    int r = shard_move_run(&move, &failure);

    if (is_seen)
        fputs("\r\033[K", stderr);
    if (r == 0)
        print_done(&move, clock_monotonic_ms() - begun_ms);
    else if (r == -EINVAL)
        cli_failed_with(cli, "%s", failure.text);
    else
        cli_failed_with(cli, "shard %" PRIu32 ": %s (run the same command again to continue)",
                        shard, failure.text);
    return r;
}

static int move_all(const struct cli *cli, const struct sl_redis_address *address,
                    const struct sl_meta *meta, uint64_t shards, const char *target)
{
    struct shard_nodes nodes;
    struct shard_node *to = NULL;
    struct failure failure;
    int r = shard_nodes_open(&nodes, address, &failure);

    if (r == 0)
        r = shard_nodes_find(&nodes, target, &to, &failure);
    if (r == 0)
        r = shard_nodes_look(&nodes, &failure);
    if (r < 0)
        cli_failed(cli, &failure);
    for (uint32_t shard = 0; r == 0 && shard < meta->shards; shard++) {
        if (shards >> shard & 1)
            r = move_one(cli, &nodes, shard, to);
    }
    shard_nodes_close(&nodes);
    return r < 0 ? CLI_FAILED : cli_done(cli);
}

static int run(struct cli *cli, int argc, char **argv)
{
    struct sl_redis_address address;
    struct database database;
    uint64_t shards = 0;
    int status;

    cli_no_options(cli, argc, argv);
    if (argc - optind < 2)
        cli_usage(cli, "give the shards, and the HOST:PORT of the master to move them to");
    for (int i = optind; i < argc - 1; i++)
        shards |= parse_shards(cli, argv[i]);
    status = database_look(&database, cli);
    if (status != CLI_GOOD)
        return status;
    database_close(&database);
    if (database_address(cli, &address, NULL) < 0 || address.seed_count == 0)
        return cli_failed_with(cli, "this Redis is not a cluster: there is nowhere to move "
                                    "shards to");
    if (database.meta.shards < SL_SHARDS_MAX && shards >> database.meta.shards)
        return cli_failed_with(cli, "the database has shards 0 to %" PRIu32 " only",
                               database.meta.shards - 1);
    return move_all(cli, &address, &database.meta, shards, argv[argc - 1]);
}

const struct command command_shards_move = {
    .name = "shards move",
    .arguments = "SHARD... HOST:PORT",
    .summary = "move shards to another master of the cluster",
    .help =
        "Moves the slots of these shards, numbers or ranges such as 4-9, one after the other, "
        "with everything in them, to a master as named by 'sluice shards list'. Shards that are "
        "there already stay.\n\n"
        "Valkey from 9.0 and Redis from 8.4 on do it in one piece while the shard is written to. "
        "With others most of the log is copied first, while the shard is written to; then writes "
        "to the shard, and reads other than those of its log, have to wait while the rest is "
        "moved, some seconds for each hundred thousand keys.\n\n"
        "A move may be interrupted at any point. Until you run the same command again, the shard "
        "may refuse everything except reading its log; 'sluice shards list' shows it.",
    .examples = "sluice shards move 3 17 10.0.0.4:6379\n"
                "sluice shards move 0-15 10.0.0.4:6379\n",
    .run = run,
};
