/* form.c - splits at `&` and `=`, decodes each part once, and stores the value by the parameter's
 * index.
 *
 * All decoded texts are in one block, which is no larger than the input and is freed with the
 * form. The first error ends the reading and is reported. Names are searched in the caller's short
 * list. */
#include "gateway/http/form.h"

#include <errno.h>

#include "base/alloc.h"
#include "base/utf8.h"

/* More than any valid request has; limits the work that a client can cause. */
enum { MAX_PARAMETERS = 64 };

enum text_fault { TEXT_OK, TEXT_BAD_ESCAPE, TEXT_NOT_UTF8, TEXT_HAS_NUL };

static const char *const fault_messages[] = {
    [TEXT_BAD_ESCAPE] = "a % must be followed by two hexadecimal digits",
    [TEXT_NOT_UTF8] = "not valid UTF-8",
    [TEXT_HAS_NUL] = "U+0000 is not allowed",
};

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Writes the decoded text and a NUL to `room`; it is never longer than `text` and a NUL. */
static enum text_fault decode(struct sl_slice text, char *room, struct sl_slice *ret_decoded)
{
    char *out = room;

    for (size_t i = 0; i < text.size; i++) {
        char c = text.data[i];

        if (c == '+') {
            c = ' ';
        } else if (c == '%') {
            int high = text.size - i > 2 ? hex_value(text.data[i + 1]) : -1;
            int low = text.size - i > 2 ? hex_value(text.data[i + 2]) : -1;

            if (high < 0 || low < 0)
                return TEXT_BAD_ESCAPE;
            c = (char)(high << 4 | low);
            i += 2;
        }
        *out++ = c;
    }
    *out = '\0';
    *ret_decoded = sl_slice(room, (size_t)(out - room));
    if (memchr(room, '\0', ret_decoded->size))
        return TEXT_HAS_NUL;
    return utf8_is_valid(*ret_decoded) ? TEXT_OK : TEXT_NOT_UTF8;
}

static int find(const struct form *form, struct sl_slice name)
{
    for (unsigned i = 0; i < form->count; i++) {
        if (sl_slice_is(name, form->names[i]))
            return (int)i;
    }
    return -1;
}

/* `room` needs one byte more than `pair` has, see decode(): the NUL of the name replaces the
 * "=". */
static int read_pair(struct form *form, struct sl_slice pair, char *room,
                     struct http_refusal *refusal)
{
    const char *equals = memchr(pair.data, '=', pair.size);
    size_t name_size = equals ? (size_t)(equals - pair.data) : pair.size;
    struct sl_slice raw_value = equals ? sl_slice_from(pair, name_size + 1) : SL_SLICE("");
    struct sl_slice name, value;
    enum text_fault fault;
    int index;

    fault = decode(sl_slice(pair.data, name_size), room, &name);
    if (fault != TEXT_OK)
        return http_refuse(refusal, 400, "bad_encoding", NULL, "the name of a parameter: %s",
                           fault_messages[fault]);
    index = find(form, name);
    if (index < 0)
        return http_refuse(refusal, 400, "unknown_parameter", name.data,
                           "there is no such parameter");
    if (form->values[index].data)
        return http_refuse(refusal, 400, "repeated_parameter", name.data,
                           "the parameter is given more than once");
    fault = decode(raw_value, room + name_size + (equals ? 1 : 0), &value);
    if (fault != TEXT_OK)
        return http_refuse(refusal, 400, "bad_encoding", name.data, "%s", fault_messages[fault]);
    form->values[index] = value;
    return 0;
}

int form_read(struct form *form, const struct sl_slice *texts, unsigned text_count,
              struct http_refusal *refusal)
{
    struct http_refusal ignored;
    size_t memory_size = 0;
    unsigned count = 0;
    char *room;
    int r = 0;

    for (unsigned i = 0; i < form->count; i++)
        form->values[i] = SL_SLICE_NONE;
    for (unsigned i = 0; i < text_count; i++)
        memory_size += texts[i].size + 1;
    form->memory = room = mem_alloc(memory_size);
    if (!room)
        return -ENOMEM;
    for (unsigned i = 0; i < text_count; i++) {
        struct sl_slice rest = texts[i];

        while (rest.size > 0) {
            const char *end = memchr(rest.data, '&', rest.size);
            struct sl_slice pair = sl_slice(rest.data, end ? (size_t)(end - rest.data) : rest.size);

            if (++count > MAX_PARAMETERS)
                return r < 0 ? r
                             : http_refuse(refusal, 400, "bad_request", NULL,
                                           "there are more than %d parameters", MAX_PARAMETERS);
            if (pair.size > 0 && read_pair(form, pair, room, r < 0 ? &ignored : refusal) < 0)
                r = -EPROTO;
            room += pair.size + 1;
            rest = sl_slice_from(rest, pair.size + (end ? 1 : 0));
        }
    }
    return r;
}

void form_done(struct form *form)
{
    mem_free(form->memory);
    form->memory = NULL;
}
