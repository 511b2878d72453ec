/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Programs of C with Python inside: fault_embed SHARED KIND. Linked against any libpython, so
 * nothing of Python.h is used.
 *
 *   before        has it, but does not start it until `sent` is set; then it runs code all the time
 *   again         starts and ends it all the time
 *   interpreters  three interpreters, each in a thread of C that runs code all the time
 */
#include <semaphore.h>

#include "fault.h"

extern void Py_Initialize(void);
extern void Py_Finalize(void);
extern void PyEval_InitThreads(void) __attribute__((weak)); /* needed up to 3.6, gone in 3.13 */
extern void *Py_NewInterpreter(void);
extern void *PyEval_SaveThread(void);
extern void PyEval_RestoreThread(void *);
extern int PyGILState_Ensure(void);
extern int PyRun_SimpleString(const char *);

static void run_code(void)
{
	if (PyRun_SimpleString("assert sum(range(1000)) == 499500\n"
			       "[str(i) for i in range(100)]\n"))
		fault_wrong(1);
	fault_round();
}

/* Lets go of the GIL in between, as a server does between requests. */
static void serve(void)
{
	void *state = PyEval_SaveThread();

	while (!shared->stop) {
		nanosleep(&(struct timespec){0, 1000000}, NULL);
		PyEval_RestoreThread(state);
		run_code();
		state = PyEval_SaveThread();
	}
}

static void start_late(void)
{
	fault_ready();
	while (!shared->stop && !shared->sent) {
		nanosleep(&(struct timespec){0, 2000000}, NULL);
		fault_round();
	}
	if (!shared->sent)
		return;
	Py_Initialize();
	if (PyEval_InitThreads)
		PyEval_InitThreads();
	serve();
}

static void start_again(void)
{
	fault_ready();
	while (!shared->stop) {
		Py_Initialize();
		run_code();
		Py_Finalize();
	}
}

static sem_t made;

static void *serve_beside(void *unused)
{
	PyGILState_Ensure();
	if (!Py_NewInterpreter())
		fault_wrong(2);
	sem_post(&made);
	serve();
	return unused;
}

static void serve_three(void)
{
	pthread_t thread;
	void *state;

	Py_Initialize();
	if (PyEval_InitThreads)
		PyEval_InitThreads();
	state = PyEval_SaveThread();
	for (int i = 0; i < 2; i++)
		if (pthread_create(&thread, NULL, serve_beside, NULL))
			exit(1);
	sem_wait(&made);
	sem_wait(&made);
	PyEval_RestoreThread(state);
	fault_ready();
	serve();
}

int main(int argc, char **argv)
{
	const char *kind = argc > 2 ? argv[2] : "";

	fault_open(argv[1]);
	if (!strcmp(kind, "before"))
		start_late();
	else if (!strcmp(kind, "again"))
		start_again();
	else if (!strcmp(kind, "interpreters"))
		serve_three();
	_exit(fault_end());
}
