/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Loads the libprobing.so of the wheel for musl, as a Python on musl does, and asks of a process:
 * argv is the library, the process and a statement. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/probing.h"

static void *library;

static void *find(const char *name)
{
	void *ret = dlsym(library, name);

	if (!ret) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	return ret;
}

static int show(void *context, const char *text, size_t length)
{
	(void)context;
	fwrite(text, 1, length, stdout);
	return 0;
}

static void check(struct probing_error *err)
{
	const char *(*message)(const struct probing_error *) = find("probing_error_message");

	if (err) {
		fprintf(stderr, "%s\n", message(err));
		exit(1);
	}
}

int main(int argc, char **argv)
{
	typeof(&probing_create) create;
	typeof(&probing_open) open;
	typeof(&probing_print) print;
	typeof(&probing_eval) eval;
	typeof(&probing_destroy) destroy;
	struct probing *p;

	if (argc != 4)
		return 2;
	library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	create = find("probing_create");
	open = find("probing_open");
	print = find("probing_print");
	eval = find("probing_eval");
	destroy = find("probing_destroy");
	check(create(&p));
	check(open(p, argv[2], NULL));
	check(print(p, argv[3], "csv", 0, 0, show, NULL));
	check(eval(p, "answer = 6 * 7", NULL, NULL, NULL));
	destroy(p);
	return 0;
}
