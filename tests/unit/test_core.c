/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Cores made by hand: other machines, odd writers, files that lie. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/str.h"
#include "target/core/core.h"
#include "target/mem/local_file.h"
#include "target/target.h"
#include "tests/unit/skip.h"

#define OK(expression) assert_ok((expression), __LINE__)

static char path[] = "/tmp/probing-test-core.XXXXXX";

static void assert_ok(struct prb_error *err, int line)
{
	if (!err)
		return;
	print_error("line %d: %s (%s)\n", line, err->message, err->hint ? err->hint : "no hint");
	prb_error_destroy(err);
	fail();
}

static void expect_error(struct prb_error *err, enum prb_error_code code, const char *message)
{
	assert_non_null(err);
	if (err->code != code || (message && !strstr(err->message, message)))
		fail_msg("code %d: %s", err->code, err->message);
	prb_error_destroy(err);
}

/* A core in the making: segments and notes are added, then assembled. */
struct maker {
	uint16_t machine;
	struct prb_str segments, notes, data;
	unsigned count;
	bool compress, extended;
};

static void add_note(struct maker *m, const char *name, uint32_t type, const void *data,
		     size_t length)
{
	uint32_t head[] = {(uint32_t)strlen(name) + 1, (uint32_t)length, type};

	prb_str_append(&m->notes, head, sizeof(head));
	prb_str_append(&m->notes, name, head[0]);
	while (m->notes.length % 4)
		prb_str_putc(&m->notes, '\0');
	prb_str_append(&m->notes, data, length);
	while (m->notes.length % 4)
		prb_str_putc(&m->notes, '\0');
}

/* p_offset is relative to the data until make() corrects it. */
static void add_segment(struct maker *m, uint64_t address, const void *data, size_t stored,
			uint64_t size, uint32_t flags)
{
	Elf64_Phdr ph = {
		.p_type = PT_LOAD,
		.p_flags = flags,
		.p_offset = m->data.length,
		.p_vaddr = address,
		.p_filesz = stored,
		.p_memsz = size,
	};

	prb_str_append(&m->data, data, stored);
	prb_str_append(&m->segments, &ph, sizeof(ph));
	m->count++;
}

static void add_thread(struct maker *m, int tid, int signal, uint64_t first)
{
	char status[392] = {};
	uint64_t regs[34];
	size_t count = m->machine == EM_AARCH64 ? 34 : 27;

	for (size_t i = 0; i < 34; i++)
		regs[i] = first + i;
	memcpy(status + 12, &signal, 2);
	memcpy(status + 32, &tid, 4);
	memcpy(status + 112, regs, count * 8);
	add_note(m, "CORE", NT_PRSTATUS, status, 112 + count * 8 + 8);
}

static void add_process(struct maker *m, int pid, const char *name, const char *arguments)
{
	char info[136] = {0, 'S'};

	memcpy(info + 24, &pid, 4);
	memcpy(info + 40, name, strlen(name));
	memcpy(info + 56, arguments, strlen(arguments));
	add_note(m, "CORE", NT_PRPSINFO, info, sizeof(info));
}

static void add_file(struct maker *m, uint64_t start, uint64_t end, uint64_t offset,
		     const char *name)
{
	uint64_t words[] = {1, 4096, start, end, offset / 4096};
	char note[512];

	memcpy(note, words, sizeof(words));
	strcpy(note + sizeof(words), name);
	add_note(m, "CORE", NT_FILE, note, sizeof(words) + strlen(name) + 1);
}

static void put_notes(struct maker *m, FILE *file, uint64_t at)
{
	static unsigned char packed[1 << 16];
	uLongf size = sizeof(packed);
	Elf64_Chdr ch = {.ch_type = ELFCOMPRESS_ZLIB, .ch_size = m->notes.length};

	fseek(file, (long)at, SEEK_SET);
	if (!m->compress) {
		fwrite(prb_str_text(&m->notes), 1, m->notes.length, file);
		return;
	}
	assert_int_equal(compress(packed, &size, (Bytef *)m->notes.data, m->notes.length), Z_OK);
	fwrite(&ch, sizeof(ch), 1, file);
	fwrite(packed, 1, size, file);
	Elf64_Shdr sh = {.sh_type = SHT_NOTE,
			 .sh_flags = SHF_COMPRESSED,
			 .sh_offset = at,
			 .sh_size = sizeof(ch) + size};
	fseek(file, 64, SEEK_SET);
	fwrite(&sh, sizeof(sh), 1, file);
}

/* Headers, one section header at 64, program headers at 128, data, notes. */
static void make(struct maker *m)
{
	Elf64_Ehdr eh = {
		.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
		.e_type = ET_CORE,
		.e_machine = m->machine,
		.e_ehsize = 64,
		.e_phoff = 128,
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = m->extended ? PN_XNUM : (uint16_t)(m->count + !m->compress),
		.e_shoff = 64,
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = 1,
	};
	Elf64_Shdr sh = {.sh_info = m->count + 1};
	uint64_t data = 128 + (m->count + 1) * sizeof(Elf64_Phdr);
	Elf64_Phdr note = {
		.p_type = PT_NOTE, .p_offset = data + m->data.length, .p_filesz = m->notes.length};
	prb_auto_fclose FILE *file = fopen(path, "we");

	assert_non_null(file);
	fwrite(&eh, sizeof(eh), 1, file);
	fwrite(&sh, sizeof(sh), 1, file);
	for (unsigned i = 0; i < m->count; i++) {
		Elf64_Phdr ph;

		memcpy(&ph, m->segments.data + i * sizeof(ph), sizeof(ph));
		ph.p_offset += data;
		fwrite(&ph, sizeof(ph), 1, file);
	}
	fwrite(&note, sizeof(note), 1, file);
	fwrite(prb_str_text(&m->data), 1, m->data.length, file);
	put_notes(m, file, data + m->data.length);
}

static void maker_deinit(struct maker *m)
{
	prb_str_deinit(&m->segments);
	prb_str_deinit(&m->notes);
	prb_str_deinit(&m->data);
}
#define auto_maker __attribute__((cleanup(maker_deinit)))

static struct prb_target *open_made(struct maker *m)
{
	struct prb_target *t;

	make(m);
	OK(prb_target_open_core(path, NULL, &t));
	return t;
}

static void test_x86_64(void **state)
{
	auto_maker struct maker m = {.machine = EM_X86_64};
	struct prb_regs regs;
	uint64_t value;
	char got[8];

	(void)state;
	add_segment(&m, 0x1000, "abcdefgh", 8, 8192, PF_R | PF_W);
	add_thread(&m, 42, SIGSEGV, 1000);
	add_thread(&m, 41, SIGSEGV, 2000);
	add_process(&m, 41, "prog", "prog one two");
	struct {
		int signal, error, code, pad;
		uint64_t address, rest[13];
	} info = {.signal = SIGSEGV, .code = SEGV_MAPERR, .address = 0xdead};
	add_note(&m, "CORE", NT_SIGINFO, &info, sizeof(info));

	struct prb_target *t = open_made(&m);
	assert_int_equal(t->pid, 41);
	assert_int_equal(prb_core_info(t)->signal, SIGSEGV);
	assert_int_equal(prb_core_info(t)->signal_tid, 42);
	assert_int_equal(prb_core_info(t)->signal_code, SEGV_MAPERR);
	assert_int_equal(prb_core_info(t)->fault_address, 0xdead);
	assert_true(prb_core_info(t)->signal_told && prb_core_info(t)->fault_told);
	assert_int_equal(prb_core_info(t)->signal_sender, 0);
	OK(prb_target_registers(t, 42, &regs));
	assert_int_equal(regs.pc, 1016);
	/* By DWARF number: rax rdx rcx rbx rsi rdi rbp rsp r8 … r15. */
	static const unsigned places[] = {10, 12, 11, 5, 13, 14, 4, 19, 9, 8, 7, 6, 3, 2, 1, 0};
	for (unsigned i = 0; i < 16; i++) {
		assert_true(prb_regs_get(&regs, i, &value));
		assert_int_equal(value, 1000 + places[i]);
	}
	assert_false(prb_regs_get(&regs, PRB_REG_X86_64_RA, &value));
	expect_error(prb_target_registers(t, 43, &regs), PRB_ERROR_NO_PROCESS, "no thread 43");

	OK(prb_mem_read(t->mem, 0x1000, got, 8));
	assert_memory_equal(got, "abcdefgh", 8);
	expect_error(prb_mem_read(t->mem, 0x1001, got, 8), PRB_ERROR_FAULT, "0x1008");

	prb_auto_str struct prb_str text = {};
	OK(prb_target_read_file(t, &text, "cmdline"));
	assert_int_equal(text.length, 13);
	assert_memory_equal(text.data, "prog\0one\0two", 13);
	prb_str_truncate(&text, 0);
	OK(prb_target_read_file(t, &text, "task/41/syscall"));
	assert_string_equal(text.data, "2015 0x7de 0x7dd 0x7dc 0x7d7 0x7d9 0x7d8 0x7e3 0x7e0\n");
	prb_str_truncate(&text, 0);
	OK(prb_target_list(t, &text, "task"));
	assert_string_equal(text.data, "41\n42\n");
	expect_error(prb_target_read_file(t, &text, "environ"), PRB_ERROR_NOT_FOUND, NULL);
	expect_error(prb_target_read_file(t, &text, "task/41/wchan"), PRB_ERROR_NOT_FOUND, NULL);
	expect_error(prb_target_read_file(t, &text, "task/9/stat"), PRB_ERROR_NO_PROCESS, NULL);
	expect_error(prb_target_list(t, &text, "fd"), PRB_ERROR_NOT_FOUND, "'fd'");
	prb_target_destroy(t);
}

static void test_aarch64(void **state)
{
	auto_maker struct maker m = {.machine = EM_AARCH64};
	prb_auto_str struct prb_str text = {};
	struct prb_regs regs;
	uint64_t value;
	int number = 98;

	(void)state;
	add_segment(&m, 0x1000, "", 0, 4096, PF_R);
	add_thread(&m, 7, SIGABRT, 500);
	add_thread(&m, 8, SIGABRT, 600);
	add_note(&m, "LINUX", NT_ARM_SYSTEM_CALL, &number, sizeof(number));

	struct prb_target *t = open_made(&m);
	assert_int_equal(t->machine, EM_AARCH64);
	assert_int_equal(t->pid, 7);
	OK(prb_target_registers(t, 8, &regs));
	assert_int_equal(regs.pc, 632);
	assert_true(prb_regs_get(&regs, PRB_REG_AARCH64_SP, &value));
	assert_int_equal(value, 631);
	assert_true(prb_regs_get(&regs, PRB_REG_AARCH64_LR, &value));
	assert_int_equal(value, 630);
	assert_false(prb_regs_get(&regs, PRB_REG_AARCH64_SIGN_STATE, &value));
	OK(prb_target_read_file(t, &text, "task/8/stat"));
	assert_memory_equal(text.data, "8 () S ", 7);
	prb_str_truncate(&text, 0);
	OK(prb_target_read_file(t, &text, "task/7/stat"));
	assert_memory_equal(text.data, "7 () R ", 7);
	expect_error(prb_target_read_file(t, &text, "task/8/syscall"), PRB_ERROR_NOT_FOUND, NULL);
	prb_target_destroy(t);
}

static void test_maps(void **state)
{
	auto_maker struct maker m = {.machine = EM_X86_64};
	prb_auto_str struct prb_str text = {};
	uint64_t auxv[] = {AT_SYSINFO_EHDR, 0x9000, AT_RANDOM, 0xb010, 0, 0};

	(void)state;
	add_segment(&m, 0xb000, "", 0, 0x1000, PF_R | PF_W);
	add_segment(&m, 0x1000, "", 0, 0x1000, PF_R);
	add_segment(&m, 0x2000, "", 0, 0x4000, PF_R | PF_W);
	add_segment(&m, 0x9000, "", 0, 0x2000, PF_R | PF_X);
	add_thread(&m, 1, 0, 0);
	add_note(&m, "CORE", NT_AUXV, auxv, sizeof(auxv));
	add_file(&m, 0x1000, 0x3000, 0x5000, "/no/such\nfile (deleted)");

	struct prb_target *t = open_made(&m);
	OK(prb_target_read_file(t, &text, "maps"));
	assert_string_equal(text.data,
			    "00001000-00002000 r--p 00005000 00:00 1 /no/such\\012file (deleted)\n"
			    "00002000-00003000 rw-p 00006000 00:00 1 /no/such\\012file (deleted)\n"
			    "00003000-00006000 rw-p 00000000 00:00 0 \n"
			    "00009000-0000b000 r-xp 00000000 00:00 0 [vdso]\n"
			    "0000b000-0000c000 rw-p 00000000 00:00 0 [stack]\n");
	assert_int_equal(t->maps.list.count, 5);
	assert_string_equal(t->maps.list.items[0].path, "/no/such\nfile");
	assert_true(t->maps.list.items[0].deleted);
	prb_target_destroy(t);
}

/* gcore leaves unchanged files out: memory comes from the file itself. */
static void test_file_without_segment(void **state)
{
	auto_maker struct maker m = {.machine = EM_X86_64};
	char here[4096], got[4096];
	prb_auto_close int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	prb_auto_free char *self = realpath("/proc/self/exe", NULL);
	struct stat st;

	(void)state;
	assert_int_equal(pread(fd, here, sizeof(here), 4096), sizeof(here));
	assert_int_equal(fstat(fd, &st), 0);
	add_file(&m, 0x10000, 0x14000, 0, self);
	add_thread(&m, 1, 0, 0);

	/* With nothing to compare, a file older than the core is believed. */
	struct prb_target *t = open_made(&m);
	OK(prb_mem_read(t->mem, 0x11000, got, sizeof(got)));
	assert_memory_equal(here, got, sizeof(got));
	OK(prb_mem_read(t->mem, 0x11ffd, got, 6));
	expect_error(prb_mem_read(t->mem, 0x13fff, got, 2), PRB_ERROR_FAULT, "0x14000");
	prb_target_destroy(t);

	/* A newer file is not. */
	struct timespec times[2] = {{.tv_sec = st.st_mtime - 10}, {.tv_sec = st.st_mtime - 10}};
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
	OK(prb_target_open_core(path, NULL, &t));
	struct prb_error *err = prb_mem_read(t->mem, 0x11000, got, 1);
	assert_non_null(err);
	assert_non_null(err->hint);
	assert_non_null(strstr(err->hint, "cannot be told"));
	prb_error_destroy(err);
	prb_target_destroy(t);

	/* With the first page in the core: the same build, then another one. */
	assert_int_equal(pread(fd, here, sizeof(here), 0), sizeof(here));
	add_segment(&m, 0x10000, here, sizeof(here), 0x1000, PF_R);
	t = open_made(&m);
	OK(prb_mem_read(t->mem, 0x10ff0, got, 32));
	prb_target_destroy(t);

	struct prb_build_id id;
	prb_build_id_of_file(fd, &id);
	if (!id.length)
		SKIP("this program has no build ID");
	char *note = memmem(m.data.data, m.data.length, id.bytes, id.length);
	assert_non_null(note);
	note[3] ^= 1;
	t = open_made(&m);
	err = prb_mem_read(t->mem, 0x10ff0, got, 32);
	assert_non_null(err);
	assert_non_null(err->hint);
	assert_non_null(strstr(err->hint, "another build"));
	prb_error_destroy(err);

	int opened = -1;
	expect_error(prb_target_open_map(t, &t->maps.list.items[0], &opened), PRB_ERROR_NOT_FOUND,
		     "another build");
	expect_error(prb_target_open_file(t, self, &opened), PRB_ERROR_NOT_FOUND, "another build");
	prb_target_destroy(t);
}

/* Writable memory missing in the core is not filled from the file. */
static void test_writable_is_not_guessed(void **state)
{
	auto_maker struct maker m = {.machine = EM_X86_64};
	prb_auto_free char *self = realpath("/proc/self/exe", NULL);
	char got[8];

	(void)state;
	add_segment(&m, 0x10000, "", 0, 0x1000, PF_R | PF_W);
	add_segment(&m, 0x11000, "", 0, 0x1000, PF_R);
	add_file(&m, 0x10000, 0x12000, 0, self);
	add_thread(&m, 1, 0, 0);
	struct prb_target *t = open_made(&m);
	expect_error(prb_mem_read(t->mem, 0x10000, got, 8), PRB_ERROR_FAULT, NULL);
	OK(prb_mem_read(t->mem, 0x11000, got, 8));
	prb_target_destroy(t);
}

static void test_compressed_note_section(void **state)
{
	auto_maker struct maker m = {.machine = EM_X86_64, .compress = true};
	prb_auto_str struct prb_str text = {};

	(void)state;
	add_segment(&m, 0x1000, "abc", 3, 4096, PF_R);
	for (int tid = 1; tid <= 50; tid++)
		add_thread(&m, tid, 0, 0);
	struct prb_target *t = open_made(&m);
	OK(prb_target_list(t, &text, "task"));
	assert_non_null(strstr(text.data, "\n50\n"));
	prb_target_destroy(t);

	/* A section that claims to unpack to more than it does, then to far too much. */
	prb_auto_close int fd = open(path, O_RDWR | O_CLOEXEC);
	Elf64_Shdr sh;
	assert_int_equal(pread(fd, &sh, sizeof(sh), 64), sizeof(sh));
	for (uint64_t size = m.notes.length + 1; size < 1ULL << 40; size <<= 20) {
		assert_int_equal(pwrite(fd, &size, 8, (off_t)sh.sh_offset + 8), 8);
		expect_error(prb_target_open_core(path, NULL, &t), PRB_ERROR_BAD_DATA,
			     size >> 30 ? "256 MiB" : "compressed notes");
	}
}

static void test_many_segments(void **state)
{
	enum { SEGMENTS = 70000 };
	auto_maker struct maker m = {.machine = EM_X86_64, .extended = true};
	char got[4];

	(void)state;
	add_thread(&m, 1, 0, 0);
	for (uint64_t i = 0; i < SEGMENTS; i++) {
		uint32_t content = (uint32_t)i;

		add_segment(&m, (SEGMENTS - i) * 8192, &content, 4, 4096, PF_R | PF_W);
	}
	struct prb_target *t = open_made(&m);
	assert_int_equal(t->maps.list.count, SEGMENTS);
	for (uint32_t i = 0; i < SEGMENTS; i += 997) {
		OK(prb_mem_read(t->mem, (SEGMENTS - (uint64_t)i) * 8192, got, 4));
		assert_memory_equal(got, &i, 4);
	}
	prb_target_destroy(t);
}

static void test_overlapping_segments(void **state)
{
	auto_maker struct maker m = {.machine = EM_X86_64};
	char got[8];

	(void)state;
	add_segment(&m, 0x1004, "efghijkl", 8, 8, PF_R);
	add_segment(&m, 0x1000, "ABCDEFGH", 8, 8, PF_R);
	add_segment(&m, 0x1002, "xx", 2, 2, PF_R);
	add_segment(&m, UINT64_MAX - 4, "xxxxxxxx", 8, 8, PF_R);
	struct prb_target *t = open_made(&m);
	assert_int_equal(t->maps.list.count, 2);
	OK(prb_mem_read(t->mem, 0x1004, got, 8));
	assert_memory_equal(got, "EFGHijkl", 8);
	expect_error(prb_mem_read(t->mem, UINT64_MAX - 4, got, 8), PRB_ERROR_FAULT, NULL);
	prb_target_destroy(t);
}

static void test_stack_strings(void **state)
{
	auto_maker struct maker m = {.machine = EM_X86_64};
	prb_auto_str struct prb_str text = {};
	enum { BASE = 0x70000, STRINGS = 0x70200, RANDOM = 0x701f0 };
	uint64_t auxv[] = {AT_RANDOM, RANDOM, AT_EXECFN, STRINGS + 15,
			   AT_PAGESZ, 4096,   AT_UID,	 0,
			   AT_GID,    0,      0,	 0};
	uint64_t words[] = {0, 2, STRINGS, STRINGS + 4, 0, STRINGS + 7, STRINGS + 11, 0};
	char stack[0x1000] = {};

	(void)state;
	memcpy(stack, words, sizeof(words));
	memcpy(stack + sizeof(words), auxv, sizeof(auxv));
	memcpy(stack + 0x200, "prg\0-x\0A=1\0B=2\0/bin/prg", 24);
	add_segment(&m, BASE, stack, sizeof(stack), 0x1000, PF_R | PF_W);
	add_note(&m, "CORE", NT_AUXV, auxv, sizeof(auxv));
	add_thread(&m, 1, 0, 0);
	struct prb_target *t = open_made(&m);
	OK(prb_target_read_file(t, &text, "cmdline"));
	assert_int_equal(text.length, 7);
	assert_memory_equal(text.data, "prg\0-x", 7);
	prb_str_truncate(&text, 0);
	OK(prb_target_read_file(t, &text, "environ"));
	assert_int_equal(text.length, 8);
	assert_memory_equal(text.data, "A=1\0B=2", 8);
	prb_str_truncate(&text, 0);
	OK(prb_target_read_link(t, &text, "exe"));
	assert_string_equal(text.data, "/bin/prg");
	expect_error(prb_target_read_link(t, &text, "cwd"), PRB_ERROR_NOT_FOUND, "'cwd'");
	prb_target_destroy(t);
}

static void write_file(const char *text)
{
	prb_auto_fclose FILE *file = fopen(path, "we");

	fputs(text, file);
}

static void test_refused(void **state)
{
	struct prb_target *t;
	auto_maker struct maker m = {.machine = EM_386};

	(void)state;
	expect_error(prb_target_open_core("/no/such", NULL, &t), PRB_ERROR_OS, "/no/such");
	expect_error(prb_target_open_core("/tmp", NULL, &t), PRB_ERROR_BAD_DATA, "regular file");
	expect_error(prb_target_open_core("/dev/zero", NULL, &t), PRB_ERROR_BAD_DATA,
		     "regular file");
	expect_error(prb_target_open_core("/bin/sh", NULL, &t), PRB_ERROR_BAD_DATA,
		     "program or library");
	assert_false(prb_core_probe("/no/such"));
	assert_false(prb_core_probe("/tmp"));
	assert_false(prb_core_probe("/bin/sh"));
	write_file("");
	assert_false(prb_core_probe(path));
	expect_error(prb_target_open_core(path, NULL, &t), PRB_ERROR_BAD_DATA, "empty");
	write_file("#!/bin/sh\n# a text that is longer than the header of an ELF file is\n");
	expect_error(prb_target_open_core(path, NULL, &t), PRB_ERROR_BAD_DATA, "not an ELF file");
	write_file("\x04\x22\x4d\x18 and so on");
	expect_error(prb_target_open_core(path, NULL, &t), PRB_ERROR_UNSUPPORTED, "lz4");
	write_file("\x1f\x8b\x08 and not so on");
	expect_error(prb_target_open_core(path, NULL, &t), PRB_ERROR_BAD_DATA, "gzip");
	write_file("\x28\xb5\x2f\xfd and not so on");
	expect_error(prb_target_open_core(path, NULL, &t), PRB_ERROR_BAD_DATA, "zstd");
	make(&m);
	expect_error(prb_target_open_core(path, NULL, &t), PRB_ERROR_UNSUPPORTED, "machine");
	m.machine = EM_X86_64;
	make(&m);
	expect_error(prb_target_open_core(path, NULL, &t), PRB_ERROR_BAD_DATA, "neither memory");
}

/* A note that does not fit ends the walk; a note of another owner is not ours. */
static void add_fact(struct maker *m, const char *text, size_t length)
{
	add_note(m, "PROBING", 1, text, length);
}

/* A crash record: original texts of /proc win over reconstructed ones. */
static void test_facts_of_a_record(void **state)
{
	static const char crash[] = "crash\0version=1\ntid=42\nseconds=100\nmicroseconds=500000\n"
				    "left_out=00000000000000008192\nwithout_registers=2\n";
	static const char said[] = "exception\0Traceback\nValueError: no\n";
	auto_maker struct maker m = {.machine = EM_X86_64};
	prb_auto_str struct prb_str text = {};

	(void)state;
	add_segment(&m, 0x1000, "abcdefgh", 8, 4096, PF_R | PF_W);
	add_thread(&m, 42, 0, 1000);
	add_fact(&m, crash, sizeof(crash) - 1);
	add_fact(&m, said, sizeof(said) - 1);
	add_fact(&m, "task/42/comm\0worker\n", 20);
	add_fact(&m, "maps\0001000-2000 rw-p 00000000 00:00 0 [heap]\n", 44);
	add_fact(&m, "fd/7\0socket:[1]", 15);
	add_fact(&m, "fd/x\0no number", 14);
	add_fact(&m, "no end of the name", 18);

	struct prb_target *t = open_made(&m);
	const struct prb_core_info *info = prb_core_info(t);

	assert_true(info->recorded);
	assert_int_equal(info->signal, 0);
	assert_int_equal(info->signal_tid, 42);
	assert_int_equal(info->left_out, 8192);
	assert_int_equal(info->without_registers, 2);
	assert_true(t->time == 100.5);
	assert_int_equal(info->exception_length, sizeof(said) - 11);
	assert_memory_equal(info->exception, "Traceback", 9);
	OK(prb_target_read_file(t, &text, "task/42/comm"));
	assert_string_equal(prb_str_text(&text), "worker\n");
	prb_str_truncate(&text, 0);
	OK(prb_target_read_link(t, &text, "fd/7"));
	assert_string_equal(prb_str_text(&text), "socket:[1]");
	prb_str_truncate(&text, 0);
	OK(prb_target_list(t, &text, "fd"));
	assert_string_equal(prb_str_text(&text), "7\n");
	prb_target_destroy(t);
}

static void test_odd_notes(void **state)
{
	auto_maker struct maker m = {.machine = EM_X86_64};
	prb_auto_str struct prb_str text = {};
	uint32_t bad[] = {5, 0xfffffff0, NT_PRSTATUS};
	uint64_t huge[] = {UINT64_MAX / 8, 4096, 0x1000, 0x2000, 0};

	(void)state;
	add_segment(&m, 0x1000, "", 0, 4096, PF_R);
	add_note(&m, "CORE", NT_PRSTATUS, "short", 5);
	add_note(&m, "CORE", NT_FILE, huge, sizeof(huge));
	add_note(&m, "CORE", NT_FILE, huge, 3);
	add_note(&m, "CORE", NT_AUXV, huge, 9);
	add_note(&m, "OTHER", NT_PRSTATUS, huge, sizeof(huge));
	add_thread(&m, 5, 0, 0);
	add_thread(&m, 5, 0, 0);
	prb_str_append(&m.notes, bad, sizeof(bad));
	struct prb_target *t = open_made(&m);
	OK(prb_target_list(t, &text, "task"));
	assert_string_equal(text.data, "5\n");
	prb_target_destroy(t);
}

static int make_file(void **state)
{
	int fd = mkstemp(path);

	(void)state;
	return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state)
{
	(void)state;
	return unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_x86_64),
		cmocka_unit_test(test_aarch64),
		cmocka_unit_test(test_maps),
		cmocka_unit_test(test_file_without_segment),
		cmocka_unit_test(test_writable_is_not_guessed),
		cmocka_unit_test(test_compressed_note_section),
		cmocka_unit_test(test_many_segments),
		cmocka_unit_test(test_overlapping_segments),
		cmocka_unit_test(test_stack_strings),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_facts_of_a_record),
		cmocka_unit_test(test_odd_notes),
	};

	return cmocka_run_group_tests(tests, make_file, remove_file);
}
