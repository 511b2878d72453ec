/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Files that others may change are copied instead of mapped, and may be truncated at any time. */
#include "elf_helpers.h"

#include <elf.h>
#include <sys/mman.h>

#include "base/file.h"
#include "dwarf/elf/copy.h"
#include "tests/unit/skip.h"

static const char sample[] = "int counter;\n"
			     "static int hidden(int x) { return x * 3 + counter; }\n"
			     "int (*volatile indirect)(int) = hidden;\n"
			     "int visible(int x) { return indirect(x) + 1; }\n";

static const char *const sections[] = {".text",	    ".debug_info", ".debug_str", ".eh_frame_hdr",
				       ".dynamic",  ".symtab",	   ".strtab",	 ".bss",
				       ".gnu.hash", ".comment"};

static void make_sample(void)
{
	assert_int_equal(chmod(folder, 0755), 0);
	compile("lib.so", sample, "-g -gz=zlib -shared -fPIC -Wl,--build-id=0xabcdef");
}

static bool is_safe(const char *name, const char *path)
{
	prb_auto_free char *file = in_folder(name);
	prb_auto_close int fd = open(file, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	return prb_file_is_safe(fd, path ? path : file);
}

static void test_safe(void **state)
{
	(void)state;
	make_sample();
	assert_true(run("chmod 644 lib.so; cp lib.so other.so; chmod 644 other.so"));
	assert_true(is_safe("lib.so", NULL));
	assert_true(run("chmod 646 lib.so"));
	assert_false(is_safe("lib.so", NULL));
	assert_true(run("chmod 664 lib.so; chown :$(id -u) lib.so || true"));
	assert_int_equal(is_safe("lib.so", NULL), getuid() == getgid());
	if (geteuid())
		return;

	/* Owned by root: safe only if our own root has the file at that path. */
	assert_true(run("chmod 644 lib.so; mkfifo fifo; ln -s lib.so link.so"));
	prb_auto_free char *other = in_folder("other.so"), *link = in_folder("link.so"),
			   *fifo = in_folder("fifo");
	assert_true(is_safe("lib.so", link));
	assert_false(is_safe("lib.so", other));
	assert_false(is_safe("lib.so", fifo));
	assert_false(is_safe("lib.so", "lib.so"));
	assert_false(is_safe("lib.so", "/nowhere"));
	assert_true(run("chgrp 2345 lib.so; chmod 664 lib.so"));
	assert_false(is_safe("lib.so", NULL));
	assert_true(run("chmod 644 lib.so; chown 2001 lib.so"));
	assert_false(is_safe("lib.so", NULL));
}

/* A file system mounted by a user can claim any owner. */
static void test_mounted_by_a_user(void **state)
{
	(void)state;
	make_sample();
	if (geteuid() ||
	    !run("mkdir mnt; mount -t tmpfs -o nosuid,nodev none mnt && cp lib.so mnt/"))
		SKIP("needs root that may mount");

	bool nosuid = is_safe("mnt/lib.so", NULL);
	bool mounted = run("mount -o remount,suid mnt");
	bool suid = is_safe("mnt/lib.so", NULL);

	assert_true(run("umount mnt"));
	assert_false(nosuid);
	assert_int_equal(suid, mounted);
}

static void assert_same_section(struct prb_elf *one, struct prb_elf *other, const char *name)
{
	uint64_t address[2], size[2];
	const void *data[2];

	assert_ok(prb_elf_section(one, name, &address[0], &size[0], &data[0]));
	assert_ok(prb_elf_section(other, name, &address[1], &size[1], &data[1]));
	assert_int_equal(address[0], address[1]);
	assert_int_equal(size[0], size[1]);
	assert_int_equal(!data[0], !data[1]);
	if (data[0])
		assert_memory_equal(data[0], data[1], size[0]);
}

static void test_same_as_mapped(void **state)
{
	struct prb_elf_symbol one = {}, other = {};
	(void)state;

	make_sample();
	struct prb_elf *mapped = open_made("lib.so");
	assert_true(run("cp lib.so copy.so; chmod 666 copy.so"));
	struct prb_elf *copied = open_made("copy.so");

	assert_true(prb_elf_is_safe(mapped));
	assert_false(prb_elf_is_safe(copied));
	assert_string_equal(prb_elf_build_id(mapped), prb_elf_build_id(copied));
	assert_string_equal(prb_elf_build_id(copied), "abcdef");
	for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++)
		assert_same_section(mapped, copied, sections[i]);
	assert_ok(prb_elf_symbol(mapped, "hidden", &one));
	assert_ok(prb_elf_symbol(copied, "hidden", &other));
	assert_int_equal(one.address, other.address);
	assert_ok(prb_elf_symbol_at(copied, one.address + 1, &other));
	assert_string_equal(other.name, "hidden");
	prb_elf_close(mapped);
	prb_elf_close(copied);
}

/* Unread parts of a truncated file are missing; no SIGBUS may end us. */
static void test_cut_off(void **state)
{
	prb_auto_free char *path = in_folder("lib.so");
	(void)state;

	make_sample();
	/* Far beyond the part that is read with the headers. */
	assert_true(run("head -c 1000000 /dev/zero >zeros; "
			"objcopy --add-section .far=zeros lib.so; chmod 666 lib.so"));
	struct prb_elf *elf = open_made("lib.so");
	const void *data;
	uint64_t size;

	assert_false(prb_elf_is_safe(elf));
	assert_int_equal(truncate(path, 0), 0);
	assert_error(prb_elf_section(elf, ".far", NULL, &size, &data), PRB_ERROR_BAD_DATA);
	for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++)
		prb_error_destroy(prb_elf_section(elf, sections[i], NULL, &size, &data));
	prb_elf_close(elf);
}

static void test_bounds(void **state)
{
	prb_auto_free char *path = in_folder("sparse");
	struct prb_copy copy;
	(void)state;

	assert_true(run("rm -f sparse; truncate -s 8T sparse"));
	prb_auto_close int fd = open(path, O_RDWR | O_CLOEXEC);
	assert_error(prb_copy_init(fd, "sparse", &copy), PRB_ERROR_UNSUPPORTED);
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_error(prb_copy_init(fd, "sparse", &copy), PRB_ERROR_UNSUPPORTED);
	assert_int_equal(ftruncate(fd, 5LL << 30), 0);
	assert_int_equal(pwrite(fd, "x", 1, 100000), 1);
	assert_ok(prb_copy_init(fd, "sparse", &copy));
	assert_true(prb_copy_need(&copy, 0, 0));
	assert_true(prb_copy_need(&copy, 99990, 20));
	assert_int_equal(copy.room[100000], 'x');
	assert_int_equal(copy.room[100001], 0);
	assert_int_equal(copy.copied, 16384);
	assert_true(prb_copy_need(&copy, 0, 200000));
	assert_true(copy.copied >= 200000 && copy.copied < 250000);
	assert_true(prb_copy_need(&copy, (5LL << 30) - 1, 1));
	assert_false(prb_copy_need(&copy, 0, 5LL << 30));
	prb_copy_deinit(&copy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_safe),	       cmocka_unit_test(test_mounted_by_a_user),
		cmocka_unit_test(test_same_as_mapped), cmocka_unit_test(test_cut_off),
		cmocka_unit_test(test_bounds),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
