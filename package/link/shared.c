/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file What lets static libraries that were compiled for programs be linked into libprobing.so.
 *
 * Their code reaches `stdout` and `stderr` as only a program may: package/module.mk renames both in
 * copies of the libraries, and they are defined here. libelf's error number is thread-local in a
 * way that only programs may use, so its three functions are replaced.
 *
 * Threading: the error number is the calling thread's. Ownership: all texts are constant.
 */
#include <stdio.h>

FILE *prb_stdout, *prb_stderr;

void __libelf_seterrno(int value);
int elf_errno(void);
const char *elf_errmsg(int error);

static __thread int last;

__attribute__((constructor)) static void open_streams(void)
{
	prb_stdout = stdout;
	prb_stderr = stderr;
}

void __libelf_seterrno(int value)
{
	last = value;
}

int elf_errno(void)
{
	int value = last;

	last = 0;
	return value;
}

const char *elf_errmsg(int error)
{
	if (error == 0 && last == 0)
		return NULL;
	return "the ELF file is damaged or cannot be read";
}
