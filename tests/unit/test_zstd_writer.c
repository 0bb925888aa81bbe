/* Frames with their own end are read by zstd, whatever their content and size. */
#include "gateway/delivery/zstd_writer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <zdict.h>
#include <zstd.h>

#include "base/alloc.h"
#include "tests/support/cmocka_all.h"

enum { ID = SL_DICTIONARY_ID_MIN, DICTIONARY_BYTES = 4096, SAMPLES = 400, MOST = 300000 };

static const size_t sizes[] = {1,    2,     100,   230,    255,    256, 257,
                               5000, 65791, 65792, 131072, 131073, MOST};

/* Content of each kind: repetitive, a single byte, incompressible. */
static char *content_of(unsigned kind)
{
    char *content = mem_alloc(MOST);

    assert_non_null(content);
    for (size_t i = 0; i < MOST; i++)
        content[i] = kind == 0   ? "a stream of events "[i % 19 + (i % 977 == 0)]
                     : kind == 1 ? 'a'
                                 : (char)rand();
    return content;
}

static struct dictionary dictionary_new(void)
{
    struct dictionary dictionary = {.known = {.id = ID}};
    const ZDICT_params_t params = {.dictID = ID};
    char samples[SAMPLES * 64], bytes[DICTIONARY_BYTES];
    size_t each[SAMPLES], at = 0, made;

    for (int i = 0; i < SAMPLES; i++) {
        each[i] = (size_t)snprintf(samples + at, 64, "a stream of events, number %d of %d",
                                   rand() % 999, i);
        at += each[i];
    }
    made = ZDICT_finalizeDictionary(bytes, sizeof(bytes), samples, 2000, samples, each, SAMPLES,
                                    params);
    assert_false(ZDICT_isError(made));
    assert_int_equal(dictionary_load(&dictionary, sl_slice(bytes, made), 3), 0);
    return dictionary;
}

static void check(struct sl_slice frame, const struct dictionary *dictionary, struct sl_slice said)
{
    ZSTD_DCtx *context = ZSTD_createDCtx();
    char *room = mem_alloc(said.size + 1);
    struct sl_slice bytes = dictionary ? dictionary->bytes : SL_SLICE_NONE;
    size_t size = ZSTD_decompress_usingDict(context, room, said.size + 1, frame.data, frame.size,
                                            bytes.data, bytes.size);

    assert_int_equal(ZSTD_getFrameContentSize(frame.data, frame.size), said.size);
    if (ZSTD_isError(size))
        fail_msg("%zu bytes: %s", said.size, ZSTD_getErrorName(size));
    assert_int_equal(size, said.size);
    assert_memory_equal(room, said.data, said.size);
    mem_free(room);
    ZSTD_freeDCtx(context);
}

static void try(struct zstd_writer *writer, const struct dictionary *dictionary,
                struct sl_slice plain)
{
    static const char tail[] = ",\"matching_rules\":[]}";
    struct buffer blocks = BUFFER_INIT, frame = BUFFER_INIT, said = BUFFER_INIT;
    unsigned char head[ZSTD_HEAD_MAX], last[ZSTD_LAST_HEAD];

    assert_int_equal(zstd_append_frame(writer, dictionary, plain, &frame), 0);
    check(buffer_slice(&frame), dictionary, plain);
    buffer_clear(&frame);

    assert_int_equal(zstd_append_open(writer, dictionary, plain, &blocks), 0);
    buffer_append_slice(&said, plain);
    buffer_append_str(&said, tail);
    buffer_append(&frame, head, zstd_open_head(dictionary, said.size, head));
    buffer_append_slice(&frame, buffer_slice(&blocks));
    zstd_last_head(sizeof(tail) - 1, last);
    buffer_append(&frame, last, sizeof(last));
    buffer_append_str(&frame, tail);
    check(buffer_slice(&frame), dictionary, buffer_slice(&said));
    buffer_done(&blocks);
    buffer_done(&frame);
    buffer_done(&said);
}

static void test_zstd_reads_them(void **state)
{
    struct dictionary dictionary = dictionary_new();
    struct zstd_writer *writer = zstd_writer_new(5);

    (void)state;
    assert_non_null(writer);
    for (unsigned kind = 0; kind < 3; kind++) {
        char *content = content_of(kind);

        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
            try(writer, NULL, sl_slice(content, sizes[i]));
            try(writer, &dictionary, sl_slice(content, sizes[i]));
        }
        mem_free(content);
    }
    dictionary_unload(&dictionary);
    try(writer, &dictionary,
        SL_SLICE("withdrawn: it refers to none")); /* and its bytes are freed */
    zstd_writer_free(writer);
}

/* A client with a dictionary decodes frames without one: zstd's own dictionaries leave repeated
 * offsets unchanged at the beginning of any frame. */
static void test_who_has_a_dictionary_reads_frames_without(void **state)
{
    struct dictionary dictionary = dictionary_new(), none = {.bytes = dictionary.bytes};
    struct zstd_writer *writer = zstd_writer_new(5);
    char *content = content_of(0);
    struct buffer frame = BUFFER_INIT;

    (void)state;
    assert_int_equal(zstd_append_frame(writer, &none, sl_slice(content, 5000), &frame), 0);
    assert_int_equal(ZSTD_getDictID_fromFrame(frame.data, frame.size), 0);
    check(buffer_slice(&frame), &dictionary, sl_slice(content, 5000));
    buffer_done(&frame);
    mem_free(content);
    zstd_writer_free(writer);
    dictionary_unload(&dictionary);
}

static void test_what_is_no_dictionary_is_refused(void **state)
{
    struct dictionary dictionary = dictionary_new(), other = {.known = {.id = ID + 1}};

    (void)state;
    assert_int_equal(dictionary_load(&other, dictionary.bytes, 3), -EINVAL);
    assert_int_equal(dictionary_load(&other, SL_SLICE("no dictionary"), 3), -EINVAL);
    assert_null(other.tables);
    dictionary_unload(&dictionary);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_zstd_reads_them),
        cmocka_unit_test(test_who_has_a_dictionary_reads_frames_without),
        cmocka_unit_test(test_what_is_no_dictionary_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
