#include "src/social/row_json.h"

#include <inttypes.h>

void sl_user_row_json(struct buffer *json, const struct sl_user_row *row)
{
    buffer_append_format(json, "{\"id\":\"%" PRIu64 "\",\"login\":", row->user.id);
    buffer_append_json_string(json, row->user.login);
    buffer_append_str(json, ",\"name\":");
    buffer_append_json_string(json, row->user.name);
    buffer_append_str(json, ",\"signup\":");
    buffer_append_json_string(json, row->signup);
    buffer_append_format(json,
                         ",\"followers\":%" PRIu64 ",\"following\":%" PRIu64 ",\"posts\":%" PRIu64,
                         row->followers, row->following, row->posts);
    buffer_append_str(json, row->profile.size > 0 ? "," : "");
    buffer_append_slice(json, row->profile);
    buffer_append_char(json, '}');
}

void sl_post_row_json(struct buffer *json, const struct sl_post_row *row)
{
    /* without the closing brace */
    buffer_append(json, row->json.data, row->json.size - 1);
    buffer_append_format(json, ",\"likes\":%" PRIu64 ",\"comments\":%" PRIu64 "}", row->likes,
                         row->comments);
}
