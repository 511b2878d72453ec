/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "gateway/mhd.h"

#include <dlfcn.h>
#include <string.h>

static const char LIBRARY[] = "libmicrohttpd.so.12";

struct prb_mhd prb_mhd;

struct prb_error *prb_mhd_load(void)
{
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	void *function;

	if (!library)
		return prb_error_hint(prb_error_create(PRB_ERROR_UNSUPPORTED,
						       "%s is needed to serve HTTP: %s", LIBRARY,
						       dlerror()),
				      "Debian and Ubuntu: apt-get install libmicrohttpd12");
#define LOOK_UP(name)                                                                         \
	function = dlsym(library, "MHD_" #name);                                              \
	if (!function)                                                                        \
		return prb_error_hint(prb_error_create(PRB_ERROR_UNSUPPORTED,                 \
						       "%s has no MHD_" #name "()", LIBRARY), \
				      "it is too old: install libmicrohttpd12 or newer");     \
	memcpy(&prb_mhd.name, &function, sizeof(function));
	PRB_MHD_FUNCTIONS(LOOK_UP)
#undef LOOK_UP
	return NULL;
}
