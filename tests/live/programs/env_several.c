/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Several libpythons in one process, each in a thread of its own.
 *
 *   env_several HOW LIBPYTHON HOME [LIBPYTHON HOME]...
 *
 * HOW is "dlopen" (RTLD_LOCAL) or "dlmopen" (a namespace of its own for each). Each Python runs a
 * function that is called after its number: first(), second(), ...
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const names[] = {"first", "second", "third"};
static sem_t ready;

struct python {
	const char *name, *library, *home;
	void *handle;
};

static void *find(const struct python *p, const char *name)
{
	void *symbol = dlsym(p->handle, name);

	if (!symbol) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	return symbol;
}

static void run(struct python *p)
{
	wchar_t *(*decode)(const char *, size_t *);
	void (*set_home)(wchar_t *), (*initialize)(int);
	int (*run_string)(const char *);
	char code[1024];
	int pipe_fds[2];

	*(void **)&decode = find(p, "Py_DecodeLocale");
	*(void **)&set_home = find(p, "Py_SetPythonHome");
	*(void **)&initialize = find(p, "Py_InitializeEx");
	*(void **)&run_string = find(p, "PyRun_SimpleString");
	set_home(decode(p->home, NULL));
	initialize(0);
	if (pipe(pipe_fds))
		exit(1);
	snprintf(code, sizeof(code),
		 "import os\n"
		 "def %s():\n"
		 "    os.write(%d, b'x')\n"
		 "    while True:\n"
		 "        os.read(%d, 2)\n"
		 "%s()\n",
		 p->name, pipe_fds[1], pipe_fds[0], p->name);
	sem_post(&ready);
	run_string(code);
	exit(1);
}

static void *serve(void *python)
{
	run(python);
	return NULL;
}

int main(int argc, char **argv)
{
	struct python pythons[3] = {};
	int count = 0;

	sem_init(&ready, 0, 0);
	for (int i = 2; i + 1 < argc && count < 3; i += 2, count++) {
		struct python *p = &pythons[count];
		int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
		pthread_t thread;

		p->name = names[count];
		p->library = argv[i];
		p->home = argv[i + 1];
		p->handle = strcmp(argv[1], "dlmopen")
				    ? dlopen(p->library, RTLD_NOW | RTLD_LOCAL)
				    : dlmopen(LM_ID_NEWLM, p->library, RTLD_NOW | RTLD_LOCAL);
		if (!p->handle) {
			fprintf(stderr, "%s\n", dlerror());
			return 1;
		}
		/* Each namespace has a C library of its own, which has to know its threads. */
		*(void **)&create = find(p, "pthread_create");
		if (create(&thread, NULL, serve, p))
			return 1;
		sem_wait(&ready);
	}
	printf("ready %d\n", getpid());
	fflush(stdout);
	while (getchar() != EOF)
		;
	_exit(0);
}
