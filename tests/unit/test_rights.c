/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Opens files with the rights of others, below their root, and restores our own rights. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/str.h"
#include "target/proc/rights.h"
#include "tests/unit/elf_helpers.h"
#include "tests/unit/skip.h"

enum { USER = 2001, GROUP = 2345 };

static const char status[] = "Name:\tx\nUid:\t1\t2\t3\t2001\nGid:\t4\t5\t6\t2002\nFDSize:\t64\n"
			     "Groups:\t7 2345 \nNStgid:\t1\n";

static void test_parse(void **state)
{
	struct prb_rights rights;

	(void)state;
	assert_ok(prb_rights_parse(status, &rights));
	assert_int_equal(rights.uid, 2001);
	assert_int_equal(rights.gid, 2002);
	assert_int_equal(rights.group_count, 2);
	assert_int_equal(rights.groups[0], 7);
	assert_int_equal(rights.groups[1], GROUP);
	prb_rights_deinit(&rights);
	assert_ok(prb_rights_parse("Uid:\t1 1 1 1\nGid:\t1 1 1 1\nGroups:\t\nX:\t3\n", &rights));
	assert_int_equal(rights.group_count, 0);
	prb_rights_deinit(&rights);
	assert_error(prb_rights_parse("Uid:\t1 1 1\n", &rights), PRB_ERROR_BAD_DATA);
}

/* The kernel's view of the rights of our thread; the caller frees. */
static char *rights_of(const char *task)
{
	static const char *const names[] = {"Uid:", "Gid:", "Groups:", "Cap"};
	prb_auto_free char *path = prb_format("/proc/%s/status", task);
	prb_auto_fclose FILE *file = fopen(path, "re");
	prb_auto_str struct prb_str text = {};
	char line[4096];

	assert_non_null(file);
	while (fgets(line, sizeof(line), file))
		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
			if (!strncmp(line, names[i], strlen(names[i])))
				prb_str_puts(&text, line);
	return prb_str_take(&text);
}

static void test_only_this_thread_and_back_again(void **state)
{
	gid_t group = GROUP;
	struct prb_rights user = {.uid = USER, .gid = USER, .groups = &group, .group_count = 1};
	prb_auto_free char *before = rights_of("thread-self");
	struct prb_rights_saved saved;
	int signal_number = 0;

	(void)state;
	if (geteuid())
		SKIP("needs root");
	assert_int_equal(prctl(PR_SET_PDEATHSIG, SIGUSR2), 0);
	assert_ok(prb_rights_take(&user, &saved));
	assert_true(saved.complete);

	prb_auto_free char *taken = rights_of("thread-self");
	assert_non_null(strstr(taken, "Uid:\t0\t0\t0\t2001\nGid:\t0\t0\t0\t2001\n"));
	assert_non_null(strstr(taken, "Groups:\t2345 \n"));
	assert_non_null(strstr(taken, "CapEff:\t0000000000000000\n"));

	prb_rights_restore(&saved);
	prb_auto_free char *after = rights_of("thread-self");
	assert_string_equal(before, after);
	assert_int_equal(prctl(PR_GET_DUMPABLE), 1);
	assert_int_equal(prctl(PR_GET_PDEATHSIG, &signal_number), 0);
	assert_int_equal(signal_number, SIGUSR2);
	prctl(PR_SET_PDEATHSIG, 0);
}

struct other {
	pthread_barrier_t taken, looked;
	char *rights;
};

static void *other_thread(void *context)
{
	struct other *other = context;

	pthread_barrier_wait(&other->taken);
	other->rights = rights_of("thread-self");
	pthread_barrier_wait(&other->looked);
	return NULL;
}

static void test_other_threads_keep_theirs(void **state)
{
	struct prb_rights user = {.uid = USER, .gid = USER};
	prb_auto_free char *before = rights_of("thread-self");
	struct prb_rights_saved saved;
	struct other other = {};
	pthread_t thread;

	(void)state;
	if (geteuid())
		SKIP("needs root");
	pthread_barrier_init(&other.taken, NULL, 2);
	pthread_barrier_init(&other.looked, NULL, 2);
	assert_int_equal(pthread_create(&thread, NULL, other_thread, &other), 0);
	assert_ok(prb_rights_take(&user, &saved));
	pthread_barrier_wait(&other.taken);
	pthread_barrier_wait(&other.looked);
	prb_rights_restore(&saved);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_string_equal(before, other.rights);
	free(other.rights);
}

static struct prb_error *open_as(uid_t uid, const char *name)
{
	struct prb_rights user = {.uid = uid, .gid = uid};
	prb_auto_free char *path = in_folder(name);
	prb_auto_close int fd = -1;
	struct prb_error *err = prb_rights_open(&user, -1, path, &fd);

	assert_true((fd >= 0) == !err);
	return err;
}

static void test_open_as_user(void **state)
{
	(void)state;
	if (geteuid())
		SKIP("needs root");
	assert_int_equal(chmod(folder, 0755), 0);
	assert_true(run("echo 1 >secret; chmod 600 secret; echo 1 >open; chmod 644 open; "
			"echo 1 >own; chown 2001 own; chmod 400 own"));
	assert_ok(open_as(0, "secret"));
	assert_error(open_as(USER, "secret"), PRB_ERROR_PERMISSION);
	assert_ok(open_as(USER, "open"));
	assert_ok(open_as(USER, "own"));
	assert_error(open_as(USER + 1, "own"), PRB_ERROR_PERMISSION);
	assert_error(open_as(USER, "none"), PRB_ERROR_NOT_FOUND);
}

/* Without the right to change users, as in a container that was given few capabilities. */
static void test_open_without_capabilities(void **state)
{
	int result;
	pid_t pid;

	(void)state;
	if (geteuid())
		SKIP("needs root");
	assert_true(run("echo 1 >secret; chmod 600 secret; echo 1 >open; chmod 644 open; "
			"echo 1 >own; chown 2001 own; chmod 644 own"));
	pid = fork();
	if (!pid) {
		prctl(PR_CAPBSET_DROP, 6 /* CAP_SETGID */);
		prctl(PR_CAPBSET_DROP, 7 /* CAP_SETUID */);
		execl("/proc/self/exe", "test_rights", "--without", folder, NULL);
		_exit(99);
	}
	assert_int_equal(waitpid(pid, &result, 0), pid);
	assert_int_equal(result, 0);
}

static int without_capabilities(void)
{
	prb_auto_error struct prb_error *secret = open_as(USER, "secret"),
					*open = open_as(USER, "open"), *own = open_as(USER, "own");

	/* Root might reach a world-readable file through a folder of root alone. */
	return !(secret && open && !own);
}

static void make_tree(void)
{
	assert_true(run("rm -rf root; mkdir -p root/a/b; echo inside >root/a/file; "
			"echo outside >outside; mkfifo root/fifo; ln -s /a/file root/absolute; "
			"ln -s ../../../../a/file root/a/b/up; ln -s \"$PWD/outside\" root/out; "
			"ln -s loop root/loop; ln -s a root/folder; ln -s /proc/self/fd root/fds"));
}

static struct prb_error *open_below(const char *path, char text[16])
{
	prb_auto_free char *name = in_folder("root");
	prb_auto_close int root = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	prb_auto_close int fd = -1;

	PRB_TRY(prb_file_open(root, path, &fd));
	memset(text, 0, 16);
	assert_true(read(fd, text, 15) > 0);
	assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
	return NULL;
}

static void check_tree(void)
{
	static const char *const inside[] = {"a/file",		"/a/file", "absolute",
					     "//a/./b/../file", "a/b/up",  "../../a/file",
					     "folder/file"};
	char text[16];

	for (size_t i = 0; i < sizeof(inside) / sizeof(inside[0]); i++) {
		assert_ok(open_below(inside[i], text));
		assert_string_equal(text, "inside\n");
	}
	assert_error(open_below("out", text), PRB_ERROR_NOT_FOUND);
	assert_error(open_below("a/file/x", text), PRB_ERROR_NOT_FOUND);
	assert_error(open_below("fds/0", text), PRB_ERROR_NOT_FOUND);
	assert_error(open_below("loop", text), PRB_ERROR_OS);
	assert_error(open_below("fifo", text), PRB_ERROR_UNSUPPORTED);
	assert_error(open_below("a", text), PRB_ERROR_UNSUPPORTED);
	assert_error(open_below("", text), PRB_ERROR_NOT_FOUND);
}

static void test_below_a_root(void **state)
{
	(void)state;
	make_tree();
	check_tree();
}

/* Like old kernels, and filters that do not know the call. */
static void refuse_openat2(int answer)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 437, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)answer),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = {.len = sizeof(code) / sizeof(code[0]), .filter = code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, 2, &filter))
		_exit(98);
}

static void test_below_a_root_without_openat2(void **state)
{
	static const int answers[] = {ENOSYS, EPERM};

	(void)state;
	make_tree();
	for (size_t i = 0; i < 2; i++) {
		int result;
		pid_t pid = fork();

		if (!pid) {
			refuse_openat2(answers[i]);
			check_tree();
			_exit(0);
		}
		assert_int_equal(waitpid(pid, &result, 0), pid);
		assert_int_equal(result, 0);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse),
		cmocka_unit_test(test_only_this_thread_and_back_again),
		cmocka_unit_test(test_other_threads_keep_theirs),
		cmocka_unit_test(test_open_as_user),
		cmocka_unit_test(test_open_without_capabilities),
		cmocka_unit_test(test_below_a_root),
		cmocka_unit_test(test_below_a_root_without_openat2),
	};

	if (argc == 3 && !strcmp(argv[1], "--without")) {
		snprintf(folder, sizeof(folder), "%s", argv[2]);
		return without_capabilities();
	}
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
