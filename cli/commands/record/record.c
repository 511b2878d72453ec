/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `probing record`: copies what rings are about to drop into cold files (rings/cold.h). */
#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/own_file.h"
#include "base/vec.h"
#include "target/proc/instance.h"
#include "target/proc/subprocesses.h"
#include "target/proc/text.h"
#include "command/command.h"
#include "command/exit.h"
#include "command/interrupt.h"
#include "rings/cold.h"
#include "rings/files.h"
#include "target/recorded/left.h"
#include "target/spec/target_spec.h"

enum {
	LOOK_MS = 1000,	 /* how often processes and their rings are looked for */
	PRUNE_LEFT = 60, /* looks between two at the folders of ended processes */
	QUICK_MS = 50,	 /* how often rings that fill up fast are read */
	FAST_PART = 4,	 /* a fast ring fills a fourth of itself within LOOK_MS */
	DAY = 86400,
	MIB = 1 << 20,
	DEFAULT_DAYS = 7,
	DEFAULT_MIB = 1024,
};

struct record_settings {
	const char *output;
	bool subprocesses;
	double keep;
	int max_size;
};

/** A ring that is stored. */
struct source {
	struct prb_cold cold;
	int fd;
	dev_t device;
	ino_t inode;
	pid_t pid;    /**< a process that has it mapped */
	size_t place; /**< index */
	bool ended, failed;
	bool again; /**< what failed may work later */
};

/** A folder that cold files are in. */
struct place {
	char *path;
	int fd;		 /**< -1: no ring is stored there any more */
	unsigned stored; /**< rings that are */
	bool gone;	 /**< it was removed */
};

/** Totals of what was stored. */
struct sums {
	size_t rings;
	uint64_t chunks, bytes, missed;
};

struct record {
	const struct record_settings *settings;
	PRB_VEC(struct source *) sources;
	PRB_VEC(struct place) places;
	PRB_VEC(struct prb_target *) targets;
	struct sums done; /**< of rings that are stored to their ends */
	unsigned looks;
	bool failed; /**< a ring was not found or stored in this look */
	bool told;   /**< and that was said */
};

static void source_destroy(struct source *source)
{
	prb_cold_deinit(&source->cold);
	prb_close_guard(&source->fd);
	free(source);
}

static void record_deinit(struct record *r)
{
	for (size_t i = 0; i < r->sources.count; i++)
		source_destroy(r->sources.items[i]);
	for (size_t i = 0; i < r->targets.count; i++)
		prb_target_destroy(r->targets.items[i]);
	for (size_t i = 0; i < r->places.count; i++) {
		prb_close_guard(&r->places.items[i].fd);
		free(r->places.items[i].path);
	}
	prb_vec_free(&r->sources);
	prb_vec_free(&r->targets);
	prb_vec_free(&r->places);
	prb_interrupt_release();
}

/** Where the cold files of a ring go: beside it, or into a folder of its process in --output. */
static struct prb_error *find_folder(const struct record *r, const char *ring, char **ret)
{
	prb_auto_free char *folder = strdup(ring);
	char *slash = folder ? strrchr(folder, '/') : NULL;
	uint64_t start_ticks;
	const char *name;
	pid_t pid;

	if (!folder)
		return prb_error_nomem();
	if (slash)
		*slash = '\0';
	name = slash ? strrchr(folder, '/') : NULL;
	if (!name || !prb_instance_parse(name + 1, &pid, &start_ticks))
		return prb_error_create(PRB_ERROR_BAD_DATA, "%s lies in no folder of a process",
					ring);
	*ret = r->settings->output ? prb_format("%s%s", r->settings->output, name) : strdup(folder);
	return *ret ? NULL : prb_error_nomem();
}

/** Root does not write where another user could lead it elsewhere. */
static struct prb_error *open_folder(const struct record *r, const char *path, int *ret)
{
	struct prb_error *err = NULL;

	*ret = -1;
	if (r->settings->output)
		return prb_own_folder_named(path, ret); /* which says what it has to be */
	if ((*ret = prb_own_folder_open(path, geteuid())) < 0)
		err = prb_own_folder_error(path, geteuid());
	if (!err)
		return NULL;
	return prb_error_hint(err, "rings of another user: give a folder with -o");
}

/** Finds the place of a ring, or makes it; it is open then. */
static struct prb_error *use_place(struct record *r, const char *ring, size_t *ret)
{
	prb_auto_free char *path = NULL;
	struct place *place;

	PRB_TRY(find_folder(r, ring, &path));
	for (*ret = 0; *ret < r->places.count; ++*ret)
		if (!strcmp(r->places.items[*ret].path, path))
			break;
	if (*ret == r->places.count) {
		place = prb_vec_push(&r->places);
		if (!place)
			return prb_error_nomem();
		*place = (struct place){.path = prb_steal(&path), .fd = -1};
	}
	place = &r->places.items[*ret];
	return place->fd >= 0 ? NULL : open_folder(r, place->path, &place->fd);
}

/** The ring, unless it is new. The inode number of an open file is not reused. */
static struct source *find_known(const struct record *r, const struct stat *st)
{
	for (size_t i = 0; i < r->sources.count; i++)
		if (r->sources.items[i]->device == st->st_dev &&
		    r->sources.items[i]->inode == st->st_ino)
			return r->sources.items[i];
	return NULL;
}

/** Takes over the file's descriptor if the ring is new. */
static struct prb_error *add_source(struct record *r, struct prb_ring_file *file, pid_t pid)
{
	const char *name = strrchr(file->path, '/');
	struct source *source, **slot;
	struct stat st;
	size_t place;

	if (!name || prb_cold_is_name(name) || fstat(file->fd, &st))
		return NULL;
	source = find_known(r, &st);
	if (source) {
		/* A child writes to the rings of its parent, also after that has ended. */
		source->pid = source->ended ? pid : source->pid;
		source->ended = false;
		return NULL;
	}
	PRB_TRY(use_place(r, file->path, &place));
	source = calloc(1, sizeof(*source));
	slot = source ? prb_vec_push(&r->sources) : NULL;
	if (!slot) {
		free(source);
		return prb_error_nomem();
	}
	*slot = source;
	*source = (struct source){.cold = {.folder = r->places.items[place].fd, .fd = -1},
				  .fd = prb_steal_fd(&file->fd),
				  .device = st.st_dev,
				  .inode = st.st_ino,
				  .pid = pid,
				  .place = place};
	r->places.items[place].stored++;
	source->cold.stem = strndup(name + 1, strlen(name + 1) - strlen(".ring"));
	return source->cold.stem ? NULL : prb_error_nomem();
}

/** A failure is printed once and does not end the other rings; the next look tries again. */
static struct prb_error *tell(struct record *r, struct prb_error *err)
{
	if (!err || err->code == PRB_ERROR_NOMEM)
		return err;
	if (!r->told)
		prb_warn(err->message);
	r->told = r->failed = true;
	prb_error_destroy(err);
	return NULL;
}

static bool has_ended(struct prb_target *target)
{
	prb_auto_str struct prb_str stat = {};
	prb_auto_error struct prb_error *err = prb_target_read_file(target, &stat, "stat");
	struct prb_stat parsed;

	if (err)
		return err->code != PRB_ERROR_NOMEM && err->code != PRB_ERROR_OS;
	return prb_stat_parse(prb_str_text(&stat), &parsed) &&
	       (parsed.state == 'Z' || parsed.state == 'X');
}

/** Where @p strict, the first failure is the result. */
static struct prb_error *add_rings(struct record *r, struct prb_target *target, bool strict)
{
	struct prb_ring_files files = {};
	struct prb_error *err = prb_ring_files_find(target, &files);
	struct prb_ring_file *file;

	/* The rings of a process that is just ending are stored as they are. */
	if (err && !strict && err->code != PRB_ERROR_NOMEM && has_ended(target))
		prb_error_destroy(prb_steal(&err));
	prb_vec_each (file, &files.list) {
		if (err)
			break;
		err = add_source(r, file, target->pid);
		if (!strict)
			err = tell(r, err);
	}
	prb_ring_files_deinit(&files);
	return strict ? err : tell(r, err);
}

static bool is_followed(const struct record *r, pid_t pid)
{
	for (size_t i = 0; i < r->targets.count; i++)
		if (r->targets.items[i]->pid == pid)
			return true;
	return false;
}

static struct prb_error *add_target(struct record *r, struct prb_target *target)
{
	struct prb_target **slot = prb_vec_push(&r->targets);

	if (!slot) {
		prb_target_destroy(target);
		return prb_error_nomem();
	}
	*slot = target;
	return NULL;
}

/** Processes that a followed one has started since. */
static struct prb_error *add_children(struct record *r, pid_t parent)
{
	struct prb_subprocesses children = {};
	struct prb_error *err = prb_subprocesses_find(parent, &children);

	for (size_t i = 0; !err && i < children.list.count; i++) {
		pid_t pid = children.list.items[i].pid;
		struct prb_target *target;
		struct prb_error *failed;

		if (is_followed(r, pid))
			continue;
		failed = prb_target_open_process(pid, &target);
		if (!failed)
			err = add_target(r, target);
		prb_error_destroy(failed); /* it has ended again */
	}
	prb_subprocesses_deinit(&children);
	return err;
}

/** Its rings are read for the last time. */
static void mark_ended(struct record *r, pid_t pid)
{
	for (size_t i = 0; i < r->sources.count; i++)
		if (r->sources.items[i]->pid == pid)
			r->sources.items[i]->ended = true;
}

static void forget_ended(struct record *r)
{
	for (size_t i = 0; i < r->targets.count; i++) {
		struct prb_target *target = r->targets.items[i];

		if (!has_ended(target))
			continue;
		mark_ended(r, target->pid);
		prb_target_destroy(target);
		r->targets.items[i--] = r->targets.items[--r->targets.count];
	}
}

/** Finds what is new. The @p first look fails if a ring of a process that was named cannot be
 * stored. */
static struct prb_error *look(struct record *r, bool first)
{
	size_t named;

	r->failed = false;
	forget_ended(r);
	named = r->targets.count;
	for (size_t i = 0; i < r->targets.count; i++) {
		PRB_TRY(add_rings(r, r->targets.items[i], first && i < named));
		if (!r->settings->subprocesses)
			continue;

		struct prb_error *err = add_children(r, r->targets.items[i]->pid);

		if (err && err->code != PRB_ERROR_NOMEM && has_ended(r->targets.items[i]))
			prb_error_destroy(prb_steal(&err));
		PRB_TRY(tell(r, err));
	}
	r->told = r->failed;
	return NULL;
}

/** Removes what is too old or too much; false if the folder is gone. */
static bool prune_place(const struct record *r, const struct place *place)
{
	const struct record_settings *s = r->settings;
	double keep = s->keep ? s->keep : (double)DEFAULT_DAYS * DAY;
	uint64_t most = (uint64_t)(s->max_size ? s->max_size : DEFAULT_MIB) * MIB;
	prb_auto_close int again = place->fd < 0 ? prb_own_folder_open(place->path, geteuid()) : -1;
	int fd = place->fd < 0 ? again : place->fd;

	if (fd < 0)
		return errno != ENOENT;

	prb_auto_error struct prb_error *err =
		prb_cold_prune(fd, (int64_t)((double)time(NULL) - keep), most, NULL);

	if (err)
		prb_warn(err->message);
	return true;
}

/** The folders of ended processes are not open, and looked at seldom. */
static void prune(struct record *r)
{
	const bool left = r->looks++ % PRUNE_LEFT == 0;
	struct place *place;

	prb_vec_each (place, &r->places)
		if (place->fd >= 0 || (left && !place->gone))
			place->gone = !prune_place(r, place);
}

/** A ring that fails is said once, and tried again: a disk may have room later. */
static struct prb_error *store(struct source *source, bool *busy)
{
	uint64_t before = source->cold.chunks;
	struct prb_error *err = prb_cold_store(&source->cold, source->fd, source->ended);

	if (err && err->code == PRB_ERROR_NOMEM)
		return err;
	if (err && !source->failed)
		prb_warn(err->message);
	source->failed = err != NULL;
	source->again = err && err->code == PRB_ERROR_OS;
	prb_error_destroy(err);
	*busy |= source->cold.chunks != before;
	return NULL;
}

static void sum_up(const struct source *source, struct sums *sums)
{
	sums->rings++;
	sums->chunks += source->cold.chunks;
	sums->bytes += source->cold.bytes;
	sums->missed += source->cold.missed;
}

/** A ring that has ended and is stored takes no descriptor any more, nor does its folder. */
static void drop_source(struct record *r, size_t index)
{
	struct source *source = r->sources.items[index];
	struct place *place = &r->places.items[source->place];

	sum_up(source, &r->done);
	if (!--place->stored)
		prb_close_guard(&place->fd);
	source_destroy(source);
	r->sources.items[index] = r->sources.items[--r->sources.count];
}

static struct prb_error *store_all(struct record *r, bool *busy)
{
	*busy = false;
	for (size_t i = 0; i < r->sources.count; i++) {
		PRB_TRY(store(r->sources.items[i], busy));
		if (r->sources.items[i]->ended && !r->sources.items[i]->again)
			drop_source(r, i--);
	}
	return NULL;
}

static void say_end(const struct record *r)
{
	struct sums sums = r->done;

	for (size_t i = 0; i < r->sources.count; i++)
		sum_up(r->sources.items[i], &sums);
	fprintf(stderr, "probing: stored %llu chunks of %zu rings in %.1f MiB",
		(unsigned long long)sums.chunks, sums.rings, (double)sums.bytes / MIB);
	if (sums.missed)
		fprintf(stderr, "; %llu chunks were dropped before they could be read",
			(unsigned long long)sums.missed);
	fputc('\n', stderr);
}

static struct prb_error *follow(struct record *r)
{
	int rest = LOOK_MS, wait = QUICK_MS;
	bool busy;

	PRB_TRY(look(r, true));
	if (!r->sources.count)
		fputs("probing: no rings yet: they are waited for\n", stderr);
	for (;;) {
		PRB_TRY(store_all(r, &busy));
		if (!r->targets.count || prb_interrupted())
			return NULL;
		wait = busy ? QUICK_MS : PRB_MIN(2 * wait, LOOK_MS);
		poll(NULL, 0, wait);
		rest -= wait;
		if (rest > 0)
			continue;
		rest = LOOK_MS;
		PRB_TRY(look(r, false));
		prune(r);
	}
}

/** 'record -o x.svg' of py-spy is another command here. */
static struct prb_error *check_output(const char *output)
{
	static const char *const pictures[] = {".svg", ".html", ".json", ".txt"};
	size_t length = output ? strlen(output) : 0;

	for (size_t i = 0; i < PRB_ARRAY_SIZE(pictures); i++)
		if (length > strlen(pictures[i]) &&
		    !strcmp(output + length - strlen(pictures[i]), pictures[i]))
			return prb_error_hint(
				prb_error_create(PRB_ERROR_USAGE,
						 "'record' stores rows, and %s is a picture",
						 output),
				"'probing PID perf -o %s' samples the process", output);
	return NULL;
}

static struct prb_error *run(const struct prb_cli *cli, const void *settings)
{
	__attribute__((cleanup(record_deinit))) struct record r = {.settings = settings};
	prb_auto_close int output = -1;

	PRB_TRY(check_output(r.settings->output));
	if (r.settings->output) /* not only when there are rings */
		PRB_TRY(prb_own_folder_named(r.settings->output, &output));
	if (!cli->targets.count && !cli->argument_count)
		return prb_error_hint(prb_error_create(PRB_ERROR_USAGE, "no target given"),
				      "for example 'probing record 4242'");
	for (size_t i = 0; i < cli->targets.count + cli->argument_count; i++) {
		const char *text = i < cli->targets.count ? cli->targets.items[i]
							  : cli->arguments[i - cli->targets.count];
		prb_auto_target struct prb_target *target = NULL;

		PRB_TRY(prb_spec_open(text, NULL, &target));
		if (!target->live || !target->local)
			return prb_error_create(PRB_ERROR_UNSUPPORTED,
						"%s is no process: only a running one is recorded",
						text);
		PRB_TRY(add_target(&r, prb_steal(&target)));
	}
	prb_interrupt_catch_ends();
	PRB_TRY(follow(&r));
	say_end(&r);
	return NULL;
}

const struct prb_command prb_command_record = {
	.rank = 63,
	.name = "record",
	.summary = "Store what rings drop, compressed, until the processes end",
	.description =
		"A ring keeps the newest rows of a table. This command reads the rings of "
		"processes "
		"from "
		"outside and stores their chunks in files NAME.NUMBER.cold, which SQL shows as the "
		"older rows of the same tables, also after the processes have ended. The processes "
		"do nothing for it.\n\n"
		"The files lie beside the rings, or with --output in FOLDER/PID-STARTTIME, which "
		"is "
		"a "
		"target of its own. It ends with the last process, or by Ctrl-C, and goes on where "
		"an "
		"earlier one has ended.",
	.options =
		(const struct prb_option[]){
			{"output", 'o', PRB_OPTION_TEXT, "FOLDER",
			 "Store in FOLDER instead of beside the rings", PRB_COMPLETE_FILE,
			 offsetof(struct record_settings, output)},
			{"subprocesses", 's', PRB_OPTION_FLAG, NULL,
			 "Also processes that they start", PRB_COMPLETE_NOTHING,
			 offsetof(struct record_settings, subprocesses)},
			{"keep", 0, PRB_OPTION_SECONDS, "TIME",
			 "Remove files older than TIME (default: 7 days)", PRB_COMPLETE_NOTHING,
			 offsetof(struct record_settings, keep)},
			{"max-size", 0, PRB_OPTION_NUMBER, "MIB",
			 "Remove the oldest files beyond MIB for each process (default: 1024)",
			 PRB_COMPLETE_NOTHING, offsetof(struct record_settings, max_size)},
			{},
		},
	.settings_size = sizeof(struct record_settings),
	.target_use = PRB_TARGET_ANY,
	.argument = "[PID...]",
	.max_arguments = 64,
	.complete = PRB_COMPLETE_PROCESS,
	.examples =
		(const struct prb_example[]){
			{"probing record 4242 --subprocesses",
			 "A job's processes, until the last has ended"},
			{"probing record 4242 -o /data/rows --keep 2d",
			 "Into another folder, two days"},
			{},
		},
	.run = run,
};
