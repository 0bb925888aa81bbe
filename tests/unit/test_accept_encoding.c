#include "gateway/http/accept_encoding.h"
#include "tests/support/cmocka_all.h"

enum { ALL = 1000 };

static void test_every_shape(void **state)
{
    static const struct {
        const char *lines[2];
        int gzip, identity;
        bool prefers_gzip;
    } cases[] = {
        {{NULL}, 0, ALL, false},
        {{""}, 0, ALL, false},
        {{" , ,"}, 0, ALL, false},
        {{"gzip"}, ALL, ALL, true},
        {{"GZip"}, ALL, ALL, true},
        {{"x-gzip"}, ALL, ALL, true},
        {{"gzipped"}, 0, ALL, false},
        {{"br, zstd"}, 0, ALL, false},
        {{"br", "gzip"}, ALL, ALL, true},
        {{"gzip, deflate, br, zstd"}, ALL, ALL, true},
        {{"gzip;q=0.001"}, 1, ALL, true},
        {{"gzip ; q=0.5"}, 500, ALL, true},
        {{"gzip;Q=1.000"}, ALL, ALL, true},
        {{"gzip;q=0"}, 0, ALL, false},
        {{"gzip;q=0.000"}, 0, ALL, false},
        {{"gzip;q=1.001"}, 0, ALL, false},
        {{"gzip;q=2"}, 0, ALL, false},
        {{"gzip;q="}, 0, ALL, false},
        {{"gzip;q=.5"}, 0, ALL, false},
        {{"gzip;q=0.5555"}, 0, ALL, false},
        {{"gzip;q=-1"}, 0, ALL, false},
        {{"gzip;level=1"}, 0, ALL, false},
        {{"gzip;q=0.5;q=0.7"}, 0, ALL, false},
        {{"gzip;q=0.3, gzip;q=0.7"}, 700, ALL, true},
        {{"gzip;q=0, x-gzip"}, ALL, ALL, true},
        {{"*"}, ALL, ALL, true},
        {{"*;q=0.4"}, 400, ALL, true},
        {{"*;q=0"}, 0, 0, false},
        {{"*, gzip;q=0"}, 0, ALL, false},
        {{"gzip, *;q=0"}, ALL, 0, true},
        {{"identity"}, 0, ALL, false},
        {{"identity;q=0"}, 0, 0, false},
        {{"identity;q=0, gzip"}, ALL, 0, true},
        {{"identity;q=0", "*;q=0.1"}, 100, 0, true},
        {{"*;q=0, identity;q=0.1"}, 0, 100, false},
        {{"gzip;q=0.5, identity"}, 500, ALL, false},
        {{"gzip;q=0.5, identity;q=0.5"}, 500, 500, true},
        {{"gzip;q=0.5, identity;q=0.4"}, 500, 400, true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct http_list list = {
            {sl_slice_str(cases[i].lines[0]), sl_slice_str(cases[i].lines[1])}};
        const struct accept_encoding accept = accept_encoding_read(&list);

        if (accept.gzip != cases[i].gzip || accept.identity != cases[i].identity ||
            accept_encoding_prefers(&accept, accept.gzip) != cases[i].prefers_gzip)
            fail_msg("%s: gzip %d, identity %d", cases[i].lines[0], accept.gzip, accept.identity);
    }
}

static void test_zstd(void **state)
{
    static const struct {
        const char *line;
        int gzip, zstd;
    } cases[] = {
        {"zstd", 0, ALL},
        {"ZSTD;q=0.5", 0, 500},
        {"zstandard", 0, 0},
        {"gzip, deflate, br, zstd", ALL, ALL},
        {"gzip;q=0.1, zstd;q=0.2", 100, 200},
        {"*", ALL, ALL},
        {"zstd;q=0, *", ALL, 0},
        {"*;q=0, zstd;q=0.001", 0, 1},
        {"zstd;q=1.5", 0, 0},
        {"zstd;q=0.2, zstd;q=0.7", 0, 700},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct http_list list = {{sl_slice_str(cases[i].line)}};
        const struct accept_encoding accept = accept_encoding_read(&list);

        if (accept.gzip != cases[i].gzip || accept.zstd != cases[i].zstd)
            fail_msg("%s: gzip %d, zstd %d", cases[i].line, accept.gzip, accept.zstd);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_shape),
                                       cmocka_unit_test(test_zstd)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
