/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Compares the modules of a process with its own dynamic linker's list: this program is its own
 * target, once with and once without files.
 */
#include "module_fake.h"
#include "tests/unit/in_range.h"

/** Data to compare with the dynamic linker's. */
struct expectation {
	struct prb_modules *modules;
	unsigned count;
};

static int compare_loaded(struct dl_phdr_info *info, size_t size, void *context)
{
	struct expectation *e = context;
	struct prb_module *module = NULL;
	(void)size;

	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *s = &info->dlpi_phdr[i];
		uint64_t address = info->dlpi_addr + s->p_vaddr, got, got_size;

		if (s->p_type == PT_LOAD) {
			module = prb_modules_find(e->modules, address);
			assert_non_null(module);
			assert_int_equal(module->bias, info->dlpi_addr);
			assert_ptr_equal(prb_modules_find(e->modules, address + s->p_memsz - 1),
					 module);
		}
		if (s->p_type == PT_GNU_EH_FRAME) {
			assert_ok(prb_module_section(module, ".eh_frame_hdr", &got, &got_size));
			assert_int_equal(got, address);
			assert_int_equal(got_size, s->p_memsz);
		}
	}
	e->count++;
	return 0;
}

static void test_matches_linker(void **state)
{
	struct prb_target *target;
	(void)state;

	assert_ok(prb_target_open_process(getpid(), &target));
	struct expectation e = {.modules = modules_of(target)};
	dl_iterate_phdr(compare_loaded, &e);
	assert_true(e.count >= 3);
	assert_int_equal(e.count, e.modules->list.count);
	for (size_t i = 1; i < e.modules->order.count; i++)
		assert_true(e.modules->order.items[i - 1].end <= e.modules->order.items[i].start);
	assert_null(prb_modules_find(e.modules, 0));
	assert_null(prb_modules_find(e.modules, UINT64_MAX));
	prb_modules_destroy(e.modules);
	prb_target_destroy(target);
}

static void test_own_symbols(void **state)
{
	struct prb_target *target;
	uint64_t address, size, start;
	uint64_t here = (uintptr_t)test_own_symbols;
	(void)state;

	assert_ok(prb_target_open_process(getpid(), &target));
	struct prb_modules *modules = modules_of(target);
	struct prb_module *module = prb_modules_find(modules, here);
	assert_non_null(module);
	assert_ok(prb_module_symbol(module, "test_own_symbols", &address, &size));
	assert_int_equal(address, here);
	assert_true(size > 50);
	prb_auto_str struct prb_str name = {};
	assert_ok(prb_module_symbol_at(module, here + 5, &name, &start));
	assert_string_equal(prb_str_text(&name), "test_own_symbols");
	assert_int_equal(start, here);
	assert_error(prb_module_symbol(module, "no_such_symbol", &address, &size),
		     PRB_ERROR_NOT_FOUND);

	assert_ok(prb_module_section(module, ".text", &address, &size));
	assert_true(here >= address && here < address + size);
	assert_error(prb_module_section(module, ".debug_info", &address, &size),
		     PRB_ERROR_NOT_FOUND);
	struct prb_elf *elf;
	assert_ok(prb_module_elf(module, &elf));
	assert_string_equal(prb_module_build_id(module), prb_elf_build_id(elf));

	module = prb_modules_find(modules, (uintptr_t)dlsym(RTLD_DEFAULT, "getpid"));
	assert_ok(prb_module_symbol(module, "getpid", &address, NULL));
	assert_int_equal(address, (uintptr_t)dlsym(RTLD_DEFAULT, "getpid"));
	prb_modules_destroy(modules);
	prb_target_destroy(target);
}

static void test_vdso(void **state)
{
	struct prb_target *target;
	struct prb_elf *elf;
	uint64_t address, size;
	(void)state;

	assert_ok(prb_target_open_process(getpid(), &target));
	struct prb_modules *modules = modules_of(target);
	struct prb_module *module = prb_modules_find(modules, getauxval(AT_SYSINFO_EHDR));
	assert_non_null(module);
	assert_string_equal(module->path, "[vdso]");
#if defined(__x86_64__)
	const char *name = "__vdso_clock_gettime";
#else
	const char *name = "__kernel_clock_gettime";
#endif
	assert_ok(prb_module_symbol(module, name, &address, &size));
	assert_true(address > module->start && address < module->end);
	assert_ok(prb_module_elf(module, &elf));
	assert_int_equal(prb_elf_fd(elf), -1);
	prb_modules_destroy(modules);
	prb_target_destroy(target);
}

/** From memory alone: dynamic symbols, build-ids and unwind tables are available. */
static void test_without_files(void **state)
{
	struct fake fake;
	struct prb_target *target;
	struct prb_elf *elf;
	static const char *const names[] = {"getpid", "dlsym", "qsort", "environ"};
	(void)state;

	fake_init(&fake, false);
	assert_ok(prb_target_open_process(getpid(), &target));
	struct prb_modules *bare = modules_of(&fake.target), *full = modules_of(target);
	struct expectation e = {.modules = bare};
	dl_iterate_phdr(compare_loaded, &e);
	assert_int_equal(e.count, bare->list.count);
	assert_int_equal(fake.maps, 0);

	for (size_t i = 0; i < PRB_ARRAY_SIZE(names); i++) {
		uint64_t wanted = (uintptr_t)dlsym(RTLD_DEFAULT, names[i]), address, start;
		struct prb_module *module = prb_modules_find(bare, wanted);
		prb_auto_str struct prb_str name = {};

		assert_string_equal(prb_module_build_id(module),
				    prb_module_build_id(prb_modules_find(full, wanted)));
		assert_ok(prb_module_symbol(module, names[i], &address, NULL));
		assert_int_equal(address, wanted);
		assert_error(prb_module_symbol(module, "no_such_symbol", &address, NULL),
			     PRB_ERROR_NOT_FOUND);
		assert_error(prb_module_elf(module, &elf), PRB_ERROR_NOT_FOUND);
		assert_error(prb_module_section(module, ".text", &address, NULL),
			     PRB_ERROR_NOT_FOUND);
		if (!strcmp(names[i], "environ"))
			continue;
		assert_ok(prb_module_symbol_at(module, wanted + 2, &name, &start));
		assert_int_equal(start, wanted);
		assert_string_equal(prb_str_text(&name), names[i]);
	}
	prb_modules_destroy(bare);
	prb_modules_destroy(full);
	prb_target_destroy(target);
	fake_deinit(&fake);
}

static unsigned count_by_path(const struct prb_modules *modules, const char *path)
{
	struct prb_module **module;
	unsigned count = 0;

	prb_vec_each (module, &modules->list)
		count += !strcmp((*module)->path, path);
	return count;
}

/** A file loaded twice is two modules; mapped as data it is no module. */
static void test_loaded_twice(void **state)
{
	prb_auto_free char *path = NULL, *data_path = NULL;
	struct prb_target *target;
	struct stat st;
	(void)state;

	compile("twice.so", library, "-shared -fPIC");
	assert_true(run("cp twice.so data.so"));
	path = in_folder("twice.so");
	data_path = in_folder("data.so");
	void *one = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	void *other = dlmopen(LM_ID_NEWLM, path, RTLD_NOW);
	assert_non_null(one);
	assert_non_null(other);
	prb_auto_close int fd = open(data_path, O_RDONLY);
	assert_int_equal(fstat(fd, &st), 0);
	void *data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_ptr_not_equal(data, MAP_FAILED);

	assert_ok(prb_target_open_process(getpid(), &target));
	struct prb_modules *modules = modules_of(target);
	assert_int_equal(count_by_path(modules, path), 2);
	assert_int_equal(count_by_path(modules, data_path), 0);
	void *handles[] = {one, other};
	for (size_t i = 0; i < 2; i++) {
		uint64_t wanted = (uintptr_t)dlsym(handles[i], "visible"), address;
		struct prb_module *module = prb_modules_find(modules, wanted);

		assert_ok(prb_module_symbol(module, "visible", &address, NULL));
		assert_int_equal(address, wanted);
	}
	prb_modules_destroy(modules);
	prb_target_destroy(target);
	munmap(data, (size_t)st.st_size);
	dlclose(one);
	dlclose(other);
}

/** Between the segments of one file another can be mapped, as the vdso often is on aarch64. */
static void test_hole(void **state)
{
	prb_auto_free char *path = NULL;
	struct prb_target *target;
	long page = sysconf(_SC_PAGESIZE);
	(void)state;

	compile("hole.so", library, "-shared -fPIC -Wl,-z,max-page-size=0x200000");
	path = in_folder("hole.so");
	void *loaded = dlopen(path, RTLD_NOW);
	assert_non_null(loaded);
	uint64_t code = (uintptr_t)dlsym(loaded, "visible");

	assert_ok(prb_target_open_process(getpid(), &target));
	struct prb_modules *modules = modules_of(target);
	struct prb_module *module = prb_modules_find(modules, code);
	assert_non_null(module);
	assert_uint_in_range(module->range_count, 2, PRB_MODULE_RANGES_MAX);
	uint64_t bias = module->bias, pages = (uint64_t)page - 1;
	uint64_t hole = (module->ranges[0].end + pages) & ~pages;
	assert_true(hole + (uint64_t)page < module->ranges[1].start);
	assert_null(prb_modules_find(modules, hole));
	prb_modules_destroy(modules);

	/* Map another program there: the copy of a vdso. */
	const void *vdso = (const void *)getauxval(AT_SYSINFO_EHDR);
	uint8_t *there = mmap((void *)hole, (size_t)page * 4, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	assert_ptr_not_equal(there, MAP_FAILED);
	memcpy(there, vdso, (size_t)page);
	assert_int_equal(mprotect(there, (size_t)page * 4, PROT_READ | PROT_EXEC), 0);
	assert_ok(prb_target_refresh_maps(target));
	modules = modules_of(target);
	module = prb_modules_find(modules, hole);
	assert_non_null(module);
	assert_string_equal(module->path, "");
	assert_int_equal(module->start, hole);
	module = prb_modules_find(modules, code);
	assert_string_equal(module->path, path);
	assert_int_equal(module->bias, bias);
	assert_ptr_equal(prb_modules_find(modules, module->end - 1), module);
	prb_modules_destroy(modules);
	prb_target_destroy(target);
	dlclose(loaded);
}

/** Removed after loading: the kernel's links lead to the file, with the right to follow them. */
static void test_deleted(void **state)
{
	prb_auto_free char *path = NULL;
	struct prb_target *target;
	uint64_t address;
	(void)state;

	compile("gone.so", library, "-shared -fPIC");
	path = in_folder("gone.so");
	void *handle = dlopen(path, RTLD_NOW);
	assert_non_null(handle);
	uint64_t wanted = (uintptr_t)dlsym(handle, "visible");
	assert_int_equal(unlink(path), 0);
	/* The path now has another file, which must not be used. */
	compile("gone.so", "int visible(int x) { return x; }\nint more(int x) { return x; }\n",
		"-shared -fPIC");

	assert_ok(prb_target_open_process(getpid(), &target));
	struct prb_modules *modules = modules_of(target);
	struct prb_module *module = prb_modules_find(modules, wanted);
	assert_non_null(module);
	assert_true(module->deleted);
	assert_string_equal(module->path, path);
	assert_ok(prb_module_symbol(module, "visible", &address, NULL));
	assert_int_equal(address, wanted);
	assert_error(prb_module_symbol(module, "more", &address, NULL), PRB_ERROR_NOT_FOUND);
	prb_modules_destroy(modules);
	prb_target_destroy(target);

	/* A target that opens by path gets the wrong file, which its build-id shows. */
	struct fake fake;
	struct prb_elf *elf;
	fake_init(&fake, true);
	modules = modules_of(&fake.target);
	module = prb_modules_find(modules, wanted);
	assert_int_equal(fake.maps, 0);
	assert_error(prb_module_elf(module, &elf), PRB_ERROR_NOT_FOUND);
	assert_int_equal(fake.maps, 1);
	assert_ok(prb_module_symbol(module, "visible", &address, NULL));
	assert_int_equal(address, wanted);
	prb_modules_destroy(modules);
	fake_deinit(&fake);
	dlclose(handle);
}

/** A library that a custom loader has put into anonymous memory. */
static void test_anonymous_image(void **state)
{
	struct prb_target *target;
	size_t size, span = 0;
	(void)state;

	compile("image.so", library, "-shared -fPIC");
	uint8_t *file = read_file("image.so", &size);
	const Elf64_Ehdr *header = (const void *)file;
	const Elf64_Phdr *segments = (const void *)(file + header->e_phoff);
	uint8_t *image =
		mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(image, MAP_FAILED);
	for (unsigned i = 0; i < header->e_phnum; i++) {
		const Elf64_Phdr *s = &segments[i];

		if (s->p_type != PT_LOAD)
			continue;
		span = s->p_vaddr + s->p_memsz;
		assert_true(span <= 1 << 20);
		memcpy(image + s->p_vaddr, file + s->p_offset, s->p_filesz);
	}
	for (unsigned i = 0; i < header->e_phnum; i++) {
		const Elf64_Phdr *s = &segments[i];
		int protection = s->p_flags & PF_X ? PROT_READ | PROT_EXEC : PROT_READ;

		if (s->p_type == PT_LOAD && !(s->p_flags & PF_W))
			assert_int_equal(mprotect(image + (s->p_vaddr & ~4095ULL),
						  s->p_memsz + (s->p_vaddr & 4095), protection),
					 0);
	}

	assert_ok(prb_target_open_process(getpid(), &target));
	struct prb_modules *modules = modules_of(target);
	struct prb_module *module = prb_modules_find(modules, (uintptr_t)image);
	uint64_t address, wanted;
	assert_non_null(module);
	assert_string_equal(module->path, "");
	assert_int_equal(module->bias, (uintptr_t)image);
	assert_ok(prb_module_symbol(module, "visible", &address, NULL));
	struct prb_elf *elf = open_made("image.so");
	struct prb_elf_symbol symbol;
	assert_ok(prb_elf_symbol(elf, "visible", &symbol));
	wanted = (uintptr_t)image + symbol.address;
	assert_int_equal(address, wanted);
	prb_auto_str struct prb_str name = {};
	assert_ok(prb_elf_symbol(elf, "assembled", &symbol));
	wanted = (uintptr_t)image + symbol.address;
	assert_ok(prb_module_symbol_at(module, wanted + 31, &name, &address));
	assert_int_equal(address, wanted);
	assert_string_equal(prb_str_text(&name), "assembled");
	prb_elf_close(elf);
	prb_modules_destroy(modules);
	prb_target_destroy(target);
	munmap(image, 1 << 20);
	free(file);
}

/** Code moved from its file into anonymous memory, as huge page tools do. */
static void test_moved_code(void **state)
{
	struct prb_target *target;
	(void)state;

	compile("copied.so", library, "-shared -fPIC -Wl,-z,noseparate-code");
	prb_auto_free char *path = in_folder("copied.so");
	void *handle = dlopen(path, RTLD_NOW);
	assert_non_null(handle);
	uint64_t wanted = (uintptr_t)dlsym(handle, "visible");
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *code = (uint8_t *)(wanted & ~(page - 1)), *copy = malloc(page);
	assert_non_null(copy);
	memcpy(copy, code, page);
	void *moved = mmap(code, page, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	assert_ptr_equal(moved, code);
	memcpy(code, copy, page);
	assert_int_equal(mprotect(code, page, PROT_READ | PROT_EXEC), 0);
	free(copy);

	assert_ok(prb_target_open_process(getpid(), &target));
	struct prb_modules *modules = modules_of(target);
	struct prb_module *module = prb_modules_find(modules, wanted);
	uint64_t address;
	assert_non_null(module);
	assert_ok(prb_module_symbol(module, "visible", &address, NULL));
	assert_int_equal(address, wanted);
	prb_modules_destroy(modules);
	prb_target_destroy(target);
	dlclose(handle);
}

/** Unreadable headers: the file is used, or else the map alone. */
static void test_unreadable_headers(void **state)
{
	uint64_t address;
	(void)state;

	compile("closed.so", library, SEPARATE_CODE);
	prb_auto_free char *path = in_folder("closed.so");
	void *handle = dlopen(path, RTLD_NOW);
	assert_non_null(handle);
	uint64_t wanted = (uintptr_t)dlsym(handle, "visible");
	struct fake fake;
	fake_init(&fake, true);
	struct prb_modules *modules = modules_of(&fake.target);
	struct prb_module *module = prb_modules_find(modules, wanted);
	uint64_t bias = module->bias;
	void *header = (void *)module->header;
	prb_modules_destroy(modules);

	assert_int_equal(mprotect(header, 4096, PROT_NONE), 0);
	prb_maps_deinit(&fake.target.maps);
	prb_str_deinit(&fake.target.maps_text);
	read_own_maps(&fake.target.maps);
	modules = modules_of(&fake.target);
	module = prb_modules_find(modules, wanted);
	assert_non_null(module);
	assert_int_equal(module->bias, bias);
	assert_ok(prb_module_symbol(module, "visible", &address, NULL));
	assert_int_equal(address, wanted);
	prb_modules_destroy(modules);

	fake.files = false;
	modules = modules_of(&fake.target);
	assert_null(prb_modules_find(modules, wanted));
	prb_modules_destroy(modules);
	fake.target.live = false;
	modules = modules_of(&fake.target);
	module = prb_modules_find(modules, wanted);
	assert_non_null(module);
	assert_string_equal(module->path, path);
	assert_int_equal(module->bias, bias);
	assert_string_equal(prb_module_build_id(module), "");
	prb_modules_destroy(modules);
	fake_deinit(&fake);
	assert_int_equal(mprotect(header, 4096, PROT_READ), 0);
	dlclose(handle);
}

/** Tools that add program headers move all of them to a place with room. */
static void test_far_program_headers(void **state)
{
	static const char source[] = "char room[16384] = {1};\nint visible(void) { return 1; }\n";
	uint64_t address;
	(void)state;

	compile("far.so", source, SEPARATE_CODE);
	prb_auto_free char *path = in_folder("far.so");
	void *handle = dlopen(path, RTLD_NOW);
	assert_non_null(handle);
	uint64_t wanted = (uintptr_t)dlsym(handle, "visible");
	char *room = (char *)dlsym(handle, "room") + 8192;
	struct fake fake;
	fake_init(&fake, false);
	struct prb_modules *modules = modules_of(&fake.target);
	Elf64_Ehdr *header = (void *)prb_modules_find(modules, wanted)->header;
	prb_modules_destroy(modules);

	const struct prb_map *map = prb_maps_find(&fake.target.maps, (uintptr_t)room);
	assert_string_equal(map->path, path);
	memcpy(room, (char *)header + header->e_phoff, header->e_phnum * sizeof(Elf64_Phdr));
	assert_int_equal(mprotect(header, 4096, PROT_READ | PROT_WRITE), 0);
	memset((char *)header + header->e_phoff, 0, header->e_phnum * sizeof(Elf64_Phdr));
	header->e_phoff = map->offset + ((uintptr_t)room - map->start);
	modules = modules_of(&fake.target);
	struct prb_module *module = prb_modules_find(modules, wanted);
	assert_non_null(module);
	assert_ok(prb_module_symbol(module, "visible", &address, NULL));
	assert_int_equal(address, wanted);
	prb_modules_destroy(modules);
	fake_deinit(&fake);
}

/** Another process: a program at a fixed address, whose file is removed while it runs. */
static void test_other_process(void **state)
{
	static const char source[] =
		"#include <stdio.h>\n"
		"int main(void) { printf(\"%p\\n\", (void *)main); fflush(stdout);\n"
		"return getchar(); }\n";
	int to_child[2], from_child[2];
	char text[32] = "";
	uint64_t address;
	(void)state;

	compile("fixed", source, "-no-pie -fno-pie");
	prb_auto_free char *path = in_folder("fixed");
	assert_int_equal(pipe2(to_child, O_CLOEXEC), 0);
	assert_int_equal(pipe2(from_child, O_CLOEXEC), 0);
	pid_t child = fork();
	if (!child) {
		dup2(to_child[0], 0);
		dup2(from_child[1], 1);
		execl(path, path, NULL);
		_exit(127);
	}
	assert_true(read(from_child[0], text, sizeof(text) - 1) > 2);
	assert_int_equal(unlink(path), 0);

	struct prb_target *target;
	assert_ok(prb_target_open_process(child, &target));
	struct prb_modules *modules = modules_of(target);
	uint64_t wanted = strtoull(text, NULL, 16);
	struct prb_module *module = prb_modules_find(modules, wanted);
	assert_non_null(module);
	assert_string_equal(module->path, path);
	assert_true(module->deleted);
	assert_int_equal(module->bias, 0);
	assert_ok(prb_module_symbol(module, "main", &address, NULL));
	assert_int_equal(address, wanted);
	prb_modules_destroy(modules);
	prb_target_destroy(target);

	close(to_child[1]);
	assert_int_equal(waitpid(child, NULL, 0), child);
	close(to_child[0]);
	close(from_child[0]);
	close(from_child[1]);
}

/** Opens the debug file of `stripped.so`, which is loaded; returns its name or NULL. */
static const char *debug_of(const char *name, struct prb_modules **modules, struct fake *fake,
			    uint64_t *hidden)
{
	prb_auto_free char *path = in_folder(name);
	void *handle = dlopen(path, RTLD_NOW);
	struct prb_elf *elf;

	assert_non_null(handle);
	uint64_t wanted = (uintptr_t)dlsym(handle, "visible"), size;
	fake_init(fake, true);
	*modules = modules_of(&fake->target);
	struct prb_module *module = prb_modules_find(*modules, wanted);
	struct prb_error *err = prb_module_debug(module, &elf);
	const char *found = err ? NULL : prb_elf_name(elf);
	if (err)
		assert_int_equal(err->code, PRB_ERROR_NOT_FOUND);
	prb_error_destroy(err);

	err = prb_module_symbol(module, "hidden", hidden, &size);
	assert_int_equal(!err, found != NULL);
	if (!err) {
		prb_auto_str struct prb_str text = {};
		assert_ok(prb_module_symbol_at(module, *hidden + 1, &text, NULL));
		assert_string_equal(prb_str_text(&text), "hidden");
	}
	prb_error_destroy(err);
	dlclose(handle);
	return found;
}

static void expect_debug(const char *name, const char *ending)
{
	struct prb_modules *modules;
	struct fake fake;
	uint64_t hidden;
	const char *found = debug_of(name, &modules, &fake, &hidden);

	if (!ending) {
		assert_null(found);
	} else {
		assert_non_null(found);
		assert_true(strlen(found) >= strlen(ending));
		assert_string_equal(found + strlen(found) - strlen(ending), ending);
	}
	prb_modules_destroy(modules);
	fake_deinit(&fake);
}

static void test_debug_by_build_id(void **state)
{
	(void)state;
	compile("full.so", library, "-g -shared -fPIC -Wl,--build-id=0xabcdef0123456789");
	assert_true(run("objcopy --only-keep-debug full.so full.debug && "
			"objcopy -S full.so by-id.so && "
			"mkdir -p root/usr/lib/debug/.build-id/ab"));
	expect_debug("full.so", "/full.so");
	expect_debug("by-id.so", NULL);

	/* A debug file of something else under that name does not count. */
	compile("other.so", library, "-g -shared -fPIC -Wl,--build-id=0xabcdef0123456780");
	assert_true(run("cp other.so root/usr/lib/debug/.build-id/ab/cdef0123456789.debug"));
	expect_debug("by-id.so", NULL);
	assert_true(run("cp full.debug root/usr/lib/debug/.build-id/ab/cdef0123456789.debug"));
	expect_debug("by-id.so", "/usr/lib/debug/.build-id/ab/cdef0123456789.debug");
}

static void test_debug_by_link(void **state)
{
	prb_auto_free char *in_debug_root = prb_format("/usr/lib/debug%s/linked.debug", folder);
	(void)state;

	compile("linked.full", library, "-g -shared -fPIC -Wl,--build-id=none");
	assert_true(run("objcopy --only-keep-debug linked.full linked.debug && "
			"objcopy -S --add-gnu-debuglink=linked.debug linked.full linked.so && "
			"mkdir -p .debug root/usr/lib/debug$PWD"));
	expect_debug("linked.so", "/linked.debug");

	assert_true(run("mv linked.debug .debug/"));
	expect_debug("linked.so", "/.debug/linked.debug");

	assert_true(run("mv .debug/linked.debug root/usr/lib/debug$PWD/"));
	expect_debug("linked.so", in_debug_root);

	/* One byte more, and the checksum differs. */
	assert_true(run("echo >>root/usr/lib/debug$PWD/linked.debug"));
	expect_debug("linked.so", NULL);
}

/** A link with the file's own name means another file of that name; one with a path is refused. */
static void test_odd_links(void **state)
{
	size_t size;
	(void)state;

	compile("same.full", library, "-g -shared -fPIC -Wl,--build-id=none");
	assert_true(run("objcopy --only-keep-debug same.full same.so && "
			"objcopy -S --add-gnu-debuglink=same.so same.full stripped.so && "
			"mkdir -p .debug && mv same.so .debug/ && mv stripped.so same.so"));
	expect_debug("same.so", "/.debug/same.so");

	uint8_t *data = read_file("same.so", &size);
	uint8_t *name = memmem(data, size, "same.so\0", 8);
	assert_non_null(name);
	memcpy(name, "/tmp/.o", 7);
	write_file("path.so", data, size);
	expect_debug("path.so", NULL);
	free(data);
}

/** A library unloaded after it was found. */
static void test_unloaded(void **state)
{
	struct prb_target *target;
	struct prb_elf *elf;
	uint64_t address;
	(void)state;

	compile("left.so", library, "-shared -fPIC");
	prb_auto_free char *path = in_folder("left.so");
	void *handle = dlopen(path, RTLD_NOW);
	assert_non_null(handle);
	assert_ok(prb_target_open_process(getpid(), &target));
	struct prb_modules *modules = modules_of(target);
	struct prb_module *module = prb_modules_find(modules, (uintptr_t)dlsym(handle, "visible"));
	assert_non_null(module);
	dlclose(handle);
	assert_ok(prb_target_refresh_maps(target));
	assert_error(prb_module_elf(module, &elf), PRB_ERROR_NOT_FOUND);
	assert_string_equal(prb_module_build_id(module), "");
	struct prb_error *err = prb_module_symbol(module, "visible", &address, NULL);
	assert_non_null(err);
	prb_error_destroy(err);
	prb_modules_destroy(modules);
	prb_target_destroy(target);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_matches_linker),
		cmocka_unit_test(test_own_symbols),
		cmocka_unit_test(test_hole),
		cmocka_unit_test(test_vdso),
		cmocka_unit_test(test_without_files),
		cmocka_unit_test(test_loaded_twice),
		cmocka_unit_test(test_deleted),
		cmocka_unit_test(test_anonymous_image),
		cmocka_unit_test(test_moved_code),
		cmocka_unit_test(test_unreadable_headers),
		cmocka_unit_test(test_far_program_headers),
		cmocka_unit_test(test_other_process),
		cmocka_unit_test(test_debug_by_build_id),
		cmocka_unit_test(test_debug_by_link),
		cmocka_unit_test(test_odd_links),
		cmocka_unit_test(test_unloaded),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
