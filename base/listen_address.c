#include "base/listen_address.h"

#include <errno.h>
#include <string.h>

#include "base/log.h"

int listen_address_parse(struct sl_slice text, struct listen_address *ret_address,
                         struct failure *reterr)
{
    const char *comma = memchr(text.data, ',', text.size), *colon;
    struct sl_slice whole = text, host, port;
    struct listen_address address;
    char room[LOG_QUOTE_SIZE];
    uint32_t number = 0;

    if (comma)
        text.size = (size_t)(comma - text.data);
    if (comma && !sl_slice_is(sl_slice_from(whole, text.size), ",proxy"))
        return failure_set(reterr, -EINVAL, "only ,proxy may stand behind the port, not as in %s",
                           log_quote(whole, room));
    colon = memrchr(text.data, ':', text.size);
    if (!colon)
        return failure_set(reterr, -EINVAL, "%s has no port", log_quote(text, room));
    host = sl_slice(text.data, (size_t)(colon - text.data));
    port = sl_slice_from(text, host.size + 1);

    for (size_t i = 0; i < port.size && number <= UINT16_MAX; i++)
        number = port.data[i] >= '0' && port.data[i] <= '9'
                     ? number * 10 + (uint32_t)(port.data[i] - '0')
                     : UINT32_MAX;
    if (port.size == 0 || number > UINT16_MAX)
        return failure_set(reterr, -EINVAL, "the port in %s is not a number from 0 to 65535",
                           log_quote(text, room));

    if (host.size >= 2 && host.data[0] == '[' && host.data[host.size - 1] == ']')
        host = sl_slice(host.data + 1, host.size - 2);
    else if (memchr(host.data, ':', host.size))
        return failure_set(reterr, -EINVAL, "the IPv6 address in %s needs brackets, as in [::1]:80",
                           log_quote(text, room));
    if (host.size == 0 || host.size >= sizeof(address.host))
        return failure_set(reterr, -EINVAL, "the host in %s is %s", log_quote(text, room),
                           host.size == 0 ? "empty; * means every address" : "too long");

    memset(&address, 0, sizeof(address));
    if (!sl_slice_is(host, "*"))
        memcpy(address.host, host.data, host.size);
    address.port = (uint16_t)number;
    address.with_proxy = comma != NULL;
    *ret_address = address;
    return 0;
}
