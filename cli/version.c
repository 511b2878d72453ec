/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/version.h"

#include <gnu/libc-version.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "control/load.h"
#include "gateway/page_files.h"
#include "profile/sampler/sampler.h"
#include "remote/http.h"

static bool has_agent(void)
{
	char *path = NULL;
	prb_auto_error struct prb_error *err = prb_agent_library(&path);

	free(path);
	return !err;
}

static bool has_page(void)
{
	return prb_page_files[0].path != NULL;
}

/* In the order of the text. */
static const struct feature {
	const char *name;
	bool (*present)(void);
} features[] = {
	{"agent", has_agent},
	{"page", has_page},
	{"ebpf", prb_profile_ebpf_built},
	{"clickhouse", prb_http_built},
};

static void put_features(struct prb_str *s, const char *title, bool present)
{
	const char *before = title;

	for (size_t i = 0; i < sizeof(features) / sizeof(*features); i++) {
		if (features[i].present() != present)
			continue;
		prb_str_puts(s, before);
		prb_str_puts(s, features[i].name);
		before = ", ";
	}
	if (before != title)
		prb_str_putc(s, '\n');
}

void prb_version_text(struct prb_str *s)
{
	prb_str_puts(s, "probing " PRB_VERSION "\n");
	prb_str_printf(s, "built for %s by %s %s, glibc %d.%d; this is glibc %s\n",
#ifdef __aarch64__
		       "aarch64",
#else
		       "x86_64",
#endif
#ifdef __clang__
		       "clang", __clang_version__,
#else
		       "gcc", __VERSION__,
#endif
		       __GLIBC__, __GLIBC_MINOR__, gnu_get_libc_version());
	put_features(s, "features: ", true);
	put_features(s, "not built: ", false);
}
