/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cluster/reach/save.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "target/snapshot/bundle.h"

enum { MAX_LOOKS = 256 << 20 };

static struct prb_error *ask_for_snapshot(struct prb_answer *answer, pid_t pid, bool redact)
{
	PRB_TRY(prb_words_add(&answer->words, "probing"));
	PRB_TRY(prb_words_add(&answer->words, "--pid=%d", (int)pid));
	PRB_TRY(prb_words_add(&answer->words, "snapshot"));
	PRB_TRY(prb_words_add(&answer->words, "--output=-"));
	if (redact)
		PRB_TRY(prb_words_add(&answer->words, "--redact"));
	answer->itself = answer->spools = true;
	return NULL;
}

static void tell(prb_save_warn *warn, long rank, const char *why)
{
	prb_auto_str struct prb_str text = {};

	prb_str_printf(&text, "rank %ld is not saved: ", rank);
	prb_text_escape(&text, why);
	warn(prb_str_text(&text));
}

struct prb_error *prb_save_snapshots(const struct prb_job *job, bool redact, double deadline_s,
				     prb_save_warn *warn, struct prb_answers *ret)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	const struct prb_gather_options options = {
		.at_once = processors > 0 ? (size_t)processors : 1, .deadline_s = deadline_s};
	const struct prb_rank *rank;

	prb_vec_each (rank, &job->ranks) {
		struct prb_answer *answer = prb_answers_add(ret, NULL);

		if (!answer)
			return prb_error_nomem();
		if (rank->pid)
			PRB_TRY(ask_for_snapshot(answer, rank->pid, redact));
	}
	PRB_TRY(prb_gather(ret, &options));
	for (size_t i = 0; i < ret->list.count; i++)
		if (ret->list.items[i].error)
			tell(warn, job->ranks.items[i].rank, ret->list.items[i].error);
	return NULL;
}

struct prb_error *prb_save_write(int fd, const struct prb_job *job, const struct prb_round *round,
				 const struct prb_answers *snapshots, bool redact, size_t *count)
{
	prb_auto_str struct prb_str looks = {};

	PRB_TRY(prb_bundle_begin(fd));
	for (size_t i = 0; i < snapshots->list.count; i++) {
		const struct prb_answer *answer = &snapshots->list.items[i];

		if (answer->error || answer->spool < 0)
			continue;
		PRB_TRY(prb_bundle_add(fd, PRB_BUNDLE_SNAPSHOT, job->ranks.items[i].rank,
				       answer->spool, 0, answer->spooled));
		++*count;
	}
	prb_looks_write(job, round, true, redact, &looks);
	if (looks.failed)
		return prb_error_nomem();
	PRB_TRY(prb_bundle_add_text(fd, PRB_BUNDLE_LOOKS, 0, looks.data, looks.length));
	return prb_bundle_end(fd);
}

static struct prb_error *read_member(const struct prb_bundle *bundle,
				     const struct prb_bundle_member *member, struct prb_str *ret)
{
	char chunk[65536];

	if (member->size > MAX_LOOKS)
		return prb_error_create(PRB_ERROR_BAD_DATA, "%s: %llu bytes of looks; over %d MiB",
					bundle->path, (unsigned long long)member->size,
					MAX_LOOKS >> 20);
	while (ret->length < member->size && !ret->failed) {
		size_t rest = member->size - ret->length;
		ssize_t got = pread(bundle->fd, chunk, rest < sizeof(chunk) ? rest : sizeof(chunk),
				    (off_t)(member->offset + ret->length));

		if (got < 0)
			return prb_error_os(errno, "cannot read %s", bundle->path);
		if (!got)
			return prb_error_create(PRB_ERROR_BAD_DATA, "%s ends early", bundle->path);
		prb_str_append(ret, chunk, (size_t)got);
	}
	return ret->failed ? prb_error_nomem() : NULL;
}

/** A host saves its own ranks only: no rank twice, whatever hosts say. */
static struct prb_error *copy(int fd, long number, const char *host,
			      const struct prb_bundle *bundle, struct prb_looks *looks,
			      size_t *count, char **why)
{
	const struct prb_bundle_member *seen = prb_bundle_find(bundle, PRB_BUNDLE_LOOKS, 0),
				       *member;
	prb_auto_str struct prb_str text = {}, named = {};

	if (!seen)
		return prb_error_create(PRB_ERROR_BAD_DATA, "it holds no looks");
	PRB_TRY(read_member(bundle, seen, &text));
	PRB_TRY(prb_looks_add(looks, host, text.data, text.length, why));
	if (*why)
		return NULL;
	prb_looks_name(&named, host, text.data, text.length);
	if (named.failed)
		return prb_error_nomem();
	PRB_TRY(prb_bundle_add_text(fd, PRB_BUNDLE_LOOKS, number, named.data, named.length));
	prb_vec_each (member, &bundle->members) {
		if (member->kind != PRB_BUNDLE_SNAPSHOT || !prb_looks_claim(looks, member->number))
			continue;
		PRB_TRY(prb_bundle_add(fd, PRB_BUNDLE_SNAPSHOT, member->number, bundle->fd,
				       member->offset, member->size));
		++*count;
	}
	return NULL;
}

struct prb_error *prb_save_copy(int fd, long number, const struct prb_answer *answer,
				struct prb_looks *looks, size_t *count, char **why)
{
	prb_auto_bundle struct prb_bundle bundle = PRB_NO_BUNDLE;
	int own = fcntl(answer->spool, F_DUPFD_CLOEXEC, 0);
	struct prb_error *err;

	*why = NULL;
	if (own < 0)
		return prb_error_os(errno, "cannot read an answer");
	err = prb_bundle_read(own, "the answer", &bundle);
	if (!err)
		err = copy(fd, number, answer->host, &bundle, looks, count, why);
	if (err && (err->code == PRB_ERROR_BAD_DATA || err->code == PRB_ERROR_UNSUPPORTED)) {
		*why = strdup(err->message);
		prb_looks_lack(looks);
		prb_error_destroy(err);
		return *why ? NULL : prb_error_nomem();
	}
	return err;
}

struct prb_error *prb_save_load(const char *path, struct prb_looks *looks)
{
	prb_auto_bundle struct prb_bundle bundle = PRB_NO_BUNDLE;
	const struct prb_bundle_member *member;

	PRB_TRY(prb_bundle_open(path, &bundle));
	prb_vec_each (member, &bundle.members) {
		prb_auto_str struct prb_str text = {};
		prb_auto_free char *why = NULL;

		if (member->kind != PRB_BUNDLE_LOOKS)
			continue;
		PRB_TRY(read_member(&bundle, member, &text));
		PRB_TRY(prb_looks_add(looks, NULL, text.data, text.length, &why));
		if (why)
			return prb_error_create(PRB_ERROR_BAD_DATA,
						"%s: what was seen of the ranks cannot be "
						"understood: another version?",
						path);
	}
	return NULL;
}
