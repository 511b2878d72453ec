/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Snapshots return the recorded answers; damaged files are refused with a reason. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "target/snapshot/format.h"
#include "target/snapshot/snapshot.h"

#define OK(expression) prb_assert_ok((expression), __LINE__)

static char folder[] = "/tmp/probing-test-snapshot.XXXXXX";

static void prb_assert_ok(struct prb_error *err, int line)
{
	if (!err)
		return;
	print_error("line %d: %s (%s)\n", line, err->message, err->hint ? err->hint : "no hint");
	prb_error_destroy(err);
	fail();
}

static void expect_error(struct prb_error *err, enum prb_error_code code, const char *message,
			 const char *hint)
{
	assert_non_null(err);
	assert_int_equal(err->code, code);
	if (message && !strstr(err->message, message))
		fail_msg("'%s' lacks '%s'", err->message, message);
	if (hint) {
		assert_non_null(err->hint);
		assert_non_null(strstr(err->hint, hint));
	}
	prb_error_destroy(err);
}

static const char *path_of(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	(void)state;
	unlink(path_of("s"));
	return rmdir(folder);
}

/* Ourselves as a live target, with a recorder attached. */
struct recording {
	struct prb_target *target;
	struct prb_recorder *recorder;
	struct prb_view *view;
	char *memory; /* 4 pages of ours, with bytes that depend on their place */
};

static void recording_init(struct recording *r)
{
	OK(prb_target_open_process(getpid(), &r->target));
	OK(prb_recorder_create(&r->recorder));
	OK(prb_view_create(r->target->mem, &r->view));
	prb_recorder_attach(r->recorder, r->target);
	r->memory = mmap(NULL, 4 * PRB_PAGE_SIZE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(r->memory, MAP_FAILED);
	for (size_t i = 0; i < 4 * PRB_PAGE_SIZE; i++)
		r->memory[i] = (char)(i * 7 + i / PRB_PAGE_SIZE);
	OK(prb_target_refresh_maps(r->target));
}

static void recording_deinit(struct recording *r)
{
	munmap(r->memory, 4 * PRB_PAGE_SIZE);
	prb_view_destroy(r->view);
	prb_target_destroy(r->target);
	prb_recorder_destroy(r->recorder);
}

static struct prb_target *write_and_open(struct recording *r)
{
	struct prb_target *t;

	OK(prb_recorder_write(r->recorder, r->target, path_of("s")));
	OK(prb_target_open_snapshot(path_of("s"), &t));
	return t;
}

static void read_both(struct recording *r, uint64_t address, void *data, size_t length)
{
	OK(prb_mem_read(prb_view_mem(r->view), address, data, length));
}

static void test_answers(void **state)
{
	struct recording r;
	prb_auto_str struct prb_str live = {}, replayed = {};

	(void)state;
	recording_init(&r);
	OK(prb_target_read_file(r.target, &live, "cmdline"));
	OK(prb_target_read_link(r.target, &live, "exe"));
	OK(prb_target_list(r.target, &live, "task"));
	struct prb_error *first = prb_target_read_file(r.target, &live, "no/such/%s", "fact");
	assert_non_null(first);
	prb_target_remember(r.target, "pc:abcd:1", "f\0line", 6);
	prb_target_remember(r.target, "pc:abcd:1", "g\0line", 6);
	prb_target_remember(r.target, "empty", "", 0);

	struct prb_target *t = write_and_open(&r);
	assert_int_equal(t->kind, PRB_TARGET_SNAPSHOT);
	assert_true(t->replayed && !t->live && !t->moves && !t->local && !t->loadable);
	assert_true(r.target->live && r.target->moves && r.target->local && r.target->loadable);
	assert_int_equal(t->pid, getpid());
	assert_int_equal(t->machine, r.target->machine);
	assert_true(t->time > r.target->time - 0.001 && t->time < r.target->time + 0.001);
	assert_int_equal(t->maps.list.count, r.target->maps.list.count);
	assert_false(prb_snapshot_redacted(t));
	OK(prb_target_read_file(t, &replayed, "cmdline"));
	OK(prb_target_read_link(t, &replayed, "exe"));
	OK(prb_target_list(t, &replayed, "task"));
	assert_int_equal(live.length, replayed.length);
	assert_memory_equal(live.data, replayed.data, live.length);

	struct prb_error *again = prb_target_read_file(t, &replayed, "no/such/fact");
	assert_non_null(again);
	assert_int_equal(again->code, first->code);
	assert_int_equal(again->os_errno, first->os_errno);
	assert_string_equal(again->message, first->message);
	prb_error_destroy(first);
	prb_error_destroy(again);

	expect_error(prb_target_read_file(t, &replayed, "environ"), PRB_ERROR_NOT_FOUND,
		     "was not read when", NULL);
	prb_str_truncate(&replayed, 0);
	assert_true(prb_target_recall(t, "pc:abcd:1", &replayed));
	assert_int_equal(replayed.length, 6);
	assert_memory_equal(replayed.data, "g\0line", 6);
	assert_true(prb_target_recall(t, "empty", &replayed));
	assert_false(prb_target_recall(t, "pc:abcd:", &replayed));
	assert_false(prb_target_recall(t, "pc:abcd:12", &replayed));
	prb_target_destroy(t);
	recording_deinit(&r);
}

/* An attached recorder notes answers, and leaves the target unchanged. */
static void test_attached(void **state)
{
	struct recording r;
	prb_auto_str struct prb_str text = {};

	(void)state;
	recording_init(&r);
	assert_true(prb_target_is_recorded(r.target));
	prb_recorder_detach(r.recorder);
	prb_recorder_detach(r.recorder);
	r.target->mem->kept = true;
	assert_false(prb_target_is_recorded(r.target));
	OK(prb_target_read_file(r.target, &text, "limits"));
	prb_target_remember(r.target, "unheard", "", 0);

	prb_recorder_attach(r.recorder, r.target);
	assert_false(prb_target_is_remote(r.target));
	OK(prb_target_read_file(r.target, &text, "cmdline"));
	prb_recorder_detach(r.recorder);
	assert_true(prb_target_is_remote(r.target));
	r.target->mem->kept = false;
	prb_recorder_attach(r.recorder, r.target);

	struct prb_target *t = write_and_open(&r);
	OK(prb_target_read_file(t, &text, "cmdline"));
	expect_error(prb_target_read_file(t, &text, "limits"), PRB_ERROR_NOT_FOUND,
		     "was not read when", NULL);
	assert_false(prb_target_recall(t, "unheard", &text));
	prb_target_destroy(t);
	recording_deinit(&r); /* the target ends first */
}

static void test_recorded_error(void **state)
{
	struct recording r;
	prb_auto_str struct prb_str text = {};
	struct prb_error *err = prb_error_hint(prb_error_os(EACCES, "cannot read x"), "be root");

	(void)state;
	recording_init(&r);
	prb_recorder_note(r.recorder, 'f', "syscall", NULL, 0, err);
	prb_error_destroy(err);

	struct prb_target *t = write_and_open(&r);
	err = prb_target_read_file(t, &text, "syscall");
	assert_non_null(err);
	assert_int_equal(err->code, PRB_ERROR_PERMISSION);
	assert_int_equal(err->os_errno, EACCES);
	assert_string_equal(err->hint, "be root");
	assert_non_null(strstr(err->message, "cannot read x: "));
	prb_error_destroy(err);
	prb_target_destroy(t);
	recording_deinit(&r);
}

static void test_registers(void **state)
{
	struct recording r;
	struct prb_regs regs = {.machine = 62, .pc = 0x1234}, got;

	(void)state;
	recording_init(&r);
	for (unsigned i = 0; i < 16; i++)
		prb_regs_set(&regs, i, 0x1000 + i);
	prb_target_note_registers(r.target, 77, &regs);
	regs.pc = 0x5678;
	prb_target_note_registers(r.target, 9, &regs);
	prb_regs_forget(&regs, 3);
	prb_target_note_registers(r.target, 9, &regs);

	struct prb_target *t = write_and_open(&r);
	OK(prb_target_registers(t, 77, &got));
	assert_int_equal(got.pc, 0x1234);
	assert_int_equal(got.known, 0xffff);
	OK(prb_target_registers(t, 9, &got));
	assert_int_equal(got.pc, 0x5678);
	assert_int_equal(got.known, 0xfff7);
	assert_int_equal(got.value[15], 0x100f);
	expect_error(prb_target_registers(t, 10, &got), PRB_ERROR_NOT_FOUND, "thread 10", NULL);
	prb_target_destroy(t);
	recording_deinit(&r);
}

static void test_memory(void **state)
{
	struct recording r;
	char got[2 * PRB_PAGE_SIZE];

	(void)state;
	recording_init(&r);
	uint64_t base = (uint64_t)r.memory;
	read_both(&r, base + PRB_PAGE_SIZE - 8, got, 16);
	prb_recorder_pages(r.recorder, 0, r.view);

	struct prb_target *t = write_and_open(&r);
	memset(got, 0, sizeof(got));
	OK(prb_mem_read(t->mem, base, got, sizeof(got)));
	assert_memory_equal(got, r.memory, sizeof(got));
	OK(prb_mem_read(t->mem, base + 3, got, 4099));
	assert_memory_equal(got, r.memory + 3, 4099);
	expect_error(prb_mem_read(t->mem, base + 2 * PRB_PAGE_SIZE, got, 1), PRB_ERROR_FAULT, NULL,
		     "take it again");
	expect_error(prb_mem_read(t->mem, base + 2 * PRB_PAGE_SIZE - 1, got, 2), PRB_ERROR_FAULT,
		     NULL, NULL);
	expect_error(prb_mem_read(t->mem, UINT64_MAX - 3, got, 64), PRB_ERROR_FAULT, NULL, NULL);
	assert_null(prb_snapshot_thread_mem(t, 5));
	assert_null(prb_snapshot_thread_mem(r.target, 5));
	prb_target_destroy(t);
	recording_deinit(&r);
}

/* A thread's memory: its overlay first, then the shared image. */
static void test_overlay(void **state)
{
	struct recording r;
	char got[PRB_PAGE_SIZE];

	(void)state;
	recording_init(&r);
	uint64_t base = (uint64_t)r.memory;
	read_both(&r, base, got, 1);
	read_both(&r, base + PRB_PAGE_SIZE, got, 1);
	prb_recorder_pages(r.recorder, 0, r.view);
	prb_recorder_pages(r.recorder, 8, r.view); /* the same as the shared image: nothing */

	prb_view_new_epoch(r.view);
	r.memory[5] = 'X';
	read_both(&r, base, got, 64);
	prb_recorder_pages(r.recorder, 7, r.view);

	struct prb_target *t = write_and_open(&r);
	struct prb_mem *mine = prb_snapshot_thread_mem(t, 7);
	assert_non_null(mine);
	assert_ptr_equal(mine, prb_snapshot_thread_mem(t, 7));
	assert_null(prb_snapshot_thread_mem(t, 8));
	OK(prb_mem_read(mine, base + 5, got, 1));
	assert_int_equal(got[0], 'X');
	OK(prb_mem_read(t->mem, base + 5, got, 1));
	assert_int_equal(got[0], 5 * 7);
	OK(prb_mem_read(mine, base + PRB_PAGE_SIZE, got, PRB_PAGE_SIZE));
	assert_memory_equal(got, r.memory + PRB_PAGE_SIZE, PRB_PAGE_SIZE);
	prb_target_destroy(t);
	recording_deinit(&r);
}

static bool file_holds(const char *path, const char *needle)
{
	prb_auto_fclose FILE *file = fopen(path, "re");
	prb_auto_free char *body = malloc(1 << 20);
	size_t n = fread(body, 1, 1 << 20, file);

	return memmem(body, n, needle, strlen(needle)) != NULL;
}

static void test_redaction(void **state)
{
	static const char cmdline[] = "python3\0train.py\0--token\0hunter2";
	static const char option[] = "prog\0--password=hunter2", zeros[56];
	struct recording r;
	prb_auto_str struct prb_str text = {};
	char got[PRB_PAGE_SIZE];

	(void)state;
	recording_init(&r);
	uint64_t base = (uint64_t)r.memory;
	strcpy(r.memory + 1024, "hunter2");
	strcpy(r.memory + 168, "hunter2");
	read_both(&r, base + 130, got, 2);
	read_both(&r, base + PRB_PAGE_SIZE - 1, got, 2);
	prb_recorder_pages(r.recorder, 0, r.view);
	prb_recorder_note(r.recorder, 'f', "cmdline", cmdline, sizeof(cmdline), NULL);
	prb_recorder_note(r.recorder, 'f', "environ", "K=hunter2", 10, NULL);
	prb_recorder_set_redact(r.recorder, true);

	struct prb_target *t = write_and_open(&r);
	assert_true(prb_snapshot_redacted(t));
	assert_false(file_holds(path_of("s"), "hunter2"));
	/* Only the words that were read, not their neighbours in a line. */
	OK(prb_mem_read(t->mem, base + 128, got, 64));
	assert_memory_equal(got, r.memory + 128, 8);
	assert_memory_equal(got + 8, zeros, 56);
	OK(prb_mem_read(t->mem, base + PRB_PAGE_SIZE - 64, got, 128));
	assert_memory_equal(got, zeros, 56);
	assert_memory_equal(got + 56, r.memory + PRB_PAGE_SIZE - 8, 16);
	assert_memory_equal(got + 72, zeros, 56);
	expect_error(prb_mem_read(t->mem, base + 127, got, 2), PRB_ERROR_FAULT, NULL, NULL);
	expect_error(prb_mem_read(t->mem, base + 128, got, 65), PRB_ERROR_FAULT, NULL, NULL);
	expect_error(prb_target_read_file(t, &text, "environ"), PRB_ERROR_NOT_FOUND, "left out",
		     NULL);
	OK(prb_target_read_file(t, &text, "cmdline"));
	static const char expected[] = "python3\0train.py\0[2 arguments left out]";
	assert_int_equal(text.length, sizeof(expected));
	assert_memory_equal(text.data, expected, sizeof(expected));
	prb_target_destroy(t);

	prb_recorder_note(r.recorder, 'f', "cmdline", option, sizeof(option), NULL);
	t = write_and_open(&r);
	prb_str_truncate(&text, 0);
	OK(prb_target_read_file(t, &text, "cmdline"));
	assert_memory_equal(text.data, "prog\0[1 argument left out]", 27);
	prb_target_destroy(t);
	recording_deinit(&r);
}

static void test_writing(void **state)
{
	struct recording r;
	struct stat st;

	(void)state;
	recording_init(&r);
	expect_error(prb_recorder_write(r.recorder, r.target, "/dev/null"), PRB_ERROR_USAGE,
		     "not a regular file", NULL);
	expect_error(prb_recorder_write(r.recorder, r.target, "/no/such/folder/s"), PRB_ERROR_OS,
		     "/no/such/folder/s", NULL);

	/* Through a link, over an old file. */
	char link[sizeof(folder) + 8];
	snprintf(link, sizeof(link), "%s/link", folder);
	assert_int_equal(symlink(path_of("s"), link), 0);
	close(creat(path_of("s"), 0644));
	OK(prb_recorder_write(r.recorder, r.target, link));
	assert_int_equal(stat(path_of("s"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_true(prb_snapshot_probe(link));
	assert_false(prb_snapshot_probe("/proc/self/exe"));
	assert_false(prb_snapshot_probe(folder));
	unlink(link);
	recording_deinit(&r);
}

static void test_too_much(void **state)
{
	struct recording r;
	prb_auto_free char *name = malloc(PRB_SNAPSHOT_MAX_NAME + 2);

	(void)state;
	recording_init(&r);
	memset(name, 'n', PRB_SNAPSHOT_MAX_NAME + 1);
	name[PRB_SNAPSHOT_MAX_NAME + 1] = '\0';
	prb_recorder_note(r.recorder, 'k', name, "", 0, NULL);
	for (int i = 0; i < 2; i++)
		expect_error(prb_recorder_write(r.recorder, r.target, path_of("s")),
			     PRB_ERROR_BAD_DATA, "more was read", NULL);
	recording_deinit(&r);
}

/* Bytes of a small snapshot with one record of each kind. */
static size_t sample(char *bytes, size_t size)
{
	struct recording r;
	struct prb_regs regs = {.machine = 62};
	char got[8];

	recording_init(&r);
	read_both(&r, (uint64_t)r.memory, got, 8);
	prb_recorder_pages(r.recorder, 0, r.view);
	prb_recorder_registers(r.recorder, 7, &regs);
	prb_recorder_note(r.recorder, 'f', "maps", "", 0, NULL);
	prb_recorder_set_redact(r.recorder, true);
	OK(prb_recorder_write(r.recorder, r.target, path_of("s")));
	recording_deinit(&r);

	prb_auto_fclose FILE *file = fopen(path_of("s"), "re");
	size_t n = fread(bytes, 1, size, file);
	assert_true(n > sizeof(struct snapshot_header) && n < size);
	return n;
}

static struct prb_error *open_bytes(const char *bytes, size_t length)
{
	struct prb_target *t;
	prb_auto_fclose FILE *file = fopen(path_of("s"), "we");

	fwrite(bytes, 1, length, file);
	fflush(file);
	struct prb_error *err = prb_target_open_snapshot(path_of("s"), &t);
	if (!err)
		prb_target_destroy(t);
	return err;
}

static void test_truncated(void **state)
{
	char bytes[4096];
	size_t n = sample(bytes, sizeof(bytes));

	(void)state;
	OK(open_bytes(bytes, n));
	for (size_t length = 0; length < n; length++)
		expect_error(open_bytes(bytes, length), PRB_ERROR_BAD_DATA,
			     length < 8	   ? "is not a snapshot"
			     : length < 88 ? "within its header"
					   : "bytes instead of",
			     length < 8 ? "probing snapshot" : "copy it again");
	bytes[n] = 0;
	expect_error(open_bytes(bytes, n + 1), PRB_ERROR_BAD_DATA, "bytes instead of", NULL);
}

static void test_every_bit_flipped(void **state)
{
	char bytes[4096];
	size_t n = sample(bytes, sizeof(bytes));

	(void)state;
	for (size_t i = 0; i < n; i++) {
		bytes[i] ^= (char)(1 << i % 8);
		struct prb_error *err = open_bytes(bytes, n);
		assert_non_null(err);
		/* A changed format number may seem to be another error. */
		assert_true(err->code == PRB_ERROR_BAD_DATA ||
			    (err->code == PRB_ERROR_UNSUPPORTED && (i == 8 || i == 9)));
		assert_non_null(err->hint);
		prb_error_destroy(err);
		bytes[i] ^= (char)(1 << i % 8);
	}
	OK(open_bytes(bytes, n));
}

static void test_mangled_and_newer(void **state)
{
	char bytes[4096];
	size_t n = sample(bytes, sizeof(bytes));

	(void)state;
	memmove(bytes + 5, bytes + 6, n - 6); /* \r\n became \n */
	expect_error(open_bytes(bytes, n - 1), PRB_ERROR_BAD_DATA, "as if it were text", "binary");
	n = sample(bytes, sizeof(bytes));
	bytes[8] = 2;
	expect_error(open_bytes(bytes, n), PRB_ERROR_UNSUPPORTED, "format 2",
		     "probing " PRB_VERSION);
}

static void test_not_files(void **state)
{
	struct prb_target *t;

	(void)state;
	expect_error(prb_target_open_snapshot("/no/such", &t), PRB_ERROR_OS, "/no/such", NULL);
	expect_error(prb_target_open_snapshot(folder, &t), PRB_ERROR_BAD_DATA, "not a regular",
		     NULL);
	expect_error(prb_target_open_snapshot("/dev/null", &t), PRB_ERROR_BAD_DATA, "not a regular",
		     NULL);
	expect_error(prb_target_open_snapshot("/bin/sh", &t), PRB_ERROR_BAD_DATA, "not a snapshot",
		     NULL);
}

/* A dump of many threads is complete, however it was spread over calls. */
static void test_large(void **state)
{
	enum { PAGES = 2000, THREADS = 10 };
	struct recording r;
	char page[PRB_PAGE_SIZE], got[PRB_PAGE_SIZE];
	char key[64];
	prb_auto_str struct prb_str text = {};

	(void)state;
	recording_init(&r);
	for (unsigned i = 0; i < PAGES; i++) {
		memset(page, (int)i, sizeof(page));
		memcpy(page, &i, sizeof(i));
		prb_recorder_page(r.recorder, (pid_t)(i % THREADS),
				  0x10000u + (i * 7919 % PAGES) * (uint64_t)PRB_PAGE_SIZE, page,
				  &(struct prb_page_marks){.bits = {1}});
		snprintf(key, sizeof(key), "pc:%u", i);
		prb_target_remember(r.target, key, &i, sizeof(i));
	}
	struct prb_target *t = write_and_open(&r);
	for (unsigned i = 0; i < PAGES; i++) {
		struct prb_mem *mem =
			i % THREADS ? prb_snapshot_thread_mem(t, (pid_t)(i % THREADS)) : t->mem;

		assert_non_null(mem);
		memset(page, (int)i, sizeof(page));
		memcpy(page, &i, sizeof(i));
		OK(prb_mem_read(mem, 0x10000u + (i * 7919 % PAGES) * (uint64_t)PRB_PAGE_SIZE, got,
				sizeof(got)));
		assert_memory_equal(page, got, sizeof(got));
		snprintf(key, sizeof(key), "pc:%u", i);
		prb_str_truncate(&text, 0);
		assert_true(prb_target_recall(t, key, &text));
		assert_memory_equal(text.data, &i, sizeof(i));
	}
	prb_target_destroy(t);
	recording_deinit(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answers),
		cmocka_unit_test(test_attached),
		cmocka_unit_test(test_recorded_error),
		cmocka_unit_test(test_registers),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_overlay),
		cmocka_unit_test(test_redaction),
		cmocka_unit_test(test_writing),
		cmocka_unit_test(test_too_much),
		cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_every_bit_flipped),
		cmocka_unit_test(test_mangled_and_newer),
		cmocka_unit_test(test_not_files),
		cmocka_unit_test(test_large),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
