/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Opens the targets of a query, and reads the text of a script. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "command/descriptors.h"
#include "command/exit.h"
#include "cli/commands/query/query.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "target/recorded/recorded.h"
#include "target/snapshot/bundle.h"
#include "target/spec/target_spec.h"

enum { MAX_SCRIPT = 16 * 1024 * 1024 };

/* Bytes of snapshots, which take some ten times as many in memory. */
static const uint64_t MAX_BUNDLE = 512 << 20;

struct prb_error *prb_query_format(const char *name, const struct prb_renderer_format **ret)
{
	const struct prb_renderer_format *format = prb_renderer_find(name);
	prb_auto_str struct prb_str names = {};

	if (format) {
		*ret = format;
		return NULL;
	}
	for (const struct prb_renderer_format *f = prb_renderer_formats; f->name; f++)
		prb_str_printf(&names, "%s%s", names.length ? ", " : "", f->name);
	return prb_error_hint(
		prb_error_create(PRB_ERROR_USAGE, "there is no format '%.100s'", name),
		"it is one of %s", prb_str_text(&names));
}

/** If one of several targets cannot be opened, prints its error and keeps the first. */
static struct prb_error *lose(struct prb_query *query, struct prb_error *err)
{
	prb_auto_str struct prb_str text = {};

	if (query->targets == 1 || err->code == PRB_ERROR_NOMEM)
		return err;
	prb_str_puts(&text, err->message);
	if (err->hint)
		prb_str_printf(&text, "\n%s", err->hint);
	prb_warn(prb_str_text(&text));
	query->lost++;
	if (query->failure)
		prb_error_destroy(err);
	else
		query->failure = err;
	return NULL;
}

/** Prints which folder the rows are from, since another user may have made it. */
static void tell_left(const char *pid, const struct prb_target *target)
{
	prb_auto_str struct prb_str path = {};
	int fd;

	prb_text_escape(&path, prb_recorded_folder(target, &fd));
	fprintf(stderr, "probing: process %s has ended: the rows are from %s\n", pid,
		prb_str_text(&path));
}

static struct prb_error *open_one(struct prb_query *query, const struct prb_cli *cli,
				  const char *text)
{
	struct prb_target *target;
	bool left;
	struct prb_error *err = prb_spec_open_rows(text, &cli->places, &target, &left);

	if (err)
		return lose(query, err);
	PRB_TRY(prb_session_add_target(query->session, text, target));
	if (left)
		tell_left(text, target);
	return NULL;
}

static struct prb_error *open_member(struct prb_query *query, const struct prb_bundle *bundle,
				     const struct prb_bundle_member *member)
{
	prb_auto_free char *name = prb_format("%s/%ld", bundle->path, member->number);
	struct prb_target *target;
	struct prb_error *err;

	if (!name)
		return prb_error_nomem();
	err = prb_bundle_target(bundle, member, &target);
	if (err)
		return lose(query, err);
	PRB_TRY(prb_session_add_target(query->session, name, target));
	prb_session_set_rank(query->session, member->number);
	return NULL;
}

/** All ranks that are saved there. */
static struct prb_error *open_bundle(struct prb_query *query, const char *path)
{
	prb_auto_bundle struct prb_bundle bundle = PRB_NO_BUNDLE;
	const struct prb_bundle_member *member;
	uint64_t size = 0;

	PRB_TRY(prb_bundle_open(path, &bundle));
	query->targets--;
	prb_vec_each (member, &bundle.members) {
		query->targets += member->kind == PRB_BUNDLE_SNAPSHOT;
		size += member->kind == PRB_BUNDLE_SNAPSHOT ? member->size : 0;
	}
	if (!query->targets)
		return prb_error_create(PRB_ERROR_NOT_FOUND, "%s has no snapshot", path);
	if (size > MAX_BUNDLE)
		return prb_error_hint(
			prb_error_create(PRB_ERROR_UNSUPPORTED,
					 "%s has %llu MiB of snapshots, too many for one query",
					 path, (unsigned long long)size >> 20),
			"choose ranks: probing -t %s/0 -t %s/1 query …", path, path);
	prb_vec_each (member, &bundle.members)
		if (member->kind == PRB_BUNDLE_SNAPSHOT)
			PRB_TRY(open_member(query, &bundle, member));
	return NULL;
}

static struct prb_error *open_named(struct prb_query *query, const struct prb_cli *cli)
{
	query->targets = cli->targets.count;
	for (size_t i = 0; i < cli->targets.count; i++) {
		const char *text = cli->targets.items[i];

		PRB_TRY(prb_spec_kind(text) == PRB_SPEC_BUNDLE ? open_bundle(query, text)
							       : open_one(query, cli, text));
	}
	return NULL;
}

static struct prb_error *open_pids(struct prb_query *query, const struct prb_pids *pids)
{
	const pid_t *pid;

	query->targets = pids->list.count;
	prb_vec_each (pid, &pids->list) {
		struct prb_target *target;
		struct prb_error *err = prb_target_open_process(*pid, &target);
		char name[16];

		snprintf(name, sizeof(name), "%d", (int)*pid);
		if (err)
			PRB_TRY(lose(query, err));
		else
			PRB_TRY(prb_session_add_target(query->session, name, target));
	}
	return NULL;
}

static bool contains(const struct prb_pids *pids, size_t count, pid_t pid)
{
	for (size_t i = 0; i < count; i++)
		if (pids->list.items[i] == pid)
			return true;
	return false;
}

/** Keeps the first of each pid: two patterns may match the same process. */
static void make_unique(struct prb_pids *pids)
{
	size_t kept = 0;

	for (size_t i = 0; i < pids->list.count; i++)
		if (!contains(pids, kept, pids->list.items[i]))
			pids->list.items[kept++] = pids->list.items[i];
	pids->list.count = kept;
}

static struct prb_error *open_all(struct prb_query *query, const struct prb_cli *cli)
{
	__attribute__((cleanup(prb_pids_deinit))) struct prb_pids pids = {};

	if (!cli->targets.count)
		PRB_TRY(prb_command_line_find_all("", false, &pids));
	for (size_t i = 0; i < cli->targets.count; i++)
		PRB_TRY(prb_spec_find_all(cli->targets.items[i], &pids));
	make_unique(&pids);
	return open_pids(query, &pids);
}

struct prb_error *prb_query_open(struct prb_query *query, const struct prb_cli *cli, bool all)
{
	query->target = cli->target;
	/* Of each process, some files stay open, and a machine may have hundreds. */
	prb_descriptors_raise();
	PRB_TRY(all ? open_all(query, cli) : open_named(query, cli));
	/* No target is left. */
	if (query->lost && query->lost == query->targets)
		return prb_error_prefix(prb_steal(&query->failure), "no target can be read");
	return NULL;
}

static struct prb_error *read_stream(FILE *file, const char *name, struct prb_str *ret)
{
	char chunk[16384];
	size_t length;

	errno = 0;
	while ((length = fread(chunk, 1, sizeof(chunk), file))) {
		prb_str_append(ret, chunk, length);
		if (ret->length > MAX_SCRIPT)
			return prb_error_create(PRB_ERROR_USAGE, "%s: over %d MiB are no script",
						name, MAX_SCRIPT / 1024 / 1024);
	}
	if (ferror(file))
		return prb_error_os(errno ? errno : EIO, "cannot read %s", name);
	if (ret->failed)
		return prb_error_nomem();
	if (ret->length && memchr(ret->data, '\0', ret->length))
		return prb_error_create(PRB_ERROR_USAGE, "%s is not text: it has a NUL byte", name);
	return NULL;
}

/**
 * Opens a file to be read. The open() of a pipe with a name waits for a writer, without bound: a
 * pipe without a writer is an error.
 */
static struct prb_error *open_stream(const char *path, FILE **ret)
{
	prb_auto_close int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	ssize_t length = -1;
	struct stat st;
	char first;

	if (fd < 0 || fstat(fd, &st))
		return prb_error_os(errno, "cannot open %.200s", path);
	if (S_ISFIFO(st.st_mode))
		length = read(fd, &first, 1);
	if (!length)
		return prb_error_create(PRB_ERROR_USAGE, "%.200s is a pipe that nobody writes to",
					path);
	if (fcntl(fd, F_SETFL, 0))
		return prb_error_os(errno, "cannot read %.200s", path);
	*ret = fdopen(fd, "r");
	if (!*ret)
		return prb_error_nomem();
	prb_steal_fd(&fd);
	if (length > 0)
		ungetc((unsigned char)first, *ret);
	return NULL;
}

struct prb_error *prb_query_read(const char *path, struct prb_str *ret)
{
	prb_auto_fclose FILE *file = NULL;

	if (!path)
		return read_stream(stdin, "stdin", ret);
	PRB_TRY(open_stream(path, &file));
	return read_stream(file, path, ret);
}
