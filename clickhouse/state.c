/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "clickhouse/state.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/new_file.h"
#include "base/own_file.h"
#include "base/siphash.h"
#include "base/str.h"
#include "dump/text/paths.h"

static const char FIRST[] = "probing-ship 1";

enum {
	MAX_STATE = 64 << 20,
	MAX_ENTRIES = 1 << 18,
	FORGET_S = 60 * 86400,
};

struct prb_error *prb_state_folder_open(const char *said, int *ret_fd, char **ret_path)
{
	static const char hint[] = "--state names another folder; it has to be yours, and nobody "
				   "else may write to it";
	const char *systemd = getenv("STATE_DIRECTORY"), *xdg = getenv("XDG_STATE_HOME");
	const char *home = getenv("HOME");

	if (!said && systemd && *systemd == '/')
		said = systemd;
	if (said) {
		struct prb_error *err = prb_own_folder_named(said, ret_fd);

		if (err)
			return prb_error_hint(err, "%s", hint);
		*ret_path = strdup(said);
	} else if (xdg && *xdg == '/') {
		*ret_path = prb_format("%s/probing", xdg);
		*ret_fd = prb_own_folder_make(xdg, "", true);
	} else {
		*ret_path = prb_format("%s/.local/state/probing", home ? home : "");
		*ret_fd = prb_own_folder_make(home ? home : "", "/.local/state", false);
	}
	if (!*ret_path)
		return prb_error_nomem();
	if (*ret_fd < 0)
		return prb_error_hint(
			prb_error_os(errno, "cannot use %.200s to keep what was sent", *ret_path),
			"%s", hint);
	return NULL;
}

struct prb_error *prb_ship_state_note_session(struct prb_ship_state *state)
{
	/* In place: that needs no room on a disk that waiting rows have filled. */
	if (pwrite(state->lock, state->session, sizeof(state->session), 0) !=
		    sizeof(state->session) ||
	    fdatasync(state->lock))
		return prb_error_create(PRB_ERROR_FAILED, "cannot write %s.lock: %s", state->path,
					strerror(errno));
	return NULL;
}

/** Reads the session that an earlier daemon has noted. */
static struct prb_error *take_session(struct prb_ship_state *state)
{
	const size_t size = sizeof(state->session);

	if (pread(state->lock, state->session, size, 0) == (ssize_t)size &&
	    strspn(state->session, "0123456789abcdef") == size - 1 && !state->session[size - 1])
		return NULL;
	memset(state->session, 0, size);
	return prb_ship_state_note_session(state);
}

/** Ours alone: a child that reads metrics and outlives us for a moment does not keep it. */
static struct prb_error *lock(struct prb_ship_state *state, const char *name)
{
	const struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	prb_auto_free char *other = prb_format("%s.lock", name);
	uint64_t size;

	if (!other)
		return prb_error_nomem();
	state->lock = prb_own_file_use(state->folder_fd, other, O_RDWR, &size);
	if (state->lock < 0)
		return prb_error_os(errno, "cannot make %s/%s", state->folder, other);
	if (!fcntl(state->lock, F_SETLK, &all))
		return take_session(state);
	if (errno != EAGAIN && errno != EACCES)
		return prb_error_os(errno, "cannot lock %s/%s", state->folder, other);
	return prb_error_hint(prb_error_create(PRB_ERROR_FAILED,
					       "another process ships to this database already"),
			      "%s/%s is locked by it", state->folder, other);
}

static struct prb_error *add(struct prb_ship_state *state, uint64_t ring, uint64_t next,
			     int64_t seen, const char *job)
{
	struct prb_ship_entry *entry = prb_vec_push(&state->list);

	if (!entry)
		return prb_error_nomem();
	*entry = (struct prb_ship_entry){ring, next, seen, NULL};
	return prb_str_copy(job, &entry->job);
}

static struct prb_error *parse(struct prb_ship_state *state, char *text)
{
	char *rest = NULL, *line = strtok_r(text, "\n", &rest);

	if (!line || strcmp(line, FIRST) != 0)
		return prb_error_hint(prb_error_create(PRB_ERROR_BAD_DATA,
						       "%s is not what a daemon keeps",
						       state->path),
				      "without the file, positions are asked of the server");
	while ((line = strtok_r(NULL, "\n", &rest))) {
		uint64_t ring, next;
		int64_t seen;
		int end = 0;

		if (sscanf(line, "ring %" SCNx64 " %" SCNu64 " %" SCNd64 "%n", &ring, &next, &seen,
			   &end) != 3 ||
		    line[end] != ' ' || state->list.count == MAX_ENTRIES)
			continue;
		PRB_TRY(add(state, ring, next, seen, line + end + 1));
	}
	return NULL;
}

static struct prb_error *load(struct prb_ship_state *state, const char *name)
{
	prb_auto_free char *text = NULL;
	uint64_t size;
	ssize_t got;
	prb_auto_close int fd =
		prb_own_file_open(state->folder_fd, name, O_RDONLY, geteuid(), &size);

	if (fd < 0 && errno == ENOENT)
		return NULL;
	if (fd < 0 || size > MAX_STATE)
		return prb_error_os(fd < 0 ? errno : EFBIG, "cannot read %s", state->path);
	text = calloc(1, size + 1);
	if (!text)
		return prb_error_nomem();
	got = read(fd, text, size);
	if (got < 0)
		return prb_error_os(errno, "cannot read %s", state->path);
	return parse(state, text);
}

struct prb_error *prb_ship_state_open(const char *folder, const struct prb_clickhouse_url *url,
				      struct prb_ship_state *ret)
{
	static const uint64_t key[2] = {};
	prb_auto_free char *which =
		prb_format("%s:%d/%s", url->address.host, url->address.port, url->database);
	prb_auto_free char *name = NULL;
	struct prb_error *err;

	*ret = (struct prb_ship_state){.folder_fd = -1, .lock = -1};
	if (!which)
		return prb_error_nomem();
	name = prb_format("ship-%016" PRIx64, prb_siphash(2, 4, key, which, strlen(which)));
	err = name ? prb_state_folder_open(folder, &ret->folder_fd, &ret->folder)
		   : prb_error_nomem();
	if (!err)
		ret->path = prb_format("%s/%s", ret->folder, name);
	if (!err && !ret->path)
		err = prb_error_nomem();
	if (!err)
		err = lock(ret, name);
	if (!err)
		err = load(ret, name);
	if (err)
		prb_ship_state_deinit(ret);
	return err;
}

void prb_ship_state_deinit(struct prb_ship_state *state)
{
	struct prb_ship_entry *entry;

	prb_vec_each (entry, &state->list)
		free(entry->job);
	prb_vec_free(&state->list);
	prb_close_guard(&state->lock);
	prb_close_guard(&state->folder_fd);
	free(state->path);
	free(state->folder);
	*state = (struct prb_ship_state){.folder_fd = -1, .lock = -1};
}

struct prb_ship_entry *prb_ship_state_find(const struct prb_ship_state *state, uint64_t ring)
{
	struct prb_ship_entry *entry;

	prb_vec_each (entry, &state->list)
		if (entry->ring == ring)
			return entry;
	return NULL;
}

struct prb_error *prb_ship_state_note(struct prb_ship_state *state, uint64_t ring, uint64_t next,
				      const char *job)
{
	struct prb_ship_entry *entry = prb_ship_state_find(state, ring);
	const int64_t now = time(NULL);

	state->changed = true;
	if (!entry)
		return add(state, ring, next, now, job);
	entry->next = next;
	entry->seen = now;
	return NULL;
}

static void put(const struct prb_ship_state *state, struct prb_str *s)
{
	const int64_t oldest = time(NULL) - FORGET_S;
	const struct prb_ship_entry *entry;

	prb_str_printf(s, "%s\n", FIRST);
	prb_vec_each (entry, &state->list) {
		if (entry->seen < oldest)
			continue;
		prb_str_printf(s, "ring %016" PRIx64 " %" PRIu64 " %" PRId64 " ", entry->ring,
			       entry->next, entry->seen);
		for (const char *at = entry->job ? entry->job : ""; *at; at++)
			prb_str_putc(s, *at == '\n' ? ' ' : *at);
		prb_str_putc(s, '\n');
	}
}

struct prb_error *prb_ship_state_save(struct prb_ship_state *state)
{
	prb_auto_new_file struct prb_new_file file = PRB_NO_FILE;
	prb_auto_str struct prb_str text = {};

	if (!state->changed)
		return NULL;
	put(state, &text);
	if (text.failed)
		return prb_error_nomem();
	PRB_TRY(prb_new_file_open_in(&file, state->folder_fd, prb_path_last(state->path)));
	for (size_t done = 0; done < text.length;) {
		ssize_t length = write(file.fd, text.data + done, text.length - done);

		if (length <= 0)
			return prb_error_os(length ? errno : EIO, "cannot write %s", state->path);
		done += (size_t)length;
	}
	PRB_TRY(prb_new_file_finish(&file));
	state->changed = false;
	return NULL;
}
