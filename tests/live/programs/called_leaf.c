/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A function of an extension, in which a debugger stops. */
int native_leaf(int n);

__attribute__((noinline)) int native_leaf(int n)
{
	__asm__ volatile("");
	return n * 2;
}
