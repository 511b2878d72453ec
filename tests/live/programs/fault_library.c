/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A library to be loaded; its constructor's action is chosen at compile time. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int constructed;

#ifdef THREAD
static void *come_and_go(void *pointer)
{
	free(malloc(1000));
	return pointer;
}
#endif

__attribute__((constructor)) static void construct(void)
{
#ifdef CRASH
	*(volatile int *)8 = 1;
#endif
#ifdef HANG
	for (;;)
		pause();
#endif
#ifdef DLOPEN
	void *library = dlopen("libm.so.6", RTLD_NOW);

	if (!library || !dlsym(library, "cos"))
		return;
#endif
#ifdef THREAD
	pthread_t thread;

	if (pthread_create(&thread, NULL, come_and_go, NULL) || pthread_join(thread, NULL))
		return;
#endif
	constructed = 1000;
}

/* Uses the heap on the way, as any library would. */
__attribute__((visibility("default"))) intptr_t fault_touch(const char *argument);
intptr_t fault_touch(const char *argument)
{
	char *copy = strdup(argument);
	intptr_t length = (intptr_t)strlen(copy);

	free(copy);
	return constructed + length;
}
