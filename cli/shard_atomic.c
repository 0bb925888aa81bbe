/* shard_atomic.c - one command starts the move, another one lists current and past jobs.
 *
 * Both servers return a list of {name, value, ...}. A job of this slot that has not ended is waited
 * for, whoever started it. If there is none, either the target has the slot, or the last job says
 * why not. */
#include "cli/shard_atomic.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <hiredis/hiredis.h>

#include "src/call/reply_read.h"

enum { SETTLE_MS = 10000 };

struct engine {
    const char *command;     /* as known to COMMAND INFO */
    bool is_at_source;       /* which of the two nodes is asked */
    const char *status[4];   /* the command that lists jobs */
    const char *range, *why; /* the fields with the slots and with the error */
};

static const struct engine engines[] = {
    {"cluster|migrateslots", true, {"CLUSTER", "GETSLOTMIGRATIONS"}, "slot_ranges", "message"},
    {"cluster|migration", false, {"CLUSTER", "MIGRATION", "STATUS", "ALL"}, "slots", "last_error"},
};

static const char *const final_states[] = {"success",   "completed", "failed",
                                           "cancelled", "canceled",  NULL};

static struct shard_node *node_of(const struct shard_move *move, const struct engine *engine)
{
    return engine->is_at_source ? move->from : move->to;
}

static int knows(const struct shard_move *move, const struct engine *engine, bool *ret_knows,
                 struct failure *reterr)
{
    redisReply *reply = NULL;
    int r;

    r = shard_node_ask(move->nodes, node_of(move, engine), 3,
                       (const char *[]){"COMMAND", "INFO", engine->command}, NULL, &reply, reterr);
    if (r == 0)
        *ret_knows = reply->type == REDIS_REPLY_ARRAY && reply->elements == 1 &&
                     reply->element[0]->type == REDIS_REPLY_ARRAY &&
                     reply->element[0]->elements > 0;
    freeReplyObject(reply);
    return r;
}

/* ---- jobs ---- */

struct jobs {
    bool is_active;
    char why[FAILURE_TEXT_SIZE / 2]; /* message of the newest job that has ended */
    uint64_t newest;
};

static struct sl_slice find_text(const redisReply *job, const char *name)
{
    for (size_t i = 0; job->type == REDIS_REPLY_ARRAY && i + 1 < job->elements; i += 2) {
        if (sl_slice_is(sl_reply_at(job, i), name))
            return sl_reply_at(job, i + 1);
    }
    return SL_SLICE_NONE;
}

static uint64_t find_number(const redisReply *job, const char *name)
{
    for (size_t i = 0; job->type == REDIS_REPLY_ARRAY && i + 1 < job->elements; i += 2) {
        if (sl_slice_is(sl_reply_at(job, i), name) &&
            job->element[i + 1]->type == REDIS_REPLY_INTEGER)
            return (uint64_t)job->element[i + 1]->integer;
    }
    return 0;
}

static bool is_final(struct sl_slice state)
{
    for (const char *const *final = final_states; *final; final++) {
        if (sl_slice_is(state, *final))
            return true;
    }
    return false;
}

static void take_job(const struct shard_move *move, const struct engine *engine,
                     const redisReply *job, struct jobs *jobs)
{
    const uint64_t created = find_number(job, "create_time");
    char range[32];

    snprintf(range, sizeof(range), "%s-%s", move->slot, move->slot);
    if (!sl_slice_is(find_text(job, engine->range), range) &&
        !sl_slice_is(find_text(job, engine->range), move->slot))
        return;
    if (!is_final(find_text(job, "state"))) {
        jobs->is_active = true;
    } else if (created >= jobs->newest) {
        const struct sl_slice why = find_text(job, engine->why);

        jobs->newest = created;
        snprintf(jobs->why, sizeof(jobs->why), "%.*s", SL_SLICE_ARG(why.data ? why : SL_SLICE("")));
    }
}

static int look(const struct shard_move *move, const struct engine *engine, struct jobs *ret_jobs,
                struct failure *reterr)
{
    struct jobs jobs = {.is_active = false};
    redisReply *reply = NULL;
    int words = 0, r;

    while (words < 4 && engine->status[words])
        words++;
    r = shard_node_ask(move->nodes, node_of(move, engine), words, engine->status, NULL, &reply,
                       reterr);
    if (r == 0)
        r = sl_reply_check_array(reply, 0, reterr);
    for (size_t i = 0; r == 0 && i < reply->elements; i++)
        take_job(move, engine, reply->element[i], &jobs);
    freeReplyObject(reply);
    if (r == 0)
        *ret_jobs = jobs;
    return r;
}

/* ---- the move ---- */

static int begin(const struct shard_move *move, const struct engine *engine, struct failure *reterr)
{
    if (engine->is_at_source)
        return SHARD_NODE_DO(move->nodes, move->from, reterr, "CLUSTER", "MIGRATESLOTS",
                             "SLOTSRANGE", move->slot, move->slot, "NODE", move->to->known.id);
    return SHARD_NODE_DO(move->nodes, move->to, reterr, "CLUSTER", "MIGRATION", "IMPORT",
                         move->slot, move->slot);
}

static int await_end(struct shard_move *move, const struct engine *engine, struct failure *reterr)
{
    struct jobs jobs = {.is_active = true};
    bool owns = false;
    int r = 0;

    while (r == 0 && jobs.is_active) {
        shard_nodes_pause();
        if (move->tell)
            move->tell(move);
        r = look(move, engine, &jobs, reterr);
    }
    /* the source may have ended its job a moment before the target has the slot */
    for (int ms = 0; r == 0 && !owns && ms < SETTLE_MS; ms += SHARD_NODES_PAUSE_MS) {
        r = shard_node_names(move->nodes, move->to, move->shard, move->to, &owns, reterr);
        if (r == 0 && !owns && jobs.why[0])
            break;
        if (r == 0 && !owns)
            shard_nodes_pause();
    }
    if (r == 0 && !owns)
        r = failure_set(reterr, -EIO, "%s has ended the migration of slot %s%s%s",
                        node_of(move, engine)->name, move->slot, jobs.why[0] ? ": " : "", jobs.why);
    return r;
}

static int move_by(struct shard_move *move, const struct engine *engine, struct failure *reterr)
{
    struct jobs jobs;
    int r = look(move, engine, &jobs, reterr);

    if (r == 0 && !jobs.is_active)
        r = begin(move, engine, reterr);
    return r == 0 ? await_end(move, engine, reterr) : r;
}

int shard_move_atomically(struct shard_move *move, bool *ret_is_done, struct failure *reterr)
{
    for (size_t i = 0; i < sizeof(engines) / sizeof(engines[0]); i++) {
        bool can = false;
        int r = knows(move, &engines[i], &can, reterr);

        if (r == 0 && can)
            r = move_by(move, &engines[i], reterr);
        if (r < 0 || can) {
            *ret_is_done = can;
            return r;
        }
    }
    *ret_is_done = false;
    return 0;
}
