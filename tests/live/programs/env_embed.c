/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A server with Python inside, like uwsgi: Python runs in a thread that is not the first one.
 *
 *   myserver SCRIPT         the first thread waits for the other
 *   myserver SCRIPT exit    the first thread ends before
 *
 * Linked against any libpython from 3.4 on, so nothing of Python.h is used.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern void Py_Initialize(void);
extern int PyRun_SimpleString(const char *);

static void *serve(void *script)
{
	char code[8192];

	pthread_setname_np(pthread_self(), "python");
	Py_Initialize();
	/* Extension modules may be linked against a libpython other than the one in here. */
	snprintf(code, sizeof(code),
		 "import sys\n"
		 "sys.path[:] = [path for path in sys.path if 'dynload' not in path]\n"
		 "with open('%s') as file: exec(compile(file.read(), '%s', 'exec'), "
		 "{'__name__': '__main__'})",
		 (char *)script, (char *)script);
	exit(PyRun_SimpleString(code) ? 1 : 0);
}

int main(int argc, char **argv)
{
	pthread_t thread;

	if (argc < 2 || pthread_create(&thread, NULL, serve, argv[1]))
		return 2;
	if (argc > 2 && !strcmp(argv[2], "exit"))
		pthread_exit(NULL);
	return pthread_join(thread, NULL) ? 1 : 0;
}
