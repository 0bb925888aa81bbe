/* shards.c - sluice shards list, sluice shards plan: the load of shards, and how to distribute it
 * evenly.
 *
 * The list is a table for people, of shards and then of their nodes, or a line of JSON for each
 * shard. The plan consists of lines for a shell: comments with the reasons, and commands. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/figure.h"
#include "cli/shard_plan.h"
#include "cli/shard_rows.h"
#include "src/redis/cluster_map.h"

enum { KEY_JSON = 1, KEY_BY, KEY_DRAIN };

/* ---- list ---- */

static double share(double part, double of)
{
    return isnan(part) || isnan(of) ? NAN : of > 0 ? part / of : 0;
}

static double busiest_shard(const struct shard_rows *rows)
{
    double most = 0;

    for (uint32_t shard = 0; shard < rows->database.meta.shards; shard++)
        most = fmax(most, rows->at[shard].rate);
    return most;
}

static void print_open(const struct shard_row *row, uint32_t shard)
{
    if (!row->is_open)
        return;
    if (row->to[0])
        printf("  half moved: sluice shards move %" PRIu32 " %s", shard, row->to);
    else
        printf("  half moved");
}

static void print_shard(const struct shard_rows *rows, uint32_t shard, double most)
{
    const struct shard_row *row = &rows->at[shard];

    printf("%5" PRIu32 " %6" PRIu32 "  %-22s %9s %9s %8s %9s %9s", shard, sl_cluster_slot(shard),
           shard_rows_node(rows, row->node), figure_count(row->keys).text,
           figure_count(row->entries).text, figure_bytes(row->bytes).text,
           figure_count(row->rate).text, figure_percent(share(row->rate, most)).text);
    print_open(row, shard);
    printf("\n");
}

/* The sum over the shards of a node. */
static struct shard_row sum_node(const struct shard_rows *rows, size_t node, uint32_t *ret_count)
{
    struct shard_row sum = {.node = node};

    *ret_count = 0;
    for (uint32_t shard = 0; shard < rows->database.meta.shards; shard++) {
        const struct shard_row *row = &rows->at[shard];

        if (row->node != node)
            continue;
        (*ret_count)++;
        sum.keys += row->keys;
        sum.entries += row->entries;
        sum.bytes += row->bytes;
        sum.rate += row->rate;
    }
    return sum;
}

static void print_nodes(const struct shard_rows *rows)
{
    double most = 0;
    uint32_t count;

    for (size_t node = 0; node < shard_rows_nodes(rows); node++)
        most = fmax(most, sum_node(rows, node, &count).rate);
    printf("\n%-22s %6s %9s %9s %8s %9s %9s\n", "node", "shards", "keys", "entries", "bytes",
           "events/s", "busiest");
    for (size_t node = 0; node < shard_rows_nodes(rows); node++) {
        const struct shard_row sum = sum_node(rows, node, &count);

        printf("%-22s %6" PRIu32 " %9s %9s %8s %9s %9s\n", shard_rows_node(rows, node), count,
               figure_count(sum.keys).text, figure_count(sum.entries).text,
               figure_bytes(sum.bytes).text, figure_count(sum.rate).text,
               figure_percent(share(sum.rate, most)).text);
    }
}

static void print_table(const struct shard_rows *rows)
{
    const double most = busiest_shard(rows);

    printf("%5s %6s  %-22s %9s %9s %8s %9s %9s\n", "shard", "slot", "node", "keys", "entries",
           "bytes", "events/s", "busiest");
    for (uint32_t shard = 0; shard < rows->database.meta.shards; shard++)
        print_shard(rows, shard, most);
    print_nodes(rows);
}

/* null: unknown. */
static json_t *json_of(double number)
{
    if (isnan(number))
        return json_null();
    return number == floor(number) ? json_integer((json_int_t)number) : json_real(number);
}

static int print_lines(const struct shard_rows *rows)
{
    const double most = busiest_shard(rows);

    for (uint32_t shard = 0; shard < rows->database.meta.shards; shard++) {
        const struct shard_row *row = &rows->at[shard];
        json_t *line;

        line = json_pack("{si si ss? so so so so so sb ss?}", "shard", (int)shard, "slot",
                         (int)sl_cluster_slot(shard), "node",
                         row->node == SIZE_MAX ? NULL : shard_rows_node(rows, row->node), "keys",
                         json_of(row->keys), "log_entries", json_of(row->entries), "log_bytes",
                         json_of(row->bytes), "events_per_second", json_of(row->rate),
                         "share_of_busiest", json_of(share(row->rate, most)), "half_moved",
                         row->is_open, "to", row->to[0] ? row->to : NULL);
        if (!line || json_dumpf(line, stdout, JSON_COMPACT | JSON_REAL_PRECISION(6)) < 0) {
            json_decref(line);
            return -ENOMEM;
        }
        json_decref(line);
        printf("\n");
    }
    return 0;
}

static int run_list(struct cli *cli, int argc, char **argv)
{
    struct shard_rows rows;
    bool is_json = false;
    int status;

    while (cli_option(cli, argc, argv) >= 0)
        is_json = true;
    cli_no_arguments(cli, argc, argv);
    status = shard_rows_open(&rows, cli);
    if (status != CLI_GOOD)
        return status;
    if (!is_json)
        print_table(&rows);
    else if (print_lines(&rows) < 0)
        status = cli_failed_with(cli, "out of memory");
    shard_rows_close(&rows);
    return status == CLI_GOOD ? cli_done(cli) : status;
}

/* ---- plan ---- */

enum measure { BY_LOAD, BY_KEYS, BY_SHARDS, MEASURES };

static const char *const measures[MEASURES] = {"load", "keys", "shards"};

struct planning {
    struct shard_rows rows;
    enum measure by;
    bool *is_leaving; /* for each node */
};

static enum measure parse_measure(const struct cli *cli, const char *text)
{
    for (int by = 0; by < MEASURES; by++) {
        if (strcmp(text, measures[by]) == 0)
            return (enum measure)by;
    }
    cli_usage(cli, "--by must be load, keys or shards, not '%s'", text);
}

/* 0; -EINVAL: too little is known for a plan. */
static int weigh(const struct planning *planning, struct shard_plan *ret_plan,
                 struct failure *reterr)
{
    const struct shard_rows *rows = &planning->rows;
    struct shard_plan plan = {.shards = rows->database.meta.shards,
                              .nodes = shard_rows_nodes(rows),
                              .is_leaving = planning->is_leaving};

    for (uint32_t shard = 0; shard < plan.shards; shard++) {
        const struct shard_row *row = &rows->at[shard];

        if (row->is_open)
            return failure_set(reterr, -EINVAL,
                               "shard %" PRIu32 " is half moved; finish that first: sluice "
                               "shards move %" PRIu32 " %s",
                               shard, shard, row->to[0] ? row->to : "HOST:PORT");
        plan.node[shard] = row->node;
        plan.weight[shard] = planning->by == BY_LOAD   ? row->rate
                             : planning->by == BY_KEYS ? row->keys
                                                       : 1;
        if (row->node == SIZE_MAX || isnan(plan.weight[shard]))
            return failure_set(reterr, -EINVAL,
                               "what shard %" PRIu32 " has is unknown: its master is away", shard);
    }
    *ret_plan = plan;
    return 0;
}

static void print_shares(const struct planning *planning, const struct shard_plan *before,
                         const struct shard_plan *after)
{
    const char *name = planning->by == BY_KEYS ? "keys" : "events/s";
    const bool is_weighed = planning->by != BY_SHARDS;

    printf("# %-22s shards after", "node");
    if (is_weighed)
        printf(" %9s %9s", name, "after");
    printf("\n");
    for (size_t node = 0; node < before->nodes; node++) {
        printf("# %-22s %6" PRIu32 " %5" PRIu32, shard_rows_node(&planning->rows, node),
               shard_plan_count(before, node), shard_plan_count(after, node));
        if (is_weighed)
            printf(" %9s %9s", figure_count(shard_plan_weight(before, node)).text,
                   figure_count(shard_plan_weight(after, node)).text);
        printf("\n");
    }
}

/* Prints the option that names the database, for commands to be pasted; nothing if the environment
 * names it. */
static void print_redis(const struct cli *cli)
{
    const char *environment = getenv("SLUICE_REDIS");
    char where[SL_REDIS_ADDRESS_TEXT_SIZE];
    struct sl_redis_address address;

    if (!cli->redis_url || (environment && strcmp(environment, cli->redis_url) == 0) ||
        database_address(cli, &address, NULL) < 0)
        return;
    sl_redis_address_print(&address, where, sizeof(where));
    printf(" --redis '%s'", where);
}

static void print_moves(const struct cli *cli, const struct planning *planning,
                        const struct shard_plan *before, const struct shard_plan *after)
{
    for (size_t node = 0; node < after->nodes; node++) {
        uint32_t count = 0;

        for (uint32_t shard = 0; shard < after->shards; shard++) {
            if (after->node[shard] != node || before->node[shard] == node)
                continue;
            if (count++ == 0) {
                printf("sluice");
                print_redis(cli);
                printf(" shards move");
            }
            printf(" %" PRIu32, shard);
        }
        if (count > 0)
            printf(" %s\n", shard_rows_node(&planning->rows, node));
    }
}

static int make_plan(const struct cli *cli, const struct planning *planning, struct failure *reterr)
{
    struct shard_plan before = {.shards = 0}, after;
    int r = weigh(planning, &before, reterr);

    if (r < 0)
        return r;
    after = before;
    shard_plan_make(&after);
    print_shares(planning, &before, &after);
    if (memcmp(before.node, after.node, sizeof(before.node)) == 0)
        printf("# nothing to move\n");
    print_moves(cli, planning, &before, &after);
    return 0;
}

static int find_leaving(struct planning *planning, const char *const *names, size_t count,
                        struct failure *reterr)
{
    struct shard_nodes *nodes = &planning->rows.nodes;
    size_t leaving = 0;
    int r = 0;

    planning->is_leaving = calloc(nodes->count + 1, sizeof(bool));
    if (!planning->is_leaving)
        return failure_set(reterr, -ENOMEM, "out of memory");
    for (size_t i = 0; r == 0 && i < count; i++) {
        struct shard_node *node = NULL;

        r = shard_nodes_find(nodes, names[i], &node, reterr);
        if (r == 0)
            planning->is_leaving[node - nodes->at] = true;
    }
    for (size_t i = 0; i < nodes->count; i++)
        leaving += planning->is_leaving[i];
    if (r == 0 && leaving == nodes->count)
        r = failure_set(reterr, -EINVAL, "at least one master must stay");
    return r;
}

enum { DRAINED_MAX = 16 };

static int plan_on(struct planning *planning, const struct cli *cli, const char *const *drained,
                   size_t drained_count)
{
    struct failure failure;
    int r;

    if (!planning->rows.is_cluster)
        return cli_failed_with(cli, "this Redis is not a cluster: there is nowhere to move "
                                    "shards to");
    r = find_leaving(planning, drained, drained_count, &failure);
    if (r == 0)
        r = make_plan(cli, planning, &failure);
    free(planning->is_leaving);
    return r < 0 ? cli_failed(cli, &failure) : cli_done(cli);
}

static int run_plan(struct cli *cli, int argc, char **argv)
{
    struct planning planning = {.by = BY_LOAD};
    const char *drained[DRAINED_MAX];
    size_t drained_count = 0;
    int option, status;

    while ((option = cli_option(cli, argc, argv)) >= 0) {
        if (option == KEY_BY)
            planning.by = parse_measure(cli, optarg);
        else if (drained_count == DRAINED_MAX)
            cli_usage(cli, "at most %d masters can be drained at once", DRAINED_MAX);
        else
            drained[drained_count++] = optarg;
    }
    cli_no_arguments(cli, argc, argv);
    status = shard_rows_open(&planning.rows, cli);
    if (status != CLI_GOOD)
        return status;
    status = plan_on(&planning, cli, drained, drained_count);
    shard_rows_close(&planning.rows);
    return status;
}

/* ---- options ---- */

static const struct cli_option list_options[] = {
    {"json", KEY_JSON, NULL, "Print a line of JSON for each shard.", NULL, CLI_ONCE},
    CLI_OPTIONS_END,
};

const struct command command_shards_list = {
    .name = "shards list",
    .arguments = "",
    .summary = "list the shards: content, node, load",
    .help =
        "For each shard: its slot, the node that has it, the keys in the slot, the entries and "
        "the memory of its log, the events per second of the last minute, and their percentage "
        "of the busiest shard. Then the same for each node. For a shard with an unfinished move "
        "it prints the command to finish it.\n\n"
        "Events are counted by the ids in the log, which contain their time: those of the last "
        "minute, or of the newest 1,000 if there are more. The memory is estimated by Redis. A "
        "single Redis does not know the keys of a shard; they are counted, and in a database of "
        "more than 100,000 keys estimated from that many.",
    .options = list_options,
    .examples = "sluice shards list\nsluice shards list --json\n",
    .run = run_list,
};

static const struct cli_option plan_options[] = {
    {"by", KEY_BY, "MEASURE",
     "What to distribute evenly: load (events per second, as in 'sluice shards list'; the "
     "default), keys, or shards (their number).",
     "load keys shards", CLI_ONCE},
    {"drain", KEY_DRAIN, "HOST:PORT",
     "Leave no shard on this master, so that it can be removed. May be given several times.", NULL,
     CLI_MANY},
    CLI_OPTIONS_END,
};

const struct command command_shards_plan = {
    .name = "shards plan",
    .arguments = "",
    .summary = "plan which shards to move for even shares of the masters",
    .help =
        "Prints what each master of the cluster has now and would have afterwards, as comments, "
        "and the commands for it, to be pasted into a shell. Nothing is moved.\n\n"
        "Shards of a master that is more than a twentieth above the even share go to the one "
        "that has least. Shards with almost no load are distributed evenly by their number. A "
        "new master is one that has nothing yet.",
    .options = plan_options,
    .examples = "sluice shards plan\n"
                "sluice shards plan --by keys\n"
                "sluice shards plan --drain 10.0.0.4:6379\n",
    .run = run_plan,
};
