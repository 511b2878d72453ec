/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A pool of C threads that run Python with thread states which the first thread has made for them.
 *
 *   env_handed rest     three workers wait, each in worker_code_N()
 *   env_handed chains   one worker alternates between a1, a2, a3 and x1, x2, x3
 *   env_handed lent     the same, with a state that another thread keeps and has lent
 *   env_handed mounts   as rest, but in an interpreter that the first thread has made; each worker
 *                       has a state of its own in the first interpreter, and runs the other
 *   env_handed mounts fork [told]   in a child, as the workers of a server that forks in C
 *                       and may tell Python of it
 *
 * The kernel's name of each worker is worker-N. The first thread waits outside of Python. With
 * LIBRARY it is a library, whose start_pool() does the same in an interpreter that has none.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

struct state;
extern void Py_Initialize(void);
extern void PyEval_InitThreads(void) __attribute__((weak)); /* needed up to 3.6, gone in 3.13 */
extern void *PyInterpreterState_Head(void);
extern struct state *PyThreadState_New(void *interpreter);
extern struct state *PyEval_SaveThread(void);
extern void PyEval_RestoreThread(struct state *);
extern struct state *PyThreadState_Swap(struct state *);
extern struct state *Py_NewInterpreter(void);
extern int PyGILState_Ensure(void);
extern void PyOS_BeforeFork(void) __attribute__((weak));      /* 3.7+ */
extern void PyOS_AfterFork_Child(void) __attribute__((weak)); /* 3.7+ */
extern int PyRun_SimpleString(const char *);

static const char rest[] = "import os\n"
			   "def inner_%d():\n"
			   "    os.write(1, b'ready\\n')\n"
			   "    os.read(waits[0], 1)\n"
			   "def worker_code_%d():\n"
			   "    inner_%d()\n"
			   "waits = os.pipe()\n"
			   "worker_code_%d()\n";

static const char chains[] = "import os\n"
			     "def a3(): return sum(range(50))\n"
			     "def a2(): return a3()\n"
			     "def a1(): return a2()\n"
			     "def x3(): return sum(range(50))\n"
			     "def x2(): return x3()\n"
			     "def x1(): return x2()\n"
			     "os.write(1, b'ready\\n')\n"
			     "while True:\n"
			     "    a1()\n"
			     "    x1()\n";

struct worker {
	struct state *state;
	const char *code;
	int number;
	bool swaps; /* it has a state already */
};

static void *work(void *context)
{
	struct worker *worker = context;
	int n = worker->number;
	char name[16], code[1024];

	snprintf(name, sizeof(name), "worker-%d", n);
	pthread_setname_np(pthread_self(), name);
	snprintf(code, sizeof(code), worker->code, n, n, n, n);
	if (worker->swaps) {
		PyGILState_Ensure();
		PyThreadState_Swap(worker->state);
	} else {
		PyEval_RestoreThread(worker->state);
	}
	exit(PyRun_SimpleString(code) ? 1 : 0);
}

/* A thread with a state of its own, which a worker runs while it waits. */
static void *lend(void *context)
{
	struct worker *worker = context;
	pthread_t thread;

	pthread_setname_np(pthread_self(), "lender");
	PyGILState_Ensure();
	worker->state = PyEval_SaveThread();
	if (pthread_create(&thread, NULL, work, worker))
		exit(1);
	for (;;)
		pause();
}

/* Called with the GIL held, by a thread that releases it soon. */
void start_pool(const char *mode)
{
	static struct worker workers[3];
	bool alternates = !strcmp(mode, "chains"), mounts = !strcmp(mode, "mounts");
	int count = alternates ? 1 : 3;
	struct state *own = NULL;
	pthread_t thread;

	if (!strcmp(mode, "lent")) {
		workers[0] = (struct worker){NULL, chains, 1, false};
		if (pthread_create(&thread, NULL, lend, &workers[0]))
			exit(1);
		return;
	}
	if (mounts) {
		own = PyThreadState_Swap(NULL);
		PyThreadState_Swap(own);
		Py_NewInterpreter();
		PyThreadState_Swap(own);
	}
	/* The newest interpreter is the head of their list. */
	for (int i = 0; i < count; i++)
		workers[i] = (struct worker){PyThreadState_New(PyInterpreterState_Head()),
					     alternates ? chains : rest, i + 1, mounts};
	for (int i = 0; i < count; i++)
		if (pthread_create(&thread, NULL, work, &workers[i]))
			exit(1);
}

#ifndef LIBRARY
int main(int argc, char **argv)
{
	Py_Initialize();
	if (PyEval_InitThreads)
		PyEval_InitThreads();
	if (argc > 2 && !strcmp(argv[2], "fork")) {
		bool told = PyOS_BeforeFork && argc > 3;
		pid_t child;

		if (told)
			PyOS_BeforeFork();
		child = fork();
		if (child)
			return waitpid(child, NULL, 0) == child ? 0 : 1;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (told)
			PyOS_AfterFork_Child();
	}
	start_pool(argc > 1 ? argv[1] : "rest");
	PyEval_SaveThread();
	for (;;)
		pause();
}
#endif
