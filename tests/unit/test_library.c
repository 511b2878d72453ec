/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The files that may be loaded, the order of candidate threads, and libraries already loaded. */
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/syscall.h>

#include "base/cleanup.h"
#include "injector/inject_private.h"
#include "tests/unit/sleeper.h"

#ifdef __x86_64__
enum { MACHINE = EM_X86_64, OTHER_MACHINE = EM_AARCH64 };
#else
enum { MACHINE = EM_AARCH64, OTHER_MACHINE = EM_X86_64 };
#endif

/* The file of the C library. */
static const char *libc_path(void)
{
	Dl_info info;

	assert_int_not_equal(dladdr((void *)(uintptr_t)dlsym(RTLD_DEFAULT, "getpid"), &info), 0);
	return info.dli_fname;
}

static void assert_refused(const char *path, const char *symbol, uint16_t machine, const char *word)
{
	struct prb_library library = {.fd = -1};
	struct prb_error *err = prb_library_open(path, symbol, machine, &library);

	assert_non_null(err);
	assert_int_equal(err->code, PRB_ERROR_USAGE);
	assert_non_null(strstr(err->message, word));
	prb_error_destroy(err);
	prb_library_deinit(&library);
}

/* Makes a file of these bytes. */
static void make_file(char *path, const void *bytes, size_t length)
{
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, length), length);
	close(fd);
}

static void test_files(void **state)
{
	struct prb_library library = {.fd = -1};
	Elf64_Ehdr header = {.e_ident = ELFMAG, .e_type = ET_EXEC, .e_machine = MACHINE};
	char text[] = "/tmp/probing-test-XXXXXX", program[] = "/tmp/probing-test-XXXXXX",
	     narrow[] = "/tmp/probing-test-XXXXXX";

	(void)state;
	ok(prb_library_open(libc_path(), "getpid", MACHINE, &library));
	assert_non_null(library.elf);
	assert_string_equal(library.name, strrchr(library.path, '/') + 1);
	assert_int_not_equal(*library.build_id, 0);
	prb_library_deinit(&library);

	assert_refused(libc_path(), "no_such_function", MACHINE, "exports no function");
	assert_refused(libc_path(), "environ", MACHINE, "exports no function");
	assert_refused(libc_path(), NULL, OTHER_MACHINE, "not a shared library");
	assert_refused("/nowhere/at/all.so", NULL, MACHINE, "cannot open");
	assert_refused("/tmp", NULL, MACHINE, "not a regular file");
	assert_refused("/dev/null", NULL, MACHINE, "not a regular file");

	make_file(text, "#!/bin/sh\n", 10);
	assert_refused(text, NULL, MACHINE, "not a shared library");
	header.e_ident[EI_CLASS] = ELFCLASS64;
	make_file(program, &header, sizeof(header));
	assert_refused(program, NULL, MACHINE, "not a shared library");
	header.e_type = ET_DYN;
	header.e_ident[EI_CLASS] = ELFCLASS32;
	make_file(narrow, &header, sizeof(header));
	assert_refused(narrow, NULL, MACHINE, "not a shared library");
	unlink(text);
	unlink(program);
	unlink(narrow);
}

static void in_pause(void *unused)
{
	(void)unused;
	pause();
}

static void test_loaded(void **state)
{
	struct child child;
	struct prb_modules *modules;
	struct prb_library library = {.fd = -1};

	(void)state;
	start(&child, in_pause, NULL);
	await(&child, 'S', NULL);
	ok(prb_modules_create(child.target, &modules));
	ok(prb_library_open(libc_path(), NULL, MACHINE, &library));
	assert_true(prb_library_loaded(&library, modules));
	library.build_id = "0123456789abcdef"; /* another one of the same name */
	assert_false(prb_library_loaded(&library, modules));
	prb_library_deinit(&library);
	prb_modules_destroy(modules);
	finish(&child);
}

static void *wait_for_events(void *fd)
{
	struct epoll_event event;

	epoll_wait(*(int *)fd, &event, 1, -1);
	return NULL;
}

static void *run_on(void *unused)
{
	for (;;)
		;
	return unused;
}

static void *read_pipe(void *fd)
{
	char byte;

	return read(*(int *)fd, &byte, 1) ? fd : NULL;
}

/* The threads of sleepers(), the best candidates first. */
static void sleepers(void *unused)
{
	static int pipe_fds[2], epoll_fd;
	pthread_t thread;

	(void)unused;
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (pipe(pipe_fds))
		_exit(98);
	pthread_create(&thread, NULL, wait_for_events, &epoll_fd);
	pthread_create(&thread, NULL, run_on, NULL);
	pthread_create(&thread, NULL, read_pipe, &pipe_fds[0]);
	epoll_wait(epoll_fd, &(struct epoll_event){}, 1, -1);
}

/* What the candidates do, in their order. */
static void describe_order(struct child *child, struct prb_candidates *candidates,
			   struct prb_str *order)
{
	ok(prb_candidates_find(child->target, candidates));
	for (size_t i = 0; i < candidates->list.count; i++) {
		struct prb_task task;
		struct prb_error *err =
			prb_task_read(child->target, candidates->list.items[i].tid, &task);
		const char *name =
			err ? NULL : prb_syscall_name(MACHINE, task.in_syscall ? task.syscall : -1);

		prb_error_destroy(err);
		prb_str_printf(order, "%s ", name ? name : "running");
	}
}

static void test_order(void **state)
{
#ifdef SYS_epoll_wait
	static const char wanted[] = "read running epoll_wait epoll_wait ";
#else
	static const char wanted[] = "read running epoll_pwait epoll_pwait ";
#endif
	struct prb_candidates candidates = {};
	prb_auto_str struct prb_str order = {};
	struct child child;

	(void)state;
	start(&child, sleepers, NULL);
	await(&child, 'S', NULL);
	for (double end = now() + PATIENCE; strcmp(prb_str_text(&order), wanted);) {
		if (now() > end)
			fail_msg("%s, not %s", prb_str_text(&order), wanted);
		prb_str_truncate(&order, 0);
		describe_order(&child, &candidates, &order);
	}
	assert_true(candidates.running);
	assert_int_equal(candidates.blocked, 0);
	prb_vec_free(&candidates.list);
	finish(&child);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_loaded),
		cmocka_unit_test(test_order),
	};

	return cmocka_run_group_tests_name("library and threads", tests, NULL, NULL);
}
