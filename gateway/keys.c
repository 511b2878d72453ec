/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "gateway/keys.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"

enum { MAX_PEM = 1 << 20 };

static struct prb_error *read_file(const char *path, bool secret, struct prb_str *ret)
{
	prb_auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char chunk[4096];
	struct stat st;
	ssize_t got;

	if (fd < 0 || fstat(fd, &st))
		return prb_error_os(errno, "cannot open %.200s", path);
	if (!S_ISREG(st.st_mode))
		return prb_error_create(PRB_ERROR_USAGE, "%.200s is no file", path);
	if (secret && st.st_mode & 077)
		return prb_error_hint(prb_error_create(PRB_ERROR_PERMISSION,
						       "other users may read the key %.200s", path),
				      "'chmod 600' makes it yours alone");
	while ((got = read(fd, chunk, sizeof(chunk))) > 0 && ret->length < MAX_PEM)
		prb_str_append(ret, chunk, (size_t)got);
	explicit_bzero(chunk, sizeof(chunk));
	if (got < 0)
		return prb_error_os(errno, "cannot read %.200s", path);
	if (!ret->length || got)
		return prb_error_create(PRB_ERROR_USAGE, "%.200s is no PEM file", path);
	return ret->failed ? prb_error_nomem() : NULL;
}

struct prb_error *prb_keys_read(struct prb_keys *keys, const char *certificate, const char *key)
{
	PRB_TRY(read_file(certificate, false, &keys->certificate));
	return read_file(key, true, &keys->key);
}

void prb_keys_deinit(struct prb_keys *keys)
{
	if (keys->key.data)
		explicit_bzero(keys->key.data, keys->key.length);
	prb_str_deinit(&keys->key);
	prb_str_deinit(&keys->certificate);
}
