/* gateway/dialects/twitter2_connections.h - lists and ends the connections of a token's subject, as
 * X's API 2 does.
 *
 *     GET    /2/connections?status=&endpoints=&max_results=&pagination_token=&connection.fields=
 *     DELETE /2/connections                  {"uuids":["..."]}
 *     DELETE /2/connections/all
 *     DELETE /2/connections/{endpoint_id} */
#pragma once

#include "gateway/front/dialect_connections.h"

#define TWITTER2_CONNECTIONS "/2/connections"

extern const struct dialect_connections twitter2_connections;
