/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The child that parses hostile files: it can only answer; how it ends otherwise. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/jail.h"
#include "base/log.h"

enum { ANSWER_MAX = 1000 };

/* A request is the name of one of these. */
struct deed {
	const char *name;
	struct prb_error *(*act)(struct prb_str *ret);
};

static int a_file = -1, other_file = -1, other_pid;

static struct prb_error *echo(struct prb_str *ret)
{
	prb_log("jail", 1, "not heard by anybody");
	prb_str_puts(ret, "echo");
	return NULL;
}

static struct prb_error *read_file(struct prb_str *ret)
{
	char text[4] = {};

	if (pread(a_file, text, 3, 0) == 3)
		prb_str_puts(ret, text);
	return NULL;
}

static struct prb_error *allocate(struct prb_str *ret)
{
	char *small = malloc(100), *large = malloc(64 << 20), *larger;

	if (!small || !large)
		return prb_error_nomem();
	memset(large, 1, 64 << 20);
	larger = realloc(large, 128 << 20);
	prb_str_puts(ret, larger && larger[1000] == 1 ? "allocated" : "no");
	free(small);
	free(larger);
	return NULL;
}

static struct prb_error *need_too_much(struct prb_str *ret)
{
	(void)ret;
	for (size_t size = 1 << 20;; size *= 2) {
		volatile char *memory = malloc(size);

		if (!memory)
			return prb_error_nomem();
		memory[0] = 1;
	}
	return echo(ret);
}

static struct prb_error *find_nothing(struct prb_str *ret)
{
	prb_str_puts(ret, "half an answer");
	return prb_error_create(PRB_ERROR_NOT_FOUND, "there is \033[31mnothing");
}

static struct prb_error *cancel(struct prb_str *ret)
{
	(void)ret;
	return prb_error_create(PRB_ERROR_CANCELLED, "everybody has to stop");
}

static struct prb_error *crash(struct prb_str *ret)
{
	volatile char *nowhere = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	prb_str_putc(ret, *nowhere);
	return NULL;
}

static struct prb_error *spin(struct prb_str *ret)
{
	for (volatile bool on = true; on;)
		;
	return echo(ret);
}

static struct prb_error *sleep_on(struct prb_str *ret)
{
	static volatile int word;

	while (!word)
		syscall(SYS_futex, &word, 0 /* FUTEX_WAIT */, 0, NULL, NULL, 0);
	return echo(ret);
}

static struct prb_error *leave(struct prb_str *ret)
{
	(void)ret;
	syscall(SYS_exit_group, 0); /* a sanitizer's _exit() makes a forbidden system call */
	return NULL;
}

static struct prb_error *say_too_much(struct prb_str *ret)
{
	for (int i = 0; i <= ANSWER_MAX; i++)
		prb_str_putc(ret, 'x');
	return NULL;
}

static struct prb_error *open_path(struct prb_str *ret)
{
	int fd = open("/etc/passwd", O_RDONLY);

	prb_str_puts(ret, fd < 0 && errno == EACCES ? "refused" : "opened");
	return NULL;
}

static struct prb_error *try_call(long number, long a, long b, long c)
{
	long result = syscall(number, a, b, c, 0, 0, 0);

	return prb_error_create(PRB_ERROR_FAILED, "system call %ld gave %ld", number, result);
}

#define FORBIDDEN(function, call)                            \
	static struct prb_error *function(struct prb_str *r) \
	{                                                    \
		(void)r;                                     \
		return call;                                 \
	}

FORBIDDEN(make_socket, try_call(SYS_socket, AF_INET, SOCK_STREAM, 0))
FORBIDDEN(read_other, try_call(SYS_pread64, other_file, (long)&other_pid, 1))
FORBIDDEN(read_stdin, try_call(SYS_read, 0, (long)&other_pid, 1))
FORBIDDEN(write_stderr, try_call(SYS_write, 2, (long)"x", 1))
FORBIDDEN(kill_other, try_call(SYS_kill, other_pid, SIGKILL, 0))
FORBIDDEN(trace_other, try_call(SYS_ptrace, 0x4206 /* PTRACE_SEIZE */, other_pid, 0))
FORBIDDEN(make_process, try_call(SYS_clone, SIGCHLD, 0, 0))
FORBIDDEN(run_program, try_call(SYS_execve, (long)"/bin/true", 0, 0))
FORBIDDEN(become_root, try_call(SYS_setresuid, 0, 0, 0))
FORBIDDEN(make_executable, try_call(SYS_mprotect, (long)&other_pid & ~4095L, 4096,
				    PROT_READ | PROT_WRITE | PROT_EXEC))
FORBIDDEN(be_traceable, try_call(SYS_prctl, PR_SET_DUMPABLE, 1, 0))

static struct prb_error *map_file(struct prb_str *ret)
{
	void *map = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, a_file, 0);

	prb_str_puts(ret, map == MAP_FAILED ? "failed" : "mapped");
	return NULL;
}

static const struct deed deeds[] = {
	{"echo", echo},
	{"read file", read_file},
	{"allocate", allocate},
	{"need too much", need_too_much},
	{"fail", find_nothing},
	{"cancel", cancel},
	{"crash", crash},
	{"spin", spin},
	{"sleep", sleep_on},
	{"leave", leave},
	{"say too much", say_too_much},
	{"open", open_path},
	{"socket", make_socket},
	{"read other", read_other},
	{"read stdin", read_stdin},
	{"write stderr", write_stderr},
	{"kill", kill_other},
	{"trace", trace_other},
	{"clone", make_process},
	{"execute", run_program},
	{"setuid", become_root},
	{"mprotect", make_executable},
	{"prctl", be_traceable},
	{"map file", map_file},
};

static struct prb_error *work(void *context, const void *request, size_t length,
			      struct prb_str *ret)
{
	const char *name = request;

	assert_ptr_equal(context, &a_file);
	for (size_t i = 0; i < sizeof(deeds) / sizeof(deeds[0]); i++)
		if (strlen(deeds[i].name) == length && !memcmp(deeds[i].name, name, length))
			return deeds[i].act(ret);
	return prb_error_create(PRB_ERROR_FAILED, "no such deed");
}

static struct prb_jail *start(unsigned cpu_seconds)
{
	const struct prb_jail_spec spec = {
		.name = "a file",
		.work = work,
		.context = &a_file,
		.file = a_file,
		.cpu_seconds = cpu_seconds,
		.answer_max = ANSWER_MAX,
	};
	struct prb_jail *jail = NULL;

	assert_null(prb_jail_start(&spec, &jail));
	return jail;
}

static struct prb_error *ask(struct prb_jail *jail, const char *deed, int patience,
			     struct prb_str *ret)
{
	return prb_jail_ask(jail, deed, strlen(deed), &patience, ret);
}

/* Pid of our only child. */
static pid_t child(void)
{
	prb_auto_fclose FILE *file = fopen("/proc/thread-self/children", "re");
	int pid = 0;

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%d", &pid), 1);
	return pid;
}

static bool has_no_child(void)
{
	return waitpid(-1, NULL, WNOHANG | __WALL) < 0 && errno == ECHILD;
}

static void assert_answer(struct prb_jail *jail, const char *deed, const char *wanted)
{
	prb_auto_str struct prb_str answer = {};
	prb_auto_error struct prb_error *err = ask(jail, deed, PRB_JAIL_PATIENCE, &answer);

	if (err)
		fail_msg("%s: %s", deed, err->message);
	assert_string_equal(prb_str_text(&answer), wanted);
}

/* The deed ends the child, and the next request reports that. */
static void assert_end(const char *deed, enum prb_error_code code, const char *message)
{
	prb_auto_str struct prb_str answer = {};
	struct prb_jail *jail = start(0);

	for (int again = 0; again < 2; again++) {
		prb_auto_error struct prb_error *err =
			ask(jail, again ? "echo" : deed, PRB_JAIL_PATIENCE, &answer);

		if (!err || err->code != (again ? PRB_ERROR_BAD_DATA : code) || !err->hint)
			fail_msg("%s: %s", deed, err ? err->message : "no error");
		assert_string_equal(err->message,
				    again ? "the parser of a file has ended" : message);
	}
	assert_int_equal(answer.length, 0);
	assert_true(has_no_child());
	prb_jail_end(jail);
}

static void answers(void **state)
{
	struct prb_jail *jail = start(0);

	(void)state;
	for (int i = 0; i < 3; i++) {
		assert_answer(jail, "echo", "echo");
		assert_answer(jail, "read file", "abc");
	}
	assert_answer(jail, "allocate", "allocated");
	assert_answer(jail, "open", "refused");
	prb_jail_end(jail);
	assert_true(has_no_child());
	prb_jail_end(NULL);
}

/* Root with the right to become another user: in a user namespace some have no number. */
static bool can_be_nobody(void)
{
	prb_auto_fclose FILE *file = fopen("/proc/self/uid_map", "re");
	unsigned first, outside, count;

	return !geteuid() && file && fscanf(file, "%u %u %u", &first, &outside, &count) == 3 &&
	       first == 0 && count > 65534;
}

static void has_no_rights(void **state)
{
	static const char *const wanted[] = {
		"CapInh:\t0000000000000000\n",
		"CapPrm:\t0000000000000000\n",
		"CapEff:\t0000000000000000\n",
		"CapAmb:\t0000000000000000\n",
		"NoNewPrivs:\t1\n",
		"Seccomp:\t2\n",
	};
	struct prb_jail *jail = start(0);
	prb_auto_free char *command = NULL;
	char status[4096] = {};

	(void)state;
	assert_answer(jail, "echo", "echo");
	command = prb_format("/proc/%d/status", child());

	prb_auto_fclose FILE *file = fopen(command, "re");
	assert_non_null(file);
	assert_true(fread(status, 1, sizeof(status) - 1, file) > 0);
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
		if (!strstr(status, wanted[i]))
			fail_msg("no %s in %s", wanted[i], status);
	if (can_be_nobody()) {
		assert_non_null(strstr(status, "Uid:\t65534\t65534\t65534\t65534\n"));
		assert_non_null(strstr(status, "Gid:\t65534\t65534\t65534\t65534\n"));
		assert_non_null(strstr(status, "Groups:\t \n"));
	}
	prb_jail_end(jail);
}

static void passes_errors_on(void **state)
{
	static const struct {
		const char *deed;
		enum prb_error_code code;
		const char *message;
	} cases[] = {
		{"fail", PRB_ERROR_NOT_FOUND, "there is ?[31mnothing"},
		{"cancel", PRB_ERROR_BAD_DATA, "everybody has to stop"},
		{"need too much", PRB_ERROR_BAD_DATA, "the parser of a file needs too much memory"},
		{"map nothing", PRB_ERROR_BAD_DATA, "no such deed"},
	};
	struct prb_jail *jail = start(0);

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		prb_auto_str struct prb_str answer = {};
		prb_auto_error struct prb_error *err =
			ask(jail, cases[i].deed, PRB_JAIL_PATIENCE, &answer);

		assert_non_null(err);
		assert_string_equal(err->message, cases[i].message);
		assert_int_equal(err->code, cases[i].code);
		assert_int_equal(answer.length, 0);
	}
	assert_answer(jail, "echo", "echo");
	prb_jail_end(jail);
}

static void contains_crashes(void **state)
{
	(void)state;
	assert_end("crash", PRB_ERROR_BAD_DATA, "the parser of a file crashed (SIGSEGV)");
	assert_end("leave", PRB_ERROR_BAD_DATA, "the parser of a file ended without an answer");
	assert_end("say too much", PRB_ERROR_BAD_DATA,
		   "the parser of a file ended without an answer");
}

static void forbids_system_calls(void **state)
{
	static const char *const forbidden[] = {
		"socket", "read other", "read stdin", "write stderr", "kill",  "trace",
		"clone",  "execute",	"setuid",     "mprotect",     "prctl", "map file",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(forbidden) / sizeof(forbidden[0]); i++)
		assert_end(forbidden[i], PRB_ERROR_BAD_DATA,
			   "the parser of a file made a forbidden system call (SIGSYS)");
}

static void bounds_time(void **state)
{
	enum { SHORT = 100 };
	struct prb_jail *jail = start(1);
	prb_auto_str struct prb_str answer = {};
	int patience = PRB_JAIL_PATIENCE;
	struct prb_error *err;

	(void)state;
	err = prb_jail_ask(jail, "spin", strlen("spin"), &patience, &answer);
	assert_non_null(err);
	assert_int_equal(err->code, PRB_ERROR_TIMEOUT);
	assert_string_equal(err->message, "the parser of a file took over 1 s of processor time");
	assert_true(patience < PRB_JAIL_PATIENCE);
	prb_error_destroy(err);
	prb_jail_end(jail);

	/* One that uses no time of the processor. */
	jail = start(0);
	err = ask(jail, "sleep", SHORT, &answer);
	assert_non_null(err);
	assert_int_equal(err->code, PRB_ERROR_TIMEOUT);
	assert_true(has_no_child());
	prb_error_destroy(err);
	prb_jail_end(jail);
}

static void notices_that_it_was_killed(void **state)
{
	prb_auto_str struct prb_str answer = {};
	struct prb_jail *jail = start(0);
	struct prb_error *err;

	(void)state;
	assert_answer(jail, "echo", "echo");
	kill(child(), SIGKILL);
	err = ask(jail, "echo", PRB_JAIL_PATIENCE, &answer);
	assert_non_null(err);
	assert_string_equal(err->message, "the parser of a file was killed (SIGKILL)");
	prb_error_destroy(err);
	prb_jail_end(jail);
}

/* A host that waits for all its children also reaps ours. */
static void survives_a_host_that_reaps(void **state)
{
	prb_auto_str struct prb_str answer = {};
	struct prb_jail *jail = start(0);
	struct prb_error *err;

	(void)state;
	assert_answer(jail, "echo", "echo");
	kill(child(), SIGKILL);
	assert_true(waitpid(-1, NULL, 0) > 0);
	err = ask(jail, "echo", PRB_JAIL_PATIENCE, &answer);
	assert_non_null(err);
	assert_string_equal(err->message, "the parser of a file ended without an answer");
	prb_error_destroy(err);
	prb_jail_end(jail);
}

static void *start_and_ask(void *ret)
{
	struct prb_jail **jail = ret;

	*jail = start(0);
	assert_answer(*jail, "echo", "echo"); /* by now it has no rights, and dies with us */
	return NULL;
}

/* A host whose thread ends, or that is killed, leaves no child behind. */
static void dies_with_the_thread(void **state)
{
	prb_auto_str struct prb_str answer = {};
	struct prb_jail *jail = NULL;
	struct prb_error *err;
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, start_and_ask, &jail), 0);
	pthread_join(thread, NULL);
	err = ask(jail, "sleep", PRB_JAIL_PATIENCE, &answer);
	assert_non_null(err);
	assert_string_equal(err->message, "the parser of a file was killed (SIGKILL)");
	prb_error_destroy(err);
	prb_jail_end(jail);
	assert_true(has_no_child());
}

static int handled;

static void handle(int number)
{
	handled = number;
	write_stderr(NULL);
}

/* Handlers of the host do not run in the child, where they could break a rule. */
static void ignores_handlers(void **state)
{
	struct sigaction action = {.sa_handler = handle}, before, before_crash;
	struct prb_jail *jail;

	(void)state;
	sigaction(SIGINT, &action, &before);
	sigaction(SIGSEGV, &action, &before_crash);
	jail = start(0);
	assert_answer(jail, "echo", "echo");
	kill(child(), SIGINT);
	assert_answer(jail, "echo", "echo");
	prb_jail_end(jail);
	assert_end("crash", PRB_ERROR_BAD_DATA, "the parser of a file crashed (SIGSEGV)");
	sigaction(SIGINT, &before, NULL);
	sigaction(SIGSEGV, &before_crash, NULL);
	assert_int_equal(handled, 0);
}

static int open_files(void **state)
{
	(void)state;
	a_file = memfd_create("a", MFD_CLOEXEC);
	other_file = memfd_create("other", MFD_CLOEXEC);
	other_pid = getpid();
	return a_file >= 0 && other_file >= 0 && write(a_file, "abc", 3) == 3 &&
			       write(other_file, "def", 3) == 3
		       ? 0
		       : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers),
		cmocka_unit_test(has_no_rights),
		cmocka_unit_test(passes_errors_on),
		cmocka_unit_test(contains_crashes),
		cmocka_unit_test(forbids_system_calls),
		cmocka_unit_test(bounds_time),
		cmocka_unit_test(notices_that_it_was_killed),
		cmocka_unit_test(survives_a_host_that_reaps),
		cmocka_unit_test(dies_with_the_thread),
		cmocka_unit_test(ignores_handlers),
	};

	return cmocka_run_group_tests(tests, open_files, NULL);
}
