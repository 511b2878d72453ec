/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A server that starts and ends Python on request: each line on stdin does one of the two.
 */
#include <stdio.h>

extern void Py_Initialize(void);
extern void Py_Finalize(void);
extern int PyRun_SimpleString(const char *);

int main(void)
{
	int running = 0;

	do {
		if (running)
			Py_Finalize();
		puts("ready");
		fflush(stdout);
		if (getchar() == EOF)
			break;
		Py_Initialize();
		running = 1;
		PyRun_SimpleString("import os\n"
				   "def ask():\n"
				   "    os.write(1, b'ready\\n')\n"
				   "    os.read(0, 1)\n"
				   "ask()\n");
	} while (1);
	return 0;
}
