#include "src/model/text.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include <unicode/uchar.h>
#include <unicode/utf8.h>

static int check(struct sl_slice text, const char *what, size_t max_size, bool is_line,
                 struct failure *reterr)
{
    const uint8_t *bytes = (const uint8_t *)text.data;
    size_t at = 0;

    if (text.size == 0)
        return failure_set(reterr, -EINVAL, "%s is empty", what);
    if (text.size > max_size)
        return failure_set(reterr, -EINVAL, "%s is longer than %zu bytes", what, max_size);
    while (at < text.size) {
        UChar32 c;

        U8_NEXT(bytes, at, text.size, c);
        if (c < 0)
            return failure_set(reterr, -EINVAL, "%s is not valid UTF-8", what);
        if (c == 0)
            return failure_set(reterr, -EINVAL, "%s holds a NUL character", what);
        if (is_line && u_charType(c) == U_CONTROL_CHAR)
            return failure_set(reterr, -EINVAL, "%s holds a control character", what);
    }
    return 0;
}

int sl_text_check(struct sl_slice text, const char *what, size_t max_size, struct failure *reterr)
{
    return check(text, what, max_size, false, reterr);
}

int sl_text_check_line(struct sl_slice text, const char *what, size_t max_size,
                       struct failure *reterr)
{
    return check(text, what, max_size, true, reterr);
}

/* The length of the scheme, http:// or https:// in any letter case like in browsers; 0: neither. */
static size_t link_scheme(struct sl_slice text)
{
    static const char *const schemes[] = {"http://", "https://"};

    for (size_t i = 0; i < 2; i++) {
        const size_t size = strlen(schemes[i]);

        if (text.size > size && strncasecmp(text.data, schemes[i], size) == 0)
            return size;
    }
    return 0;
}

int sl_text_check_link(struct sl_slice text, const char *what, struct failure *reterr)
{
    const size_t scheme = link_scheme(text);
    int r;

    r = sl_text_check_line(text, what, SL_LINK_MAX, reterr);
    if (r < 0)
        return r;
    if (scheme == 0 || text.data[scheme] == '/')
        return failure_set(reterr, -EINVAL, "%s is not http:// or https://, with a host", what);
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] == ' ' || text.data[i] == '\\')
            return failure_set(reterr, -EINVAL, "%s holds a space or a backslash", what);
    }
    return 0;
}
