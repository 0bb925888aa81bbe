#include "src/call/list_build.h"

#include "src/model/id.h"
#include "src/model/id_check.h"

static int build(struct sl_call *call, const char *list, const struct sl_meta *meta,
                 uint64_t reader, uint32_t shard, struct sl_slice owner, const struct sl_page *page,
                 struct sl_slice archived, struct failure *reterr)
{
    int r;

    r = sl_read_check_reader(reader, meta, reterr);
    if (r == 0)
        r = sl_read_check_page(page, reterr);
    if (r < 0)
        return r;
    sl_read_begin(call, &sl_script_read_list, shard, meta, reader);
    sl_call_add_str(call, list);
    sl_call_add(call, owner);
    sl_read_add_page(call, page);
    if (page->is_bare || archived.data)
        sl_call_add_str(call, page->is_bare ? "1" : "");
    if (archived.data)
        sl_call_add(call, archived);
    return sl_call_finish(call, reterr);
}

int sl_list_of_user_build(struct sl_call *call, const char *list, const struct sl_meta *meta,
                          uint64_t reader, const struct sl_user_ref *user,
                          const struct sl_page *page, struct failure *reterr)
{
    struct sl_write_user owner;
    int r;

    r = sl_write_user_init(&owner, user, meta, reterr);
    return r < 0 ? r
                 : build(call, list, meta, reader, owner.shard, owner.slice, page, SL_SLICE_NONE,
                         reterr);
}

int sl_list_of_post_build(struct sl_call *call, const char *list, const struct sl_meta *meta,
                          uint64_t reader, uint64_t post, const struct sl_page *page,
                          struct sl_slice archived, struct failure *reterr)
{
    char owner[SL_ID_TEXT_SIZE];
    int r;

    r = sl_id_check(post, meta, reterr);
    if (r < 0)
        return r;
    return build(call, list, meta, reader, sl_id_shard(post),
                 sl_slice_str(sl_id_print(post, owner)), page, archived, reterr);
}
