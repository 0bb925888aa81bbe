/* reducer.c - finds a reduction that is attached to its event, or makes it and keeps it for some
 * time. */
#include "gateway/delivery/reducer.h"

#include <assert.h>
#include <errno.h>

#include "base/alloc.h"
#include "gateway/delivery/reduce.h"
#include "gateway/front/event_fields.h"
#include "gateway/intake/event_facts.h"

static void forget_oldest(struct reducer *reducer)
{
    event_unref(reducer->kept[reducer->first_kept]);
    reducer->first_kept = (reducer->first_kept + 1) % REDUCER_KEPT_MAX;
    reducer->kept_count--;
}

void reducer_done(struct reducer *reducer)
{
    while (reducer->kept_count > 0)
        forget_oldest(reducer);
    assert(reducer->bytes == 0);
    mem_free(reducer->kept);
    buffer_done(&reducer->scratch);
    buffer_done(&reducer->json);
    *reducer = (struct reducer){0};
}

/* Reductions that are owed use the same memory limit, so fewer others are kept then. */
static void keep(struct reducer *reducer, struct event *reduction)
{
    if (!reducer->kept)
        reducer->kept = mem_alloc(mem_array_size(REDUCER_KEPT_MAX, sizeof(struct event *)));
    if (!reducer->kept)
        return;
    if (reducer->kept_count == REDUCER_KEPT_MAX)
        forget_oldest(reducer);
    reducer->kept[(reducer->first_kept + reducer->kept_count++) % REDUCER_KEPT_MAX] =
        event_ref(reduction);
    while (reducer->kept_count > 0 && reducer->bytes > REDUCER_KEPT_BYTES)
        forget_oldest(reducer);
}

static struct event *make(struct reducer *reducer, struct event *event, uint64_t fields)
{
    struct event *reduction;
    int r;

    buffer_clear(&reducer->json);
    if (fields & EVENT_FIELDS_DIALECT)
        r = (*reducer->dialects)[event_fields_dialect(fields)]->render(
            event, event_fields_options(fields), &reducer->json);
    else
        r = reduce_json(event->json, event->kind == EVENT_DELETE, fields, &reducer->scratch,
                        &reducer->json);
    assert(r != -EBADMSG); /* the decoder has refused everything else */
    if (reducer->json.failed)
        r = -ENOMEM;
    reduction = r < 0 ? NULL : event_new_reduction(event, fields, buffer_slice(&reducer->json));
    event_buffer_trim(&reducer->scratch);
    event_buffer_trim(&reducer->json);
    return reduction;
}

uint64_t reducer_second(const struct reducer *reducer, const struct event *event, uint64_t fields)
{
    const struct dialect *dialect;
    uint64_t options;

    if (!(fields & EVENT_FIELDS_DIALECT) || event->fields)
        return 0;
    dialect = (*reducer->dialects)[event_fields_dialect(fields)];
    options = dialect->second ? dialect->second(event, event_fields_options(fields)) : 0;
    return options ? event_fields_of_dialect(event_fields_dialect(fields), options) : 0;
}

struct event *reducer_reduce(struct reducer *reducer, struct event *event, uint64_t fields)
{
    struct event *reduction;

    if (event->kind == EVENT_KEEPALIVE || event->fields ||
        (!event_is_for_clients(event) && !(fields & EVENT_FIELDS_DIALECT)))
        return event_ref(event);
    reduction = event_find_reduction(event, fields);
    if (reduction)
        return event_ref(reduction);
    reduction = make(reducer, event, fields);
    if (!reduction)
        return NULL;
    reducer->made++;
    event_charge(reduction, &reducer->bytes);
    keep(reducer, reduction);
    return reduction;
}
