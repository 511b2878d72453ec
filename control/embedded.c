/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "control/embedded.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/new_file.h"
#include "base/own_file.h"
#include "base/str.h"

/* Of package/link/static_agent.S, which only `make static` links. */
extern const char prb_embedded_agent[] __attribute__((weak));
extern const char prb_embedded_agent_end[] __attribute__((weak));

enum { FOLDER_MODE = 0755, FILE_MODE = 0644 };

/** True if the file is there, ours, and what it should be. */
static bool is_there(int folder, const char *name, const char *data, size_t size)
{
	uint64_t length;
	prb_auto_close int fd = prb_own_file_open(folder, name, O_RDONLY, geteuid(), &length);
	prb_auto_free char *content = fd >= 0 && length == size ? malloc(size) : NULL;

	return content && pread(fd, content, size, 0) == (ssize_t)size &&
	       !memcmp(content, data, size);
}

static bool write_file(int folder, const char *name, const char *data, size_t size)
{
	prb_auto_new_file struct prb_new_file file = PRB_NO_FILE;
	prb_auto_error struct prb_error *err = prb_new_file_open_in(&file, folder, name);

	for (size_t done = 0; !err && done < size;) {
		ssize_t length = write(file.fd, data + done, size - done);

		if (length < 0 && errno != EINTR)
			return false;
		done += length > 0 ? (size_t)length : 0;
	}
	if (!err && !fchmod(file.fd, FILE_MODE))
		err = prb_new_file_place(&file);
	return !file.temporary && !err;
}

/** In an image with this program alone. */
static int make_cache(void)
{
	prb_auto_close int root = prb_own_folder_open("/", 0);
	prb_auto_close int var = root < 0 ? -1 : prb_own_folder_in(root, "var", FOLDER_MODE);

	return var < 0 ? -1 : prb_own_folder_in(var, "cache", FOLDER_MODE);
}

/** Of a user: where caches are, or /tmp where there is no home, or none that can be written. */
static int open_own(const char *base, const char *middle, char **ret_path)
{
	int own = base ? prb_own_folder_make(base, middle, true) : -1;

	if (own < 0)
		return prb_tmp_folder_open(geteuid(), true, ret_path);
	*ret_path = prb_format("%s%s/probing", base, middle);
	return own;
}

static int open_base(char **ret_path)
{
	const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	bool root = !geteuid();
	const char *base = root ? "/var/cache" : xdg && *xdg == '/' ? xdg : home;
	const char *middle = root || base == xdg ? "" : "/.cache";

	if (!root)
		return open_own(base, middle, ret_path);
	*ret_path = prb_format("%s%s/probing", base, middle);
	/* Targets of all users read it. A folder that exists keeps its mode. */
	prb_auto_close int parent = prb_own_folder_open(base, 0);
	if (parent < 0 && errno == ENOENT)
		parent = make_cache();
	return parent < 0 ? -1 : prb_own_folder_in(parent, "probing", FOLDER_MODE);
}

struct prb_error *prb_agent_embedded(const char *name, char **ret)
{
	const char *data = prb_embedded_agent;
	size_t size = data ? (size_t)(prb_embedded_agent_end - prb_embedded_agent) : 0;
	prb_auto_free char *base_path = NULL;
	prb_auto_close int base = -1, folder = -1;
	char below[32];

	*ret = NULL;
	if (!size)
		return NULL;
	/* The hash tells versions apart; the file's owner shows that the file is ours. */
	snprintf(below, sizeof(below), "agent-%016llx",
		 (unsigned long long)prb_hash_bytes(PRB_HASH_START, data, size));
	base = open_base(&base_path);
	if (base >= 0 && base_path)
		folder = prb_own_folder_in(base, below, FOLDER_MODE);
	if (folder < 0 ||
	    (!is_there(folder, name, data, size) && !write_file(folder, name, data, size)))
		return prb_error_hint(prb_error_os(errno, "cannot unpack the agent below %s",
						   base_path ? base_path : "/tmp"),
				      "set PROBING_AGENT to the path of libprobing-agent.so");
	*ret = prb_format("%s/%s/%s", base_path, below, name);
	return *ret ? NULL : prb_error_nomem();
}
