/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Cores of real Python processes, by the kernel and by gdb's gcore: they must give the same data as
 * the process just before.
 *
 * PROBING_TEST_PYTHONS names the interpreters (separated by ':'); by default those of pyenv and
 * the system's.
 */
#include <elf.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <lzma.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <zlib.h>
#include <zstd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "target/core/core.h"
#include "target/target.h"
#include "tests/unit/skip.h"

#define OK(expression) assert_ok((expression), __LINE__)

enum { MAX_PAGES = 4000, MAX_LEFT_OUT = 16 };

/* The /proc/PID/syscall of a thread that reads descriptor 0. */
#if defined(__x86_64__)
#define READ_0 "0 0x0 "
#else
#define READ_0 "63 0x0 "
#endif

/* Data of the live process. */
struct expected {
	pid_t pid;
	struct prb_target *live;
	struct prb_str cmdline, environ, exe, comm, tasks;
	struct prb_str syscalls; /* one line a thread, in the order of `tasks` */
	size_t page_count;
	struct {
		uint64_t address;
		char data[4096];
	} * pages;
	/* Pages excluded from cores by the program. */
	size_t left_out_count;
	uint64_t left_out[MAX_LEFT_OUT];
};

static char folder[] = "/tmp/probing-test-core.XXXXXX";

static void assert_ok(struct prb_error *err, int line)
{
	if (!err)
		return;
	print_error("line %d: %s (%s)\n", line, err->message, err->hint ? err->hint : "no hint");
	prb_error_destroy(err);
	fail();
}

/*
 * A Python process with two sleeping threads, one in a read and one in a lock, and a page excluded
 * from cores, if its Python can do that. From glibc 2.41 on, the C library has such a page too.
 */
static pid_t start_python(const char *python, int *stdin_fd)
{
	static const char program[] = "import sys, threading\n"
				      "threading.stack_size(262144)\n"
				      "lock = threading.Lock()\n"
				      "lock.acquire()\n"
				      "t = threading.Thread(target=lock.acquire)\n"
				      "t.daemon = True\n"
				      "t.start()\n"
				      "import mmap\n"
				      "if hasattr(mmap, 'MADV_DONTDUMP'):\n"
				      "    page = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE)\n"
				      "    page.madvise(mmap.MADV_DONTDUMP)\n"
				      "sys.stdin.readline()\n";
	int fds[2], executed[2];
	char byte;

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_int_equal(pipe2(executed, O_CLOEXEC), 0);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct rlimit unlimited = {RLIM_INFINITY, RLIM_INFINITY};

		prctl(PR_SET_PDEATHSIG, SIGKILL); /* when a test fails */
		dup2(fds[0], 0);
		setrlimit(RLIMIT_CORE, &unlimited);
		setenv("MALLOC_ARENA_MAX", "1", 1); /* else 64 MiB of zeros a thread */
		if (chdir(folder))
			_exit(126);
		execl(python, "python", "-c", program, "one argument", "", NULL);
		_exit(127);
	}
	close(fds[0]);
	*stdin_fd = fds[1];
	/* The pipe's other end closes at the exec. */
	close(executed[1]);
	assert_int_equal(read(executed[0], &byte, 1), 0);
	close(executed[0]);
	return pid;
}

static size_t lines_of(const struct prb_str *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->length; i++)
		n += s->data[i] == '\n';
	return n;
}

static void read_syscalls(struct expected *e)
{
	prb_str_truncate(&e->tasks, 0);
	prb_str_truncate(&e->syscalls, 0);
	OK(prb_target_list(e->live, &e->tasks, "task"));
	for (const char *p = prb_str_text(&e->tasks); *p; p = strchr(p, '\n') + 1)
		OK(prb_target_read_file(e->live, &e->syscalls, "task/%d/syscall", atoi(p)));
}

/* Waits until both threads sleep in a system call for good. */
static void wait_until_idle(struct expected *e)
{
	prb_auto_str struct prb_str before = {};
	time_t deadline = time(NULL) + 20;

	for (;;) {
		read_syscalls(e);
		if (lines_of(&e->tasks) == 2 && !strstr(e->syscalls.data, "running") &&
		    !strncmp(e->syscalls.data, READ_0, strlen(READ_0)) &&
		    !strcmp(prb_str_text(&before), e->syscalls.data))
			return;
		prb_str_truncate(&before, 0);
		prb_str_puts(&before, prb_str_text(&e->syscalls));
		assert_true(time(NULL) < deadline);
		sched_yield();
	}
}

static void expect_page(struct expected *e, uint64_t address)
{
	if (e->page_count == MAX_PAGES)
		return;
	e->pages[e->page_count].address = address;
	struct prb_error *err =
		prb_mem_read(e->live->mem, address, e->pages[e->page_count].data, 4096);
	if (!err)
		e->page_count++;
	prb_error_destroy(err);
}

/* For a moment at the end of execve() its memory is not readable. */
static void open_when_executed(struct expected *e, pid_t pid)
{
	time_t deadline = time(NULL) + 20;
	struct prb_error *err;

	while ((err = prb_target_open_process(pid, &e->live)) && time(NULL) < deadline) {
		prb_error_destroy(err);
		sched_yield();
	}
	OK(err);
}

/* True if the kernel reports the mapping at @start as excluded from cores. */
static bool is_left_out(const struct prb_str *smaps, uint64_t start)
{
	prb_auto_free char *line = prb_format("%08" PRIx64 "-", start);
	const char *flags = NULL;

	for (const char *p = prb_str_text(smaps); p && !flags; p = strchr(p, '\n')) {
		p += *p == '\n';
		if (!strncmp(p, line, strlen(line)))
			flags = strstr(p, "VmFlags:");
	}
	assert_non_null(flags);
	const char *found = strstr(flags, " dd");
	return found && found < strchr(flags, '\n');
}

static void expect(struct expected *e, pid_t pid)
{
	prb_auto_str struct prb_str smaps = {};
	const struct prb_map *map;

	*e = (struct expected){.pid = pid};
	open_when_executed(e, pid);
	wait_until_idle(e);
	OK(prb_target_refresh_maps(e->live));
	OK(prb_target_read_file(e->live, &e->cmdline, "cmdline"));
	OK(prb_target_read_file(e->live, &e->environ, "environ"));
	OK(prb_target_read_link(e->live, &e->exe, "exe"));
	OK(prb_target_read_file(e->live, &e->comm, "comm"));
	prb_str_truncate(&e->comm, e->comm.length - 1);
	e->pages = malloc(MAX_PAGES * sizeof(*e->pages));
	assert_non_null(e->pages);
	OK(prb_target_read_file(e->live, &smaps, "smaps"));
	prb_vec_each (map, &e->live->maps.list) {
		if (!map->read || map->path[0] == '[')
			continue;
		if (is_left_out(&smaps, map->start)) {
			assert_true(e->left_out_count < MAX_LEFT_OUT);
			e->left_out[e->left_out_count++] = map->start;
			continue;
		}
		/* The kernel dumps no data files and no shared mappings. */
		if (map->shared || strstr(map->path, "/locale/") || strstr(map->path, "gconv"))
			continue;
		expect_page(e, map->start);
		expect_page(e, map->end - 4096);
		expect_page(e, map->start + (map->end - map->start) / 8192 * 4096);
	}
	assert_true(e->page_count > 50);
}

static void expected_deinit(struct expected *e)
{
	prb_target_destroy(e->live);
	prb_str_deinit(&e->cmdline);
	prb_str_deinit(&e->environ);
	prb_str_deinit(&e->exe);
	prb_str_deinit(&e->comm);
	prb_str_deinit(&e->tasks);
	prb_str_deinit(&e->syscalls);
	free(e->pages);
}

static void check_text(struct prb_target *t, const char *name, const struct prb_str *expected)
{
	prb_auto_str struct prb_str text = {};

	OK(!strcmp(name, "exe")	   ? prb_target_read_link(t, &text, "exe")
	   : !strcmp(name, "task") ? prb_target_list(t, &text, "task")
				   : prb_target_read_file(t, &text, "%s", name));
	if (text.length != expected->length ||
	    (text.length && memcmp(text.data, expected->data, text.length)))
		fail_msg("%s: %zu bytes '%s' instead of %zu '%s'", name, text.length,
			 prb_str_text(&text), expected->length, prb_str_text(expected));
}

static void check_maps(struct prb_target *t, const struct expected *e, bool by_kernel)
{
	const struct prb_map *live;

	prb_vec_each (live, &e->live->maps.list) {
		if (!by_kernel && live->path[0] != '/')
			continue;
		if (!strncmp(live->path, "[vvar", 5) || !strcmp(live->path, "[vsyscall]"))
			continue;
		const struct prb_map *map = prb_maps_find(&t->maps, live->start);

		if (!map)
			fail_msg("%" PRIx64 " %s is missing", live->start, live->path);
		assert_int_equal(map->start, live->start);
		assert_int_equal(map->end, live->end);
		if (strcmp(live->path, "[heap]"))
			assert_string_equal(map->path, live->path);
		assert_int_equal(map->offset, live->path[0] == '/' ? live->offset : 0);
		assert_int_equal(map->inode != 0, live->path[0] == '/');
		assert_int_equal(map->write, live->write);
		assert_true(map->exec || !live->exec);
		if (!by_kernel)
			continue;
		assert_int_equal(map->read, live->read);
		assert_int_equal(map->exec, live->exec);
	}
}

static void check_threads(struct prb_target *t, const struct expected *e, int signal)
{
	prb_auto_str struct prb_str stat = {}, syscall = {};
	const char *line = e->syscalls.data;

	check_text(t, "task", &e->tasks);
	for (const char *p = prb_str_text(&e->tasks); *p; p = strchr(p, '\n') + 1) {
		int tid = atoi(p);
		uint64_t sp, pc, got;
		struct prb_regs regs;
		char start[64];

		OK(prb_target_registers(t, tid, &regs));
		/* The last two of the line are sp and pc. */
		assert_int_equal(
			sscanf(line, "%*s %*s %*s %*s %*s %*s %*s %" SCNx64 " %" SCNx64, &sp, &pc),
			2);
		/* aarch64 winds a call back to its instruction. */
		assert_true(regs.pc == pc || (t->machine == EM_AARCH64 && regs.pc == pc - 4));
		assert_true(prb_regs_get(&regs, prb_regs_sp(t->machine), &got));
		assert_int_equal(got, sp);

		prb_str_truncate(&stat, 0);
		OK(prb_target_read_file(t, &stat, "task/%d/stat", tid));
		bool hit = signal && tid == prb_core_info(t)->signal_tid;
		/* gdb takes the name from argv[0]. */
		const char *name = tid != e->pid ? "" : signal ? e->comm.data : "python";
		snprintf(start, sizeof(start), "%d (%s) %c %d ", tid, name, hit ? 'R' : 'S',
			 getpid());
		if (strncmp(stat.data, start, strlen(start)))
			fail_msg("'%s' does not start with '%s'", stat.data, start);

		prb_str_truncate(&syscall, 0);
		OK(prb_target_read_file(t, &syscall, "task/%d/syscall", tid));
		if (hit)
			assert_string_equal(syscall.data, "running\n");
		else if (strncmp(syscall.data, line, syscall.length))
			fail_msg("'%s' instead of '%s'", syscall.data, line);
		line = strchr(line, '\n') + 1;
	}
}

/* The kernel writes the number of the processor into a thread's own 32 bytes (rseq). */
static bool same_but_rseq(const struct prb_map *map, const char *a, const char *b)
{
	size_t differing = 0;

	for (size_t i = 0; i < 4096; i++)
		differing += a[i] != b[i];
	return differing == 0 || (map && !map->path[0] && differing <= 32);
}

static void check_memory(struct prb_target *t, const struct expected *e)
{
	char page[4096], part[100];

	for (size_t i = 0; i < e->page_count; i++) {
		struct prb_error *err = prb_mem_read(t->mem, e->pages[i].address, page, 4096);
		const struct prb_map *map = prb_maps_find(&t->maps, e->pages[i].address);

		if (err || !same_but_rseq(map, page, e->pages[i].data))
			fail_msg("%" PRIx64 " %s: %s", e->pages[i].address, map ? map->path : "?",
				 err ? err->message : "differs");
		OK(prb_mem_read(t->mem, e->pages[i].address + 77, part, sizeof(part)));
		assert_memory_equal(part, page + 77, sizeof(part));
	}
}

/* The kernel omits these mappings; gdb does not. */
static void check_left_out(struct prb_target *t, const struct expected *e, bool by_kernel)
{
	char byte;

	for (size_t i = 0; i < e->left_out_count; i++) {
		struct prb_error *err = prb_mem_read(t->mem, e->left_out[i], &byte, 1);

		assert_non_null(err);
		if (by_kernel)
			assert_string_equal(err->hint, "not in the core file: the program "
						       "(MADV_DONTDUMP) or coredump_filter left "
						       "it out");
		prb_error_destroy(err);
	}
}

static void check_core(const char *path, const struct expected *e, int signal)
{
	struct prb_target *t;

	assert_true(prb_core_probe(path));
	OK(prb_target_open_core(path, NULL, &t));
	assert_int_equal(t->kind, PRB_TARGET_CORE);
	assert_true(t->partial && !t->live && !t->local && !t->loadable && !t->replayed);
	assert_int_equal(t->pid, e->pid);
	assert_int_equal(t->machine, e->live->machine);
	assert_int_equal(prb_core_info(t)->signal, signal);
	assert_int_equal(prb_core_info(t)->missing_segments, 0);
	check_text(t, "cmdline", &e->cmdline);
	check_text(t, "environ", &e->environ);
	check_text(t, "exe", &e->exe);
	check_maps(t, e, signal != 0);
	check_threads(t, e, signal);
	check_memory(t, e);
	check_left_out(t, e, signal != 0);
	prb_target_destroy(t);
}

/* The core that the kernel writes for a signal; NULL if it is configured to put cores elsewhere. */
static char *kernel_core(pid_t pid, int signal)
{
	char pattern[256] = "";
	prb_auto_fclose FILE *file = fopen("/proc/sys/kernel/core_pattern", "re");
	char name[sizeof(folder) + 8];
	glob_t found;
	int status;

	if (!file || !fgets(pattern, sizeof(pattern), file) || pattern[0] == '|' ||
	    strchr(pattern, '/')) {
		NOT_TESTED("the kernel leaves no core of a process");
		return NULL;
	}
	kill(pid, signal);
	waitpid(pid, &status, 0);
	assert_true(WIFSIGNALED(status) && WCOREDUMP(status));
	snprintf(name, sizeof(name), "%s/*", folder);
	assert_int_equal(glob(name, 0, NULL, &found), 0);
	assert_int_equal(found.gl_pathc, 1);
	char *path = strdup(found.gl_pathv[0]);
	globfree(&found);
	return path;
}

static char *gcore(pid_t pid)
{
	char command[256];
	char *path = prb_format("%s/gcore.%d", folder, pid);

	snprintf(command, sizeof(command), "gcore -o %s/gcore %d >/dev/null 2>&1", folder, pid);
	if (system(command) || access(path, R_OK)) {
		NOT_TESTED("gcore is not installed");
		free(path);
		return NULL;
	}
	return path;
}

static glob_t pythons(void)
{
	const char *named = getenv("PROBING_TEST_PYTHONS");
	glob_t found = {};

	if (named) {
		prb_auto_free char *copy = strdup(named);

		for (char *save, *p = strtok_r(copy, ":", &save); p; p = strtok_r(NULL, ":", &save))
			glob(p, found.gl_pathc ? GLOB_APPEND : 0, NULL, &found);
		return found;
	}
	prb_auto_free char *pattern = prb_format("%s/.pyenv/versions/*/bin/python", getenv("HOME"));
	glob("/usr/bin/python3", 0, NULL, &found);
	glob(pattern, GLOB_APPEND, NULL, &found);
	return found;
}

static void end(pid_t pid, int fd)
{
	close(fd);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void test_interpreters(void **state)
{
	glob_t found = pythons();

	(void)state;
	assert_true(found.gl_pathc > 0);
	for (size_t i = 0; i < found.gl_pathc; i++) {
		struct expected e;
		int fd;
		pid_t pid = start_python(found.gl_pathv[i], &fd);

		expect(&e, pid);
		prb_auto_free char *by_gdb = gcore(pid);
		if (by_gdb) {
			check_core(by_gdb, &e, 0);
			unlink(by_gdb);
		}
		prb_auto_free char *by_kernel = kernel_core(pid, i % 2 ? SIGSEGV : SIGABRT);
		if (by_kernel) {
			check_core(by_kernel, &e, i % 2 ? SIGSEGV : SIGABRT);
			unlink(by_kernel);
		}
		end(pid, fd);
		expected_deinit(&e);
	}
	globfree(&found);
}

/* One kernel core for the tests below. */
static struct {
	struct expected expected;
	char *path;
	size_t size;
} one;

static int make_one(void **state)
{
	glob_t found = pythons();
	struct stat st;
	int fd;

	(void)state;
	pid_t pid = start_python(found.gl_pathv[found.gl_pathc - 1], &fd);
	globfree(&found);
	expect(&one.expected, pid);
	one.path = kernel_core(pid, SIGABRT);
	end(pid, fd);
	if (one.path && !stat(one.path, &st))
		one.size = (size_t)st.st_size;
	return 0;
}

static int remove_one(void **state)
{
	(void)state;
	if (one.path)
		unlink(one.path);
	free(one.path);
	expected_deinit(&one.expected);
	return 0;
}

static char *read_whole(const char *path, size_t size)
{
	char *data = malloc(size);
	prb_auto_fclose FILE *file = fopen(path, "re");

	assert_int_equal(fread(data, 1, size, file), size);
	return data;
}

static void write_whole(const char *path, const void *data, size_t size)
{
	prb_auto_fclose FILE *file = fopen(path, "we");

	assert_int_equal(fwrite(data, 1, size, file), size);
}

static void test_compressed(void **state)
{
	(void)state;
	if (!one.path)
		SKIP("the kernel leaves no core of a process");
	prb_auto_free char *core = read_whole(one.path, one.size);
	size_t room = one.size + one.size / 10 + 4096, size;
	prb_auto_free unsigned char *packed = malloc(room);
	prb_auto_free char *path = prb_format("%s/packed", folder);

	size = ZSTD_compress(packed, room, core, one.size, 1);
	write_whole(path, packed, size);
	check_core(path, &one.expected, SIGABRT);

	gzFile gz = gzopen(path, "wb1");
	assert_int_equal(gzwrite(gz, core, (unsigned)one.size), one.size);
	gzclose(gz);
	check_core(path, &one.expected, SIGABRT);

	size = 0;
	assert_int_equal(lzma_easy_buffer_encode(0, LZMA_CHECK_CRC32, NULL, (uint8_t *)core,
						 one.size, packed, &size, room),
			 LZMA_OK);
	write_whole(path, packed, size);
	check_core(path, &one.expected, SIGABRT);

	/* Half of the core: the available part. */
	struct prb_target *t;
	write_whole(path, packed, size / 2);
	OK(prb_target_open_core(path, NULL, &t));
	assert_true(prb_core_info(t)->missing_bytes > 0);
	check_text(t, "task", &one.expected.tasks);
	prb_target_destroy(t);
	unlink(path);
}

/* Reads everything; nothing may crash, and missing data is an error. */
static void exercise(struct prb_target *t)
{
	static const char *const names[] = {"maps", "cmdline", "environ", "comm", "stat", "auxv"};
	prb_auto_str struct prb_str text = {};
	const struct prb_map *map;
	struct prb_regs regs;
	char page[4096];

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		prb_error_destroy(prb_target_read_file(t, &text, "%s", names[i]));
	prb_error_destroy(prb_target_read_link(t, &text, "exe"));
	prb_str_truncate(&text, 0);
	prb_error_destroy(prb_target_list(t, &text, "task"));
	for (const char *p = prb_str_text(&text); *p; p = strchr(p, '\n') + 1) {
		prb_auto_str struct prb_str fact = {};

		OK(prb_target_read_file(t, &fact, "task/%d/stat", atoi(p)));
		prb_error_destroy(prb_target_read_file(t, &fact, "task/%d/syscall", atoi(p)));
		OK(prb_target_registers(t, atoi(p), &regs));
	}
	size_t count = 0;
	prb_vec_each (map, &t->maps.list) {
		prb_error_destroy(prb_mem_read(t->mem, map->start, page, sizeof(page)));
		prb_error_destroy(prb_mem_read(t->mem, map->end - 8, page, 16));
		if (count++ == 200)
			break;
	}
}

static void test_truncated(void **state)
{
	(void)state;
	if (!one.path)
		SKIP("the kernel leaves no core of a process");
	prb_auto_free char *core = read_whole(one.path, one.size);
	prb_auto_free char *path = prb_format("%s/cut", folder);
	uint64_t last_missing = 0;

	write_whole(path, core, one.size);
	for (size_t size = one.size - 1; size > 0; size -= size > 65536	 ? size / 50
							   : size > 1000 ? 997
							   : size > 31	 ? 31
									 : size) {
		struct prb_target *t;

		assert_int_equal(truncate(path, (off_t)size), 0);
		struct prb_error *err = prb_target_open_core(path, NULL, &t);
		if (err) {
			assert_int_equal(err->code, PRB_ERROR_BAD_DATA);
			assert_true(size < 1000);
			prb_error_destroy(err);
			continue;
		}
		const struct prb_core_info *info = prb_core_info(t);
		assert_true(info->missing_segments > 0);
		/* Without the segments' headers their sizes are unknown. */
		assert_true(size < 65536 || info->missing_bytes > last_missing);
		last_missing = info->missing_bytes;
		if (size > 65536)
			check_threads(t, &one.expected, SIGABRT);
		exercise(t);
		prb_target_destroy(t);
	}
	unlink(path);
}

/* The hint about truncated memory names the remedy. */
static void test_truncated_hint(void **state)
{
	struct prb_target *t;
	char page[8];

	(void)state;
	if (!one.path)
		SKIP("the kernel leaves no core of a process");
	prb_auto_free char *core = read_whole(one.path, one.size);
	prb_auto_free char *path = prb_format("%s/cut", folder);

	write_whole(path, core, one.size / 2);
	OK(prb_target_open_core(path, NULL, &t));
	size_t hints = 0;
	for (size_t i = 0; i < t->maps.list.count; i++) {
		struct prb_error *err =
			prb_mem_read(t->mem, t->maps.list.items[i].start, page, sizeof(page));

		if (err && err->hint && strstr(err->hint, "ulimit -c unlimited"))
			hints++;
		prb_error_destroy(err);
	}
	assert_true(hints > 5);
	prb_target_destroy(t);
	unlink(path);
}

/* Headers and notes with random changes: an error or a usable target, never a crash. */
static void test_hostile(void **state)
{
	enum { HEAD = 32 << 10, ROUNDS = 1500 };
	uint64_t random = 88172645463325252u;
	unsigned opened = 0;

	(void)state;
	if (!one.path)
		SKIP("the kernel leaves no core of a process");
	prb_auto_free char *core = read_whole(one.path, one.size);
	prb_auto_free char *path = prb_format("%s/hostile", folder);

	write_whole(path, core, one.size);
	prb_auto_close int fd = open(path, O_RDWR | O_CLOEXEC);
	for (unsigned round = 0; round < ROUNDS; round++) {
		char head[HEAD];
		struct prb_target *t;

		memcpy(head, core, sizeof(head));
		for (unsigned i = 0; i <= round % 8; i++) {
			static const unsigned char special[] = {0, 1, 0x7f, 0x80, 0xff};

			random ^= random << 13;
			random ^= random >> 7;
			random ^= random << 17;
			size_t at = random % (round % 3 ? 6000 : HEAD);
			head[at] = (char)(random >> 32 & 1 ? special[(random >> 40) % 5]
							   : random >> 48);
		}
		assert_int_equal(pwrite(fd, head, sizeof(head), 0), sizeof(head));
		struct prb_error *err = prb_target_open_core(path, NULL, &t);
		prb_error_destroy(err);
		if (err)
			continue;
		opened++;
		exercise(t);
		prb_target_destroy(t);
	}
	assert_true(opened > ROUNDS / 2);
	unlink(path);
}

static void test_exe(void **state)
{
	struct prb_target *t;
	prb_auto_str struct prb_str exe = {};

	(void)state;
	if (!one.path)
		SKIP("the kernel leaves no core of a process");
	struct prb_error *err = prb_target_open_core(one.path, "/bin/sh", &t);
	assert_non_null(err);
	assert_int_equal(err->code, PRB_ERROR_USAGE);
	if (!strstr(err->message, " is not the program of this core"))
		fail_msg("%s", err->message);
	prb_error_destroy(err);
	err = prb_target_open_core(one.path, "/no/such", &t);
	assert_non_null(err);
	prb_error_destroy(err);

	/* A copy elsewhere does. */
	prb_auto_free char *copy = prb_format("%s/python-copy", folder);
	prb_auto_free char *command = prb_format("cp '%s' '%s'", one.expected.exe.data, copy);
	assert_int_equal(system(command), 0);
	OK(prb_target_open_core(one.path, copy, &t));
	OK(prb_target_read_link(t, &exe, "exe"));
	assert_string_equal(exe.data, copy);
	check_memory(t, &one.expected);
	prb_target_destroy(t);
	unlink(copy);
}

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	(void)state;
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest first[] = {
		cmocka_unit_test(test_interpreters),
	};
	const struct CMUnitTest with_one[] = {
		cmocka_unit_test(test_compressed),
		cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_truncated_hint),
		cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_exe),
	};

	if (make_folder(NULL))
		return 1;
	int failed = cmocka_run_group_tests(first, NULL, NULL);
	failed += cmocka_run_group_tests(with_one, make_one, remove_one);
	return remove_folder(NULL) || failed;
}
