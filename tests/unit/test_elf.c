/* SPDX-License-Identifier: GPL-3.0-or-later */
/* ELF files against what readelf and nm say about them, and against broken ones. */
#include "elf_helpers.h"

#include <elf.h>
#include <glob.h>
#include <sys/mman.h>

#include "base/checked.h"
#include "tests/unit/in_range.h"
#include "tests/unit/skip.h"

static const char sample[] = "int counter;\n"
			     "static int hidden(int x) { return x * 3 + counter; }\n"
			     "int (*volatile indirect)(int) = hidden;\n"
			     "int visible(int x) { return indirect(x) + 1; }\n"
			     "int visible_alias(int x) __attribute__((alias(\"visible\")));\n"
			     "__thread int per_thread;\n"
			     "static int (*pick(void))(int) { return hidden; }\n"
			     "int picked(int x) __attribute__((ifunc(\"pick\")));\n"
			     "__asm__(\".text\\n.globl assembled\\nassembled: .skip 32\\n\");\n"
			     "int main(void) { return visible(2) + picked(1) + per_thread; }\n";

/** Files that every test of real ones looks at, as far as they exist. */
static const char *const real_files[] = {
	"/proc/self/exe",
	"/usr/lib/x86_64-linux-gnu/libc.so.6",
	"/usr/lib/aarch64-linux-gnu/libc.so.6",
	"/usr/bin/python3",
	"~/.pyenv/versions/*/lib/libpython3.*.so.1.0",
	"~/.pyenv/versions/*/lib/libpython3.*m.so.1.0",
};

static void each_real_file(void (*visit)(const char *path, struct prb_elf *elf))
{
	unsigned visited = 0;

	for (size_t i = 0; i < PRB_ARRAY_SIZE(real_files); i++) {
		/* A copy of ourselves: for the commands /proc/self/exe is another file. */
		prb_auto_free char *copy = in_folder("self");
		glob_t found = {};

		if (i == 0) {
			prb_auto_free char *self = realpath(real_files[0], NULL);
			assert_true(run("cp '%s' self", self));
		}
		glob(i == 0 ? copy : real_files[i], GLOB_TILDE_CHECK, NULL, &found);
		for (size_t k = 0; k < found.gl_pathc; k++) {
			struct prb_elf *elf = open_path(found.gl_pathv[k]);

			visit(found.gl_pathv[k], elf);
			prb_elf_close(elf);
			visited++;
		}
		globfree(&found);
	}
	assert_true(visited >= 1);
}

static void compare_sections(const char *path, struct prb_elf *elf)
{
	prb_auto_free char *command = prb_format("readelf -SW '%s'", path);
	FILE *out = popen(command, "r");
	unsigned count = 0;
	char line[512];

	while (fgets(line, sizeof(line), out)) {
		char name[128], type[32];
		unsigned long address, offset, size;
		uint64_t got_address, got_size;
		const char *bracket = strchr(line, ']');

		if (!bracket ||
		    sscanf(bracket + 1, "%127s %31s %lx %lx %lx", name, type, &address, &offset,
			   &size) != 5 ||
		    !strcmp(name, "NULL"))
			continue;
		const void *data;
		assert_ok(prb_elf_section(elf, name, &got_address, &got_size, &data));
		assert_int_equal(got_address, address);
		assert_int_equal(got_size, size);
		assert_int_equal(prb_elf_has_section(elf, name),
				 size && strcmp(type, "NOBITS") != 0);
		assert_int_equal(!data, !size || !strcmp(type, "NOBITS"));
		count++;
	}
	pclose(out);
	assert_true(count > 20);
	assert_false(prb_elf_has_section(elf, ".no_such_section"));
	assert_error(prb_elf_section(elf, ".no_such_section", NULL, NULL, NULL),
		     PRB_ERROR_NOT_FOUND);
}

static void test_sections(void **state)
{
	(void)state;
	each_real_file(compare_sections);
}

static void compare_build_id(const char *path, struct prb_elf *elf)
{
	prb_auto_free char *command = prb_format("readelf -nW '%s'", path);
	FILE *out = popen(command, "r");
	char line[512], build_id[130] = "";

	while (fgets(line, sizeof(line), out)) {
		const char *found = strstr(line, "Build ID: ");

		if (found)
			sscanf(found, "Build ID: %129s", build_id);
	}
	pclose(out);
	assert_string_equal(prb_elf_build_id(elf), build_id);
}

static void test_build_id(void **state)
{
	(void)state;
	each_real_file(compare_build_id);
	compile("without-id", sample, "-Wl,--build-id=none");
	struct prb_elf *elf = open_made("without-id");
	assert_string_equal(prb_elf_build_id(elf), "");
	prb_elf_close(elf);
}

/** One line of `nm -f sysv`. False for symbols without an address. */
static bool parse_nm(char *line, char **name, char *type, unsigned long *value, unsigned long *size,
		     bool *function)
{
	char *fields[5], *save;

	for (unsigned i = 0; i < 5; i++) {
		fields[i] = strtok_r(i ? NULL : line, "|", &save);
		if (!fields[i])
			return false;
	}
	*name = strtok_r(fields[0], " ", &save);
	*value = strtoul(fields[1], NULL, 16);
	*type = fields[2][strspn(fields[2], " ")];
	*size = strtoul(fields[4], NULL, 16);
	*function = strstr(fields[3], "FUNC");
	return *name && !strstr(fields[3], "TLS") && strchr("tTwWdDbBrRvV", *type);
}

/** Compares exact-name lookups with one run of nm; returns the number compared. */
static unsigned compare_names(const char *path, struct prb_elf *elf, const char *flags)
{
	prb_auto_free char *command = prb_format("nm %s -f sysv '%s' 2>/dev/null", flags, path);
	FILE *out = popen(command, "r");
	unsigned count = 0;
	char line[4096];

	while (fgets(line, sizeof(line), out)) {
		struct prb_elf_symbol symbol;
		unsigned long value, size;
		char *name, type;
		bool function;

		if (!parse_nm(line, &name, &type, &value, &size, &function))
			continue;
		char *version = strchr(name, '@');
		bool hidden = version && version[1] != '@';
		/* Several local symbols may share a name; another test covers those. */
		if (hidden || strchr("tdbr", type) || count > 3000)
			continue;
		if (version)
			*version = '\0';
		assert_ok(prb_elf_symbol(elf, name, &symbol));
		assert_string_equal(symbol.name, name);
		assert_int_equal(symbol.address, value);
		assert_int_equal(symbol.size, size);
		count++;
	}
	pclose(out);
	return count;
}

static void compare_symbols(const char *path, struct prb_elf *elf)
{
	unsigned count = compare_names(path, elf, "-D --defined-only");

	count += compare_names(path, elf, "--defined-only");
	assert_true(count > 20);
	struct prb_elf_symbol symbol;
	assert_error(prb_elf_symbol(elf, "no_such_symbol", &symbol), PRB_ERROR_NOT_FOUND);
	assert_error(prb_elf_symbol(elf, "", &symbol), PRB_ERROR_NOT_FOUND);
}

static void test_symbol_by_name(void **state)
{
	(void)state;
	each_real_file(compare_symbols);
}

/** For the middle of each sized function of nm, that function or a nested one is found. */
static void compare_addresses(const char *path, struct prb_elf *elf)
{
	const char *flags = prb_elf_has_section(elf, ".symtab") ? "" : "-D";
	prb_auto_free char *command =
		prb_format("nm %s --defined-only -f sysv '%s' 2>/dev/null", flags, path);
	FILE *out = popen(command, "r");
	unsigned count = 0, same = 0;
	char line[4096];

	while (fgets(line, sizeof(line), out)) {
		struct prb_elf_symbol symbol;
		unsigned long value, size;
		char *name, type;
		bool function;

		if (!parse_nm(line, &name, &type, &value, &size, &function) || !function || !size)
			continue;
		uint64_t middle = value + size / 2;
		assert_ok(prb_elf_symbol_at(elf, middle, &symbol));
		assert_uint_in_range(symbol.address, value, middle);
		assert_true(middle - symbol.address < symbol.size);
		same += symbol.address == value;
		count++;
	}
	pclose(out);
	assert_true(count > 20);
	assert_true(same > count * 95 / 100);
	struct prb_elf_symbol symbol;
	assert_error(prb_elf_symbol_at(elf, 1, &symbol), PRB_ERROR_NOT_FOUND);
	assert_error(prb_elf_symbol_at(elf, UINT64_MAX, &symbol), PRB_ERROR_NOT_FOUND);
}

static void test_symbol_by_address(void **state)
{
	(void)state;
	each_real_file(compare_addresses);
}

static void test_best_name(void **state)
{
	struct prb_elf_symbol symbol;
	uint64_t start;
	(void)state;

	compile("sample", sample, "");
	struct prb_elf *elf = open_made("sample");
	assert_ok(prb_elf_symbol(elf, "hidden", &symbol));
	assert_true(symbol.function && !symbol.ifunc);
	assert_ok(prb_elf_symbol(elf, "counter", &symbol));
	assert_false(symbol.function);
	assert_int_equal(symbol.size, sizeof(int));
	assert_ok(prb_elf_symbol(elf, "picked", &symbol));
	assert_true(symbol.function && symbol.ifunc);
	assert_error(prb_elf_symbol(elf, "per_thread", &symbol), PRB_ERROR_NOT_FOUND);

	/* The ifunc has the address of its static resolver, and is the public name of the two. */
	assert_ok(prb_elf_symbol(elf, "pick", &symbol));
	start = symbol.address;
	assert_ok(prb_elf_symbol_at(elf, start, &symbol));
	assert_string_equal(symbol.name, "picked");
	assert_ok(prb_elf_symbol(elf, "visible", &symbol));
	start = symbol.address;
	assert_ok(prb_elf_symbol_at(elf, start + 1, &symbol));
	assert_string_equal(symbol.name, "visible");
	assert_int_equal(symbol.address, start);
	prb_elf_close(elf);
}

/** Labels without type and size, as hand-written assembly has them. */
static void test_labels(void **state)
{
	static const char source[] =
		"__asm__(\".text\\nfirst_label: .skip 16\\nsecond_label: .skip 16\\n\"\n"
		"\"$x: .skip 16\\n$d.7: .skip 16\\n\"\n"
		"\".type around,@function\\naround: .skip 8\\ninside_label: .skip 8\\n\"\n"
		"\".size around,16\\n__around = around\\n.skip 16\\n\");\n"
		"int main(void) { return 0; }\n";
	struct prb_elf_symbol symbol;
	uint64_t first, around;
	(void)state;

	compile("labels", source, "");
	struct prb_elf *elf = open_made("labels");
	assert_ok(prb_elf_symbol(elf, "first_label", &symbol));
	first = symbol.address;
	assert_ok(prb_elf_symbol_at(elf, first + 15, &symbol));
	assert_string_equal(symbol.name, "first_label");
	assert_int_equal(symbol.size, 16);
	assert_false(symbol.function);
	/* Mapping symbols do not end a label, and name nothing. */
	assert_ok(prb_elf_symbol_at(elf, first + 60, &symbol));
	assert_string_equal(symbol.name, "second_label");
	assert_int_equal(symbol.address, first + 16);

	assert_ok(prb_elf_symbol(elf, "around", &symbol));
	around = symbol.address;
	assert_ok(prb_elf_symbol_at(elf, around + 12, &symbol));
	assert_string_equal(symbol.name, "around");
	assert_ok(prb_elf_symbol_at(elf, around + 20, &symbol));
	assert_string_equal(symbol.name, "inside_label");
	prb_elf_close(elf);
}

static void test_compressed_sections(void **state)
{
	static const char *const kinds[] = {"zlib", "zstd"};
	const void *plain_data, *data;
	uint64_t plain_size, size;
	(void)state;

	compile("plain", sample, "-g3");
	struct prb_elf *plain = open_made("plain");
	assert_ok(prb_elf_section(plain, ".debug_str", NULL, &plain_size, &plain_data));
	for (size_t i = 0; i < PRB_ARRAY_SIZE(kinds); i++) {
		if (!run("objcopy --compress-debug-sections=%s plain packed", kinds[i])) {
			NOT_TESTED("objcopy knows no such compression");
			continue;
		}
		struct prb_elf *elf = open_made("packed");
		for (int again = 0; again < 2; again++) {
			assert_ok(prb_elf_section(elf, ".debug_str", NULL, &size, &data));
			assert_int_equal(size, plain_size);
			assert_memory_equal(data, plain_data, size);
		}
		prb_elf_close(elf);
	}
	prb_elf_close(plain);
}

/** Offset of the header of section @p name in the file @p data. */
static uint64_t section_header_at(const uint8_t *data, const char *name)
{
	const Elf64_Ehdr *header = (const void *)data;
	const Elf64_Shdr *sections = (const void *)(data + header->e_shoff);
	const char *names = (const char *)data + sections[header->e_shstrndx].sh_offset;

	for (unsigned i = 0; i < header->e_shnum; i++)
		if (!strcmp(names + sections[i].sh_name, name))
			return header->e_shoff + i * sizeof(sections[0]);
	fail_msg("no section %s", name);
	return 0;
}

/** A compressed section may claim anything about its content. */
static void test_broken_compression(void **state)
{
	static const uint64_t claims[] = {0, 1, 1ULL << 20, 1ULL << 40, UINT64_MAX};
	size_t size;
	(void)state;

	compile("plain", sample, "-g3 -gz=zlib");
	uint8_t *data = read_file("plain", &size);
	Elf64_Shdr *section = (void *)(data + section_header_at(data, ".debug_str"));
	Elf64_Chdr *header = (void *)(data + section->sh_offset);
	assert_true(section->sh_flags & SHF_COMPRESSED);
	for (size_t i = 0; i <= PRB_ARRAY_SIZE(claims); i++) {
		const void *content;
		uint64_t length;

		if (i < PRB_ARRAY_SIZE(claims))
			header->ch_size = claims[i];
		else
			header->ch_type = 77;
		write_file("broken", data, size);
		struct prb_elf *elf = open_made("broken");
		assert_error(prb_elf_section(elf, ".debug_str", NULL, &length, &content),
			     i < PRB_ARRAY_SIZE(claims)	     ? PRB_ERROR_BAD_DATA
			     : header->ch_size == UINT64_MAX ? PRB_ERROR_BAD_DATA
							     : PRB_ERROR_UNSUPPORTED);
		prb_elf_close(elf);
	}
	free(data);
}

/** Names of static functions from the xz-compressed small symbol table. */
static void test_gnu_debugdata(void **state)
{
	struct prb_elf_symbol symbol;
	uint64_t address;
	(void)state;

	compile("full", sample, "");
	struct prb_elf *elf = open_made("full");
	assert_ok(prb_elf_symbol(elf, "hidden", &symbol));
	address = symbol.address;
	prb_elf_close(elf);

	assert_true(run("objcopy -S full stripped && objcopy --only-keep-debug full mini && "
			"python3 -c 'import lzma; open(\"mini.xz\", \"wb\").write(lzma.compress("
			"open(\"mini\", \"rb\").read()))' && objcopy --add-section "
			".gnu_debugdata=mini.xz stripped with"));
	elf = open_made("stripped");
	assert_error(prb_elf_symbol(elf, "hidden", &symbol), PRB_ERROR_NOT_FOUND);
	prb_elf_close(elf);

	elf = open_made("with");
	assert_ok(prb_elf_symbol(elf, "hidden", &symbol));
	assert_int_equal(symbol.address, address);
	assert_ok(prb_elf_symbol_at(elf, address + 1, &symbol));
	assert_string_equal(symbol.name, "hidden");
	prb_elf_close(elf);

	/* A truncated section is useless but harmless. */
	assert_true(run("head -c 300 mini.xz >cut.xz && "
			"objcopy --add-section .gnu_debugdata=cut.xz stripped with-cut"));
	elf = open_made("with-cut");
	assert_error(prb_elf_symbol(elf, "hidden", &symbol), PRB_ERROR_NOT_FOUND);
	prb_elf_close(elf);
}

/** Removes the section headers of a file in our folder. */
static void drop_section_headers(const char *from, const char *to)
{
	size_t size;
	uint8_t *data = read_file(from, &size);
	Elf64_Ehdr *header = (void *)data;

	header->e_shoff = 0;
	header->e_shnum = header->e_shstrndx = 0;
	write_file(to, data, size);
	free(data);
}

/** Both kinds of hash table, with and without section headers. */
static void test_without_section_headers(void **state)
{
	static const char *const styles[] = {"gnu", "sysv", "both"};
	(void)state;

	for (size_t i = 0; i < PRB_ARRAY_SIZE(styles); i++) {
		prb_auto_free char *flags =
			prb_format("-shared -fPIC -Wl,--build-id -Wl,--hash-style=%s", styles[i]);
		struct prb_elf_symbol symbol, bare_symbol;
		uint64_t address, bare_address, size, bare_size;
		const void *data;

		compile("lib.so", sample, flags);
		assert_true(run("objcopy -S lib.so stripped.so"));
		drop_section_headers("stripped.so", "bare.so");
		struct prb_elf *elf = open_made("stripped.so"), *bare = open_made("bare.so");

		assert_ok(prb_elf_symbol(elf, "visible", &symbol));
		assert_ok(prb_elf_symbol(bare, "visible", &bare_symbol));
		assert_int_equal(bare_symbol.address, symbol.address);
		assert_int_equal(bare_symbol.size, symbol.size);
		assert_ok(prb_elf_symbol_at(bare, symbol.address + 1, &bare_symbol));
		assert_int_equal(bare_symbol.address, symbol.address);
		assert_error(prb_elf_symbol(bare, "hidden", &symbol), PRB_ERROR_NOT_FOUND);
		assert_ok(prb_elf_symbol(bare, "assembled", &symbol));
		assert_ok(prb_elf_symbol_at(bare, symbol.address + 31, &bare_symbol));
		assert_int_equal(bare_symbol.address, symbol.address);
		assert_int_equal(strlen(prb_elf_build_id(bare)), 40);
		assert_string_equal(prb_elf_build_id(bare), prb_elf_build_id(elf));

		assert_ok(prb_elf_section(elf, ".eh_frame_hdr", &address, &size, &data));
		assert_ok(prb_elf_section(bare, ".eh_frame_hdr", &bare_address, &bare_size, &data));
		assert_int_equal(bare_address, address);
		assert_int_equal(bare_size, size);
		assert_error(prb_elf_section(bare, ".text", NULL, NULL, NULL), PRB_ERROR_NOT_FOUND);
		prb_elf_close(bare);
		prb_elf_close(elf);
	}
}

static void test_symbol_versions(void **state)
{
	static const char source[] = "int old_one(void) { return 1; }\n"
				     "int new_one(void) { return 2; }\n"
				     "__asm__(\".symver old_one,twice@V1\");\n"
				     "__asm__(\".symver new_one,twice@@V2\");\n";
	static const char script[] = "V1 { global: twice; local: *; }; V2 { global: twice; } V1;";
	struct prb_elf_symbol symbol, expected;
	(void)state;

	write_file("versions", script, strlen(script));
	compile("versions.so", source, "-shared -fPIC -Wl,--version-script=versions");
	struct prb_elf *elf = open_made("versions.so");
	assert_ok(prb_elf_symbol(elf, "new_one", &expected));
	assert_ok(prb_elf_symbol(elf, "twice", &symbol));
	assert_int_equal(symbol.address, expected.address);
	prb_elf_close(elf);
}

static void test_offset_to_address(void **state)
{
	size_t size;
	uint64_t address;
	(void)state;

	compile("plain", sample, "");
	uint8_t *data = read_file("plain", &size);
	const Elf64_Shdr *section = (void *)(data + section_header_at(data, ".data"));
	struct prb_elf *elf = open_made("plain");
	assert_ok(prb_elf_offset_to_address(elf, section->sh_offset, &address));
	assert_int_equal(address, section->sh_addr);
	assert_error(prb_elf_offset_to_address(elf, size, &address), PRB_ERROR_NOT_FOUND);
	assert_error(prb_elf_offset_to_address(elf, UINT64_MAX, &address), PRB_ERROR_NOT_FOUND);
	prb_elf_close(elf);
	free(data);
}

static void test_not_elf(void **state)
{
	static const char small_class[64] = "\177ELF\1\1\1";
	static const char big_endian[64] = "\177ELF\2\2\1";
	static const struct {
		const char *name, *data;
		size_t size;
	} files[] = {{"text", "#!/bin/sh\n", 10},
		     {"empty", "", 0},
		     {"magic", "\177ELF", 4},
		     {"small", small_class, sizeof(small_class)},
		     {"big", big_endian, sizeof(big_endian)}};
	(void)state;

	for (size_t i = 0; i < PRB_ARRAY_SIZE(files); i++) {
		prb_auto_free char *path = in_folder(files[i].name);
		struct prb_elf *elf = NULL;

		write_file(files[i].name, files[i].data, files[i].size);
		assert_error(prb_elf_open(open(path, O_RDONLY), path, &elf), PRB_ERROR_UNSUPPORTED);
		assert_null(elf);
	}
	struct prb_elf *elf = NULL;
	assert_error(prb_elf_open(open("/", O_RDONLY), "/", &elf), PRB_ERROR_UNSUPPORTED);
}

/** Calls every function; any result but a crash is fine. */
static void ask_everything(struct prb_elf *elf)
{
	static const char *const sections[] = {".text",	     ".debug_str", ".eh_frame_hdr",
					       ".dynamic",   ".symtab",	   ".gnu_debuglink",
					       ".debug_info"};
	static const char *const symbols[] = {"visible", "hidden", "counter", "nothing"};
	struct prb_elf_symbol symbol;
	size_t touched = 0;

	for (size_t i = 0; i < PRB_ARRAY_SIZE(sections); i++) {
		const uint8_t *data = NULL;
		uint64_t address, size = 0;
		struct prb_error *err =
			prb_elf_section(elf, sections[i], &address, &size, (const void **)&data);

		for (uint64_t k = 0; !err && data && k < size; k += 64)
			touched += data[k];
		prb_error_destroy(err);
	}
	for (size_t i = 0; i < PRB_ARRAY_SIZE(symbols); i++) {
		struct prb_error *err = prb_elf_symbol(elf, symbols[i], &symbol);

		touched += err ? 0 : strlen(symbol.name);
		prb_error_destroy(err);
	}
	for (uint64_t address = 0; address < 0x4000; address += 0x40) {
		struct prb_error *err = prb_elf_symbol_at(elf, address, &symbol);

		touched += err ? 0 : strlen(symbol.name);
		prb_error_destroy(err);
	}
	prb_error_destroy(prb_elf_offset_to_address(elf, touched, &(uint64_t){0}));
	assert_true(strlen(prb_elf_build_id(elf)) <= 128);
}

/** A small generator with reproducible results. */
static uint32_t next_random(uint32_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return *state;
}

/** Opens it as a file that others may change. */
static struct prb_error *open_copied(void *data, size_t size, struct prb_elf **ret)
{
	int fd = memfd_create("broken", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(fchmod(fd, 0666), 0);
	assert_int_equal(write(fd, data, size), size);
	free(data);
	return prb_elf_open(fd, "broken", ret);
}

/** Broken files: numbers all over the file, most of them in the tables, are replaced. */
static void test_corrupted(void **state)
{
	static const uint64_t values[] = {0,	      1,	  0xff,	      0xffff,
					  0xffffffff, 0x80000000, UINT64_MAX, UINT64_MAX - 0xfff,
					  1ULL << 63, 0x1000};
	uint32_t seed = 20251;
	size_t size;
	unsigned opened = 0;
	(void)state;

	compile("lib.so", sample, "-g -gz=zlib -shared -fPIC -Wl,--hash-style=both");
	uint8_t *data = read_file("lib.so", &size);
	const Elf64_Ehdr *header = (const void *)data;
	uint64_t tables[] = {0, header->e_shoff, section_header_at(data, ".dynamic"), 0x200};
	const Elf64_Shdr *dynamic = (const void *)(data + tables[2]);
	tables[2] = dynamic->sh_offset;

	for (unsigned round = 0; round < 1500; round++) {
		uint8_t *copy = malloc(size);
		struct prb_elf *elf;

		assert_non_null(copy);
		memcpy(copy, data, size);
		for (unsigned n = next_random(&seed) % 6 + 1; n; n--) {
			uint64_t value = values[next_random(&seed) % PRB_ARRAY_SIZE(values)];
			uint64_t base = tables[next_random(&seed) % PRB_ARRAY_SIZE(tables)];
			size_t at = (base + next_random(&seed) % 1024) & ~3ULL;

			if (next_random(&seed) % 4 == 0)
				at = next_random(&seed) % size;
			if (at >= EI_NIDENT && at + 8 <= size)
				memcpy(copy + at, &value, next_random(&seed) & 1 ? 4 : 8);
		}
		/* Cut short, too. */
		size_t length = next_random(&seed) % 8 ? size : next_random(&seed) % size;
		struct prb_error *err = round % 2
						? open_copied(copy, length, &elf)
						: prb_elf_open_memory(copy, length, "broken", &elf);
		if (!err) {
			opened++;
			ask_everything(elf);
			prb_elf_close(elf);
		}
		prb_error_destroy(err);
	}
	free(data);
	assert_true(opened > 500);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sections),
		cmocka_unit_test(test_build_id),
		cmocka_unit_test(test_symbol_by_name),
		cmocka_unit_test(test_symbol_by_address),
		cmocka_unit_test(test_best_name),
		cmocka_unit_test(test_labels),
		cmocka_unit_test(test_compressed_sections),
		cmocka_unit_test(test_broken_compression),
		cmocka_unit_test(test_gnu_debugdata),
		cmocka_unit_test(test_without_section_headers),
		cmocka_unit_test(test_symbol_versions),
		cmocka_unit_test(test_offset_to_address),
		cmocka_unit_test(test_not_elf),
		cmocka_unit_test(test_corrupted),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
