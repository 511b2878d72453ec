/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Three interpreters in one process. In each, a thread of C runs interpreter_N(), and that has
 * started a Python thread that runs thread_of_N(). Interpreter 0 is the main one.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>

extern void Py_Initialize(void);
extern void PyEval_InitThreads(void) __attribute__((weak)); /* needed up to 3.6, gone in 3.13 */
extern void *Py_NewInterpreter(void);
extern void *PyEval_SaveThread(void);
extern void PyEval_RestoreThread(void *);
extern int PyGILState_Ensure(void);
extern int PyRun_SimpleString(const char *);

static sem_t made;

static void run(int number)
{
	char text[1024];

	/* Extension modules may be linked against a libpython other than the one in here. */
	snprintf(text, sizeof(text),
		 "import os, sys\n"
		 "sys.path[:] = [path for path in sys.path if 'dynload' not in path]\n"
		 "import threading\n"
		 "def thread_of_%d(gate):\n"
		 "    gate.acquire()\n"
		 "def interpreter_%d():\n"
		 "    gate = threading.Lock()\n"
		 "    gate.acquire()\n"
		 "    thread = threading.Thread(target=thread_of_%d, args=(gate,), "
		 "name='helper-%d')\n"
		 "    thread.start()\n"
		 "    os.write(1, b'ready\\n')\n"
		 "    gate.acquire()\n"
		 "interpreter_%d()\n",
		 number, number, number, number, number);
	PyRun_SimpleString(text);
	exit(1);
}

static void *serve(void *number)
{
	PyGILState_Ensure();
	if (!Py_NewInterpreter())
		exit(1);
	sem_post(&made);
	run(*(int *)number);
	return NULL;
}

int main(void)
{
	static int numbers[] = {1, 2};
	pthread_t thread;
	void *state;

	Py_Initialize();
	if (PyEval_InitThreads)
		PyEval_InitThreads();
	state = PyEval_SaveThread();
	sem_init(&made, 0, 0);
	for (int i = 0; i < 2; i++) {
		if (pthread_create(&thread, NULL, serve, &numbers[i]))
			return 1;
		sem_wait(&made);
	}
	PyEval_RestoreThread(state);
	run(0);
}
