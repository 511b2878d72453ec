/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Modules with arbitrary headers in memory. */
#include "module_fake.h"

/** Arbitrary program headers in memory. */
static void test_hostile_headers(void **state)
{
	static const uint64_t values[] = {
		0, 1, 0x1000, 0x7fffffff, UINT64_MAX, UINT64_MAX - 0xfff, 1ULL << 47, 1ULL << 63};
	uint32_t seed = 4711;
	(void)state;

	compile("hostile.so", library, SEPARATE_CODE);
	prb_auto_free char *path = in_folder("hostile.so");
	void *handle = dlopen(path, RTLD_NOW);
	assert_non_null(handle);
	uint64_t visible = (uintptr_t)dlsym(handle, "visible");
	struct fake fake;
	fake_init(&fake, false);
	struct prb_modules *modules = modules_of(&fake.target);
	struct prb_module *module = prb_modules_find(modules, visible);
	assert_non_null(module);
	uint8_t *header = (uint8_t *)module->header;
	prb_modules_destroy(modules);

	uint8_t good[1024];
	memcpy(good, header, sizeof(good));
	assert_int_equal(mprotect(header, 4096, PROT_READ | PROT_WRITE), 0);
	for (unsigned round = 0; round < 500; round++) {
		for (unsigned n = 1 + round % 5; n; n--) {
			seed = seed * 1103515245 + 12345;
			size_t at = 24 + (seed >> 8) % 600 / 4 * 4;
			memcpy(header + at, &values[seed >> 28 & 7], seed & 1024 ? 4 : 8);
		}
		modules = modules_of(&fake.target);
		ask_all(modules, visible);
		prb_modules_destroy(modules);
		memcpy(header, good, sizeof(good));
	}
	fake_deinit(&fake);
	dlclose(handle);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_hostile_headers)};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
