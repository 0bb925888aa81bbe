/* catch_up_job.c - jobs run one at a time, in order, each for its part of a turn. */
#include "gateway/delivery/catcher.h"

static struct list *list_of_job(struct catch_up *catch_up, const struct catch_up_job *job)
{
    return job->waits ? &catch_up->waiting_jobs : &catch_up->jobs;
}

void catch_up_enqueue_job(struct catch_up *catch_up, struct catch_up_job *job)
{
    job->waits = false;
    list_append(&catch_up->jobs, &job->node);
}

void catch_up_job_stop(struct catch_up *catch_up, struct catch_up_job *job)
{
    if (list_contains(&job->node))
        list_remove(list_of_job(catch_up, job), &job->node);
}

void catch_up_run_jobs(struct catch_up *catch_up, uint64_t until_us)
{
    struct list_node *first = list_first(&catch_up->jobs);
    struct catch_up_job *job;
    enum job_progress progress;

    if (!first)
        return;
    job = LIST_OWNER(first, struct catch_up_job, node);
    progress = job->work(job, catch_up->log, until_us);
    list_remove(&catch_up->jobs, first);
    job->waits = progress == JOB_WAITS_FOR_LOG;
    if (progress != JOB_IS_DONE)
        list_append(list_of_job(catch_up, job), first);
}

void catch_up_wake_jobs(struct catch_up *catch_up, uint32_t shard, uint64_t to,
                        const struct cached_batch *batch)
{
    LIST_EACH(&catch_up->waiting_jobs, node)
    {
        struct catch_up_job *job = LIST_OWNER(node, struct catch_up_job, node);

        job->batch(job, shard, to, batch);
        list_remove(&catch_up->waiting_jobs, node);
        catch_up_enqueue_job(catch_up, job);
    }
}
