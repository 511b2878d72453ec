/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Descriptions of processes, reasons why they may not be read, and the search for Pythons. */
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/cleanup.h"
#include "target/proc/process.h"
#include "target/proc/process_private.h"
#include "tests/unit/skip.h"
#include "tests/unit/sleeper.h"

enum { NOBODY = 65534 };

static void sleep_on(void *unused)
{
	(void)unused;
	for (;;)
		poll(NULL, 0, -1);
}

/* Runs @p act in a child that then sleeps; returns when it does. */
static pid_t start_ready(void (*act)(void *), void *context)
{
	int ready[2];
	char byte;
	pid_t pid, parent = getpid();

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (!pid) {
		close(ready[0]);
		act(context);
		end_with(parent); /* here, since a change of user would undo it */
		if (write(ready[1], "x", 1) == 1)
			sleep_on(NULL);
		_exit(97);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void test_describe_self(void **state)
{
	struct prb_process p;

	(void)state;
	ok(prb_process_describe(getpid(), &p));
	assert_int_equal(p.pid, getpid());
	assert_int_equal(p.ppid, getppid());
	assert_int_equal(p.kind, PRB_PROCESS_PROGRAM);
	assert_int_equal(p.state, 'R');
	assert_int_equal(p.uid, geteuid());
	assert_int_equal(p.threads, 1);
	assert_int_equal(p.elf_class, 64);
	assert_string_equal(p.comm, "test_process");
	assert_non_null(strstr(p.exe, "/test_process"));
	assert_true(p.argv.count >= 1);
	assert_non_null(strstr(p.argv.items[0], "test_process"));
	assert_true(p.start_time <= (double)time(NULL) + 1 &&
		    p.start_time > (double)time(NULL) - 600);
	prb_process_deinit(&p);
}

static void test_gone(void **state)
{
	struct prb_process p;
	struct prb_error *err;
	pid_t pid = fork();

	(void)state;
	if (!pid)
		_exit(0);
	waitpid(pid, NULL, 0);
	err = prb_process_describe(pid, &p);
	assert_non_null(err);
	assert_int_equal(err->code, PRB_ERROR_NO_PROCESS);
	prb_error_destroy(err);
	prb_process_refusal(pid, &err);
	assert_non_null(err);
	assert_int_equal(err->code, PRB_ERROR_NO_PROCESS);
	prb_error_destroy(err);
}

static void assert_refused(struct prb_error *err, enum prb_error_code code, const char *message,
			   const char *hint)
{
	assert_non_null(err);
	if (err->code != code || !strstr(err->message, message))
		fail_msg("'%s' does not say '%s'", err->message, message);
	if (hint && (!err->hint || !strstr(err->hint, hint)))
		fail_msg("the hint '%s' does not say '%s'", err->hint ? err->hint : "", hint);
	prb_error_destroy(err);
}

static void test_zombie(void **state)
{
	struct prb_error *err;
	struct prb_process p;
	siginfo_t info;
	pid_t pid = fork();

	(void)state;
	if (!pid)
		_exit(0);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	ok(prb_process_describe(pid, &p));
	assert_int_equal(p.kind, PRB_PROCESS_ZOMBIE);
	assert_int_equal(p.argv.count, 0);
	prb_process_deinit(&p);
	prb_process_refusal(pid, &err);
	assert_refused(err, PRB_ERROR_UNSUPPORTED, "zombie", "its parent");
	waitpid(pid, NULL, 0);
}

static void test_kernel(void **state)
{
	struct prb_error *err;
	struct prb_process p;
	char name[32] = "";
	prb_auto_fclose FILE *file = fopen("/proc/2/comm", "re");

	(void)state;
	/* A pid namespace has no kthreadd of its own. */
	if (!file || !fgets(name, sizeof(name), file) || strcmp(name, "kthreadd\n") != 0)
		SKIP("no thread of the kernel can be seen from here");
	ok(prb_process_describe(2, &p));
	assert_int_equal(p.kind, PRB_PROCESS_KERNEL);
	prb_process_deinit(&p);
	prb_process_refusal(2, &err);
	assert_refused(err, PRB_ERROR_UNSUPPORTED, "(kthreadd) is a thread of the kernel", NULL);
}

static void nothing(void *unused)
{
	(void)unused;
}

static void test_readable(void **state)
{
	pid_t pid = start_ready(nothing, NULL);
	struct prb_error *err;

	(void)state;
	prb_process_refusal(pid, &err);
	assert_null(err);
	end(pid);
}

/* Refusals by the kernel itself: a child reads a process without the right to. */

static void become_nobody(void *unused)
{
	(void)unused;
	if (setgroups(0, NULL) || setresgid(NOBODY, NOBODY, NOBODY) ||
	    setresuid(NOBODY, NOBODY, NOBODY) || prctl(PR_SET_DUMPABLE, 1))
		_exit(96);
}

static void become_undumpable(void *unused)
{
	become_nobody(unused);
	prctl(PR_SET_DUMPABLE, 0);
}

static void drop_capabilities(void *unused)
{
	struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct none[2] = {};

	(void)unused;
	if (syscall(SYS_capset, &header, none))
		_exit(96);
}

static void assert_refused_to(void (*become)(void *), pid_t target, const char *message)
{
	int report[2];
	char text[1024] = "";
	pid_t pid;

	assert_int_equal(pipe(report), 0);
	pid = fork();
	if (!pid) {
		struct prb_error *err;

		become(NULL);
		prb_process_refusal(target, &err);
		dprintf(report[1], "%d %s\n%s", err ? (int)err->code : -1,
			err ? err->message : "it may be read", err && err->hint ? err->hint : "");
		_exit(0);
	}
	close(report[1]);
	assert_true(read(report[0], text, sizeof(text) - 1) > 0);
	close(report[0]);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(atoi(text), PRB_ERROR_PERMISSION);
	if (!strstr(text, message))
		fail_msg("'%s' does not say '%s'", text, message);
	assert_true(strchr(text, '\n')[1]); /* the message has a hint */
}

static void test_refused(void **state)
{
	pid_t root, undumpable;

	(void)state;
	if (geteuid())
		SKIP("needs root");
	root = start_ready(nothing, NULL);
	undumpable = start_ready(become_undumpable, NULL);
	assert_refused_to(become_nobody, root, "it runs as user 0 and we are user 65534");
	assert_refused_to(become_nobody, undumpable, "it is not dumpable");
	assert_refused_to(drop_capabilities, root, "it has capabilities that we lack");
	end(root);
	end(undumpable);
}

/* Rules that this machine does not have. */
static void test_rules(void **state)
{
	const uint64_t capable = UINT64_C(1) << CAP_SYS_PTRACE;
	const struct prb_refusal_facts plain = {
		.pid = 42, .comm = "python3", .dumpable = true, .ptrace_scope = -1};
	struct prb_refusal_facts f;

	(void)state;
	f = plain;
	f.ptrace_scope = 1;
	f.ours.uid[0] = f.ours.uid[1] = f.ours.uid[2] = 1000;
	f.theirs = f.ours;
	assert_refused(prb_refusal_explain(&f), PRB_ERROR_PERMISSION,
		       "process 42 (python3) cannot be read: kernel.yama.ptrace_scope is 1",
		       "/proc/sys/kernel/yama/ptrace_scope");
	f.container = true;
	assert_refused(prb_refusal_explain(&f), PRB_ERROR_PERMISSION, "ptrace_scope is 1",
		       "--cap-add SYS_PTRACE");
	f.ours.bounding = capable; /* the container's root may do it */
	assert_refused(prb_refusal_explain(&f), PRB_ERROR_PERMISSION, "ptrace_scope is 1",
		       "run as root in this container");
	f.theirs.uid[1] = 65534;
	assert_refused(prb_refusal_explain(&f), PRB_ERROR_PERMISSION,
		       "it runs as user 65534 and we are user 1000",
		       "run as root in this container");
	f.ours.bounding = 0;
	f.theirs = f.ours;
	f.ancestor = true; /* Yama allows ancestors: the reason was another one */
	assert_refused(prb_refusal_explain(&f), PRB_ERROR_PERMISSION, "security module", NULL);
	f.confined = "docker-default (enforce)";
	assert_refused(prb_refusal_explain(&f), PRB_ERROR_PERMISSION,
		       "\"docker-default (enforce)\"", "apparmor=unconfined");
	f.confined = NULL;
	f.seccomp = true;
	assert_refused(prb_refusal_explain(&f), PRB_ERROR_PERMISSION, "seccomp",
		       "seccomp=unconfined");

	f = plain;
	f.user_namespace = f.unmapped = true;
	assert_refused(prb_refusal_explain(&f), PRB_ERROR_PERMISSION, "user namespace",
		       "outside of this container");
}

static void test_rules_of_users(void **state)
{
	const uint64_t capable = UINT64_C(1) << CAP_SYS_PTRACE;
	const struct prb_refusal_facts plain = {
		.pid = 42, .comm = "python3", .dumpable = true, .ptrace_scope = -1};
	struct prb_refusal_facts f;

	(void)state;
	f = plain;
	f.ptrace_scope = 2;
	assert_refused(prb_refusal_explain(&f), PRB_ERROR_PERMISSION, "ptrace_scope is 2", "root");
	f.ptrace_scope = 3;
	f.ours.effective = f.ours.permitted = capable;
	assert_refused(prb_refusal_explain(&f), PRB_ERROR_PERMISSION, "ptrace_scope is 3",
		       "reboot");

	f = plain;
	f.theirs.uid[1] = 1000;
	f.container = true;
	assert_refused(prb_refusal_explain(&f), PRB_ERROR_PERMISSION,
		       "it runs as user 1000 and we are user 0", "--cap-add SYS_PTRACE");
	f.container = false;
	assert_refused(prb_refusal_explain(&f), PRB_ERROR_PERMISSION, "it runs as user 1000",
		       "without CAP_SYS_PTRACE");
	f = plain;
	f.theirs.gid[0] = f.theirs.gid[1] = 7;
	assert_refused(prb_refusal_explain(&f), PRB_ERROR_PERMISSION,
		       "it runs in group 7 and we are in group 0", NULL);
}

/* The list. */

static const struct prb_python_process *find(const struct prb_python_processes *all, pid_t pid)
{
	const struct prb_python_process *p;

	prb_vec_each (p, &all->list) {
		if (p->process.pid == pid)
			return p;
	}
	return NULL;
}

/* Starts a program that sleeps once it has started and waits until it does. */
static pid_t start_program(const char *file, char *const argv[], char *const environment[])
{
	pid_t parent = getpid(), pid = fork();

	if (!pid) {
		end_with(parent);
		execve(file, argv, environment);
		_exit(96);
	}
	double until = now() + PATIENCE;
	for (;;) {
		prb_auto_str struct prb_str line = {};

		if (prb_proc_read(pid, "syscall", &line) && now() < until) {
			long number = strtol(prb_str_text(&line), NULL, 10);

			if (strchr(prb_str_text(&line), ' ') &&
			    (number == SYS_pselect6 || number == SYS_clock_nanosleep))
				return pid;
		}
		if (now() >= until)
			fail_msg("%s did not start", file);
		sched_yield();
	}
}

static void test_list(void **state)
{
	char *argv[] = {"python3", "-c", "import time; time.sleep(1000)", "\033[2J", NULL};
	char *ranked[] = {"SLURM_PROCID=7", "RANK=12", "LOCAL_RANK=4", NULL};
	char *odd[] = {"RANK=x", "RANK=", "RANKS=5", "PMI_RANK=3", NULL};
	char copy[] = "/tmp/probing-test-XXXXXX";
	struct prb_python_processes all;
	const struct prb_python_process *p;
	char command[128];
	pid_t first, second, renamed;

	(void)state;
	/* A copy under another name, recognised as Python by its contents alone. */
	assert_non_null(mkdtemp(copy));
	snprintf(command, sizeof(command), "cp /usr/bin/python3 %s/worker", copy);
	assert_int_equal(system(command), 0);
	snprintf(command, sizeof(command), "%s/worker", copy);
	first = start_program("/usr/bin/python3", argv, ranked);
	second = start_program("/usr/bin/python3", argv, odd);
	renamed = start_program(command, argv, odd);
	unlink(command);
	rmdir(copy);

	ok(prb_process_list(&all));
	p = find(&all, first);
	assert_non_null(p);
	assert_int_equal(p->rank, 12);
	assert_int_equal(p->local_rank, 4);
	assert_int_equal(p->process.ppid, getpid());
	assert_int_equal(p->process.threads, 1);
	assert_int_equal(p->process.argv.count, 4);
	assert_string_equal(p->process.argv.items[3], "\033[2J");
	assert_null(p->refusal);
	assert_non_null(p->version);
	assert_int_equal(strncmp(p->version, "3.", 2), 0);
	p = find(&all, second);
	assert_non_null(p);
	assert_int_equal(p->rank, 3);
	assert_int_equal(p->local_rank, -1);
	assert_non_null(find(&all, renamed));
	assert_null(find(&all, getpid()));
	for (size_t i = 1; i < all.list.count; i++)
		assert_true(all.list.items[i - 1].process.pid < all.list.items[i].process.pid);
	prb_python_processes_deinit(&all);
	end(first);
	end(second);
	end(renamed);
}

/* A program of any name with libpython loaded. */
static void map_library(void *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
		_exit(95);
}

static void test_embedded(void **state)
{
	char folder[] = "/tmp/probing-test-XXXXXX", path[64];
	struct prb_python_processes all;
	const struct prb_python_process *p;

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/libpython3.12.so.1.0", folder);
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(ftruncate(fd, 4096), 0);
	close(fd);

	/* Room for an interpreter: smaller processes are not searched. */
	void *room = mmap(NULL, 16 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pid_t pid = start_ready(map_library, path);
	munmap(room, 16 << 20);
	ok(prb_process_list(&all));
	p = find(&all, pid);
	assert_non_null(p);
	assert_string_equal(p->version, "3.12");
	prb_python_processes_deinit(&all);
	end(pid);
	unlink(path);
	rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_describe_self), cmocka_unit_test(test_gone),
		cmocka_unit_test(test_zombie),	      cmocka_unit_test(test_kernel),
		cmocka_unit_test(test_readable),      cmocka_unit_test(test_refused),
		cmocka_unit_test(test_rules),	      cmocka_unit_test(test_rules_of_users),
		cmocka_unit_test(test_list),	      cmocka_unit_test(test_embedded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
