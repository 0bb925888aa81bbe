#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gateway/config/config_files.h"
#include "tests/support/certificate.h"
#include "tests/support/cmocka_all.h"

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    fclose(file);
}

static void expect(const char *arguments, const char *message)
{
    char *argv[8] = {(char[]){"sluiced"}};
    char *const environment[] = {NULL};
    struct config *config = NULL;
    struct failure failure = {""};
    char *line = strdup(arguments), *rest = NULL;
    int argc = 1, r;

    for (char *word = strtok_r(line, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        argv[argc++] = word;
    assert_int_equal(config_read(argc, argv, environment, &config, &failure), 0);
    r = config_check_files(config, &failure);
    assert_string_equal(failure.text, message);
    assert_int_equal(r < 0, message[0] != '\0');
    config_free(config);
    free(line);
}

static void test_good_files_pass(void **state)
{
    (void)state;
    expect("", "");
    expect("--jwt-secret-file secret --tls-cert cert.pem --tls-key key.pem", "");
}

static void test_missing_files_are_named_with_their_option(void **state)
{
    (void)state;
    expect("--jwt-secret-file none",
           "--jwt-secret-file: cannot read 'none': No such file or directory");
    expect("--jwt-public-key none",
           "--jwt-public-key: cannot read 'none': No such file or directory");
    expect("--tls-cert none --tls-key key.pem",
           "--tls-cert: cannot read 'none': No such file or directory");
    expect("--tls-cert cert.pem --tls-key none",
           "--tls-key: cannot read 'none': No such file or directory");
}

static void test_files_of_another_kind_are_refused(void **state)
{
    (void)state;
    expect("--tls-cert secret --tls-key key.pem",
           "--tls-cert: 'secret' has no certificate in PEM");
    expect("--tls-cert cert.pem --tls-key cert.pem",
           "--tls-key: 'cert.pem' has no private key in PEM without a password");
    expect("--tls-cert cert.pem --tls-key locked.pem",
           "--tls-key: 'locked.pem' has no private key in PEM without a password");
}

static void test_key_of_another_certificate_is_refused(void **state)
{
    (void)state;
    expect("--tls-cert cert.pem --tls-key other.pem",
           "--tls-key: 'other.pem' is not the key of the certificate in 'cert.pem'");
}

static int make_files(void **state)
{
    static char folder[] = "/tmp/sluice-test-files-XXXXXX";

    *state = mkdtemp(folder);
    if (!*state || chdir(folder) < 0)
        return -1;
    write_text("secret", "a secret of more than thirty-two bytes, for tests\n");
    certificate_write_pair(CERTIFICATE_EC, "localhost", "cert.pem", "key.pem");
    EVP_PKEY_free(certificate_write_key("other.pem", CERTIFICATE_EC, NULL));
    EVP_PKEY_free(certificate_write_key("locked.pem", CERTIFICATE_EC, "password"));
    return 0;
}

static int remove_files(void **state)
{
    static const char *const names[] = {"secret", "key.pem", "cert.pem", "other.pem", "locked.pem"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        unlink(names[i]);
    return rmdir(*state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good_files_pass),
        cmocka_unit_test(test_missing_files_are_named_with_their_option),
        cmocka_unit_test(test_files_of_another_kind_are_refused),
        cmocka_unit_test(test_key_of_another_certificate_is_refused),
    };

    return cmocka_run_group_tests(tests, make_files, remove_files);
}
