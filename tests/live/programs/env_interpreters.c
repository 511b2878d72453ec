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
extern void *Py_NewInterpreter(void);
extern void *PyEval_SaveThread(void);
extern void PyEval_RestoreThread(void *);
extern int PyGILState_Ensure(void);
extern int PyRun_SimpleString(const char *);

static void run(int number)
{
	char text[1024];

	snprintf(text, sizeof(text),
		 "import os, threading\n"
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
	if (Py_NewInterpreter())
		run(*(int *)number);
	exit(1);
}

int main(void)
{
	static int numbers[] = {1, 2};
	pthread_t thread;
	void *state;

	Py_Initialize();
	state = PyEval_SaveThread();
	for (int i = 0; i < 2; i++)
		if (pthread_create(&thread, NULL, serve, &numbers[i]))
			return 1;
	PyEval_RestoreThread(state);
	run(0);
}
