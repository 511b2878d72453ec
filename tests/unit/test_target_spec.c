/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "command/exit.h"
#include "target/spec/target_spec.h"
#include "base/cleanup.h"

static char folder[] = "/tmp/probing-test-XXXXXX";

static int enter_folder(void **state)
{
	(void)state;
	return !mkdtemp(folder) || chdir(folder);
}

static int leave_folder(void **state)
{
	(void)state;
	return chdir("/") || rmdir(folder);
}

static void write_file(const char *path, const void *data, size_t length)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_int_equal(fwrite(data, 1, length, file), length);
	assert_int_equal(fclose(file), 0);
}

static void test_forms(void **state)
{
	static const struct {
		const char *text;
		enum prb_spec_kind kind;
	} cases[] = {
		{"4242", PRB_SPEC_PID},
		{"4242-17", PRB_SPEC_PID},
		{"4242-", PRB_SPEC_NAME},
		{"0-17", PRB_SPEC_NAME},
		{"0", PRB_SPEC_PID},
		{"99999999999999999999", PRB_SPEC_PID},
		{"/train/", PRB_SPEC_REGEX},
		{"/a b/", PRB_SPEC_REGEX},
		{"/tmp/", PRB_SPEC_REGEX},
		{"//", PRB_SPEC_OTHER_FILE},
		{"/tmp", PRB_SPEC_OTHER_FILE},
		{"/nonexistent/file", PRB_SPEC_OTHER_FILE},
		{"train.py", PRB_SPEC_NAME},
		{"", PRB_SPEC_NAME},
		{"host:9922", PRB_SPEC_REMOTE},
		{"[::1]:9922", PRB_SPEC_REMOTE},
		{"host:", PRB_SPEC_NAME},
		{":9922", PRB_SPEC_NAME},
		{"host:port", PRB_SPEC_NAME},
		{"host:123456", PRB_SPEC_NAME},
		{"a/b:80", PRB_SPEC_OTHER_FILE},
		{"python -m http.server:80", PRB_SPEC_NAME},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (prb_spec_kind(cases[i].text) != cases[i].kind)
			fail_msg("'%s' is taken as %d", cases[i].text,
				 prb_spec_kind(cases[i].text));
}

static void test_files(void **state)
{
	Elf64_Ehdr header = {.e_type = ET_CORE};

	(void)state;
	memcpy(header.e_ident, ELFMAG, SELFMAG);
	write_file("core.1", &header, sizeof(header));
	assert_int_equal(prb_spec_kind("core.1"), PRB_SPEC_CORE);
	assert_int_equal(prb_spec_kind("./core.1"), PRB_SPEC_CORE);
	/* A file whose name is a number is opened by its path. */
	assert_int_equal(rename("core.1", "4242"), 0);
	assert_int_equal(prb_spec_kind("4242"), PRB_SPEC_PID);
	assert_int_equal(prb_spec_kind("./4242"), PRB_SPEC_CORE);
	write_file("4242", &header, 17);
	assert_int_equal(prb_spec_kind("./4242"), PRB_SPEC_OTHER_FILE);
	header.e_type = ET_DYN;
	write_file("4242", &header, sizeof(header));
	assert_int_equal(prb_spec_kind("./4242"), PRB_SPEC_OTHER_FILE);
	unlink("4242");

	write_file("train.py", "", 0);
	assert_int_equal(prb_spec_kind("train.py"), PRB_SPEC_NAME);
	assert_int_equal(prb_spec_kind("./train.py"), PRB_SPEC_OTHER_FILE);
	unlink("train.py");

	/* A pipe without a writer: opening it must not block. */
	assert_int_equal(mkfifo("pipe", 0600), 0);
	assert_int_equal(prb_spec_kind("./pipe"), PRB_SPEC_OTHER_FILE);
	unlink("pipe");
}

static void test_socket(void **state)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "agent"};
	prb_auto_close int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(prb_spec_kind("agent"), PRB_SPEC_SOCKET);
	unlink("agent");
}

static void expect_failure(const char *text, const char *exe, enum prb_exit code)
{
	struct prb_target *target = NULL;
	struct prb_error *err = prb_spec_open(text, exe, &target);

	assert_non_null(err);
	assert_null(target);
	assert_int_equal(prb_exit_code(err), code);
	prb_error_destroy(err);
}

static void test_refusals(void **state)
{
	(void)state;
	expect_failure("0", NULL, PRB_EXIT_USAGE);
	expect_failure("2147483648", NULL, PRB_EXIT_USAGE);
	expect_failure("99999999999999999999", NULL, PRB_EXIT_USAGE);
	expect_failure("host:1", NULL, PRB_EXIT_UNSUPPORTED);
	expect_failure(folder, NULL, PRB_EXIT_UNSUPPORTED);
	expect_failure("/(/", NULL, PRB_EXIT_USAGE);
	expect_failure("1", "/bin/true", PRB_EXIT_USAGE);
	expect_failure("no process is called like this", NULL, PRB_EXIT_NO_PROCESS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forms),
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_socket),
		cmocka_unit_test(test_refusals),
	};

	return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
