/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `probing crashes`: the crash records of this user's processes. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/local_time.h"
#include "base/own_file.h"
#include "base/text.h"
#include "base/vec.h"
#include "command/command.h"
#include "command/exit.h"
#include "command/output.h"
#include "dump/dump.h"
#include "dump/read/process.h"
#include "target/proc/signal_text.h"
#include "target/core/core.h"

enum { MAX_RECORDS = 4096, MAX_FOLDERS = 8 };

struct crashes_settings {
	bool json;
};

/** One record, as shown. */
struct record {
	char *path;
	long long size;
	double time;
	pid_t pid, tid;
	bool decoded;
	struct prb_str what, where, program;
};

struct records {
	PRB_VEC(struct record) list;
	bool left_out; /* there are more */
};

static void records_deinit(struct records *records)
{
	struct record *r;

	prb_vec_each (r, &records->list) {
		free(r->path);
		prb_str_deinit(&r->what);
		prb_str_deinit(&r->where);
		prb_str_deinit(&r->program);
	}
	prb_vec_free(&records->list);
}

/** "crash-SECONDS-PID.core", as agent/crash/file.c names them. */
static bool parse_name(const char *name, struct record *ret)
{
	unsigned long long seconds;
	int pid, end = 0;

	if (sscanf(name, "crash-%20llu-%10d.core%n", &seconds, &pid, &end) != 2 || !end ||
	    name[end] || pid <= 0)
		return false;
	ret->time = (double)seconds;
	ret->pid = pid;
	return true;
}

static struct prb_error *add_record(struct records *records, const char *folder, int fd,
				    const char *name)
{
	struct record found = {}, *added;
	struct stat st;

	if (!parse_name(name, &found))
		return NULL;
	if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
		return NULL;
	if (records->list.count == MAX_RECORDS) {
		records->left_out = true;
		return NULL;
	}
	found.size = st.st_size;
	found.path = prb_format("%s/%s", folder, name);
	added = found.path ? prb_vec_push(&records->list) : NULL;
	if (!added) {
		free(found.path);
		return prb_error_nomem();
	}
	*added = found;
	return NULL;
}

/** A folder that the user named may have any owner; other folders must be ours, or are skipped. */
static struct prb_error *add_folder(struct records *records, const char *folder, bool named)
{
	int fd = named ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
		       : prb_own_folder_open(folder, geteuid());
	struct dirent *entry;
	DIR *stream;

	if (fd < 0)
		return named ? prb_error_os(errno, "cannot read %s", folder) : NULL;
	stream = fdopendir(fd);
	if (!stream) {
		close(fd);
		return prb_error_nomem();
	}
	struct prb_error *err = NULL;
	while (!err && (entry = readdir(stream)))
		err = add_record(records, folder, fd, entry->d_name);
	closedir(stream);
	return err;
}

/** The folders that agent/crash/file.c chooses from. */
static struct prb_error *find_records(struct records *records)
{
	const struct {
		const char *variable, *below;
	} places[] = {{"PROBING_DATA_DIR", "/crashes"},
		      {"XDG_STATE_HOME", "/probing/crashes"},
		      {"HOME", "/.local/state/probing/crashes"}};
	prb_auto_free char *tmp = NULL, *last = NULL;
	prb_auto_close int fd = prb_tmp_folder_open(geteuid(), false, &tmp);

	for (size_t i = 0; i < PRB_ARRAY_SIZE(places); i++) {
		const char *base = getenv(places[i].variable);
		prb_auto_free char *folder =
			base && *base == '/' ? prb_format("%s%s", base, places[i].below) : NULL;

		if (folder)
			PRB_TRY(add_folder(records, folder, false));
	}
	if (fd < 0)
		return NULL;
	last = prb_format("%s/crashes", tmp);
	return last ? add_folder(records, last, false) : prb_error_nomem();
}

static int compare_records(const void *a, const void *b)
{
	const struct record *x = a, *y = b;

	if (x->time != y->time)
		return x->time < y->time ? 1 : -1;
	return strcmp(x->path, y->path);
}

/** Where the thread that crashed was: its innermost Python frame. */
static void put_where(const struct prb_dump *dump, struct record *r)
{
	const struct prb_dump_thread *thread;
	const struct prb_dump_frame *frame;

	prb_vec_each (thread, &dump->threads) {
		if (thread->tid != r->tid)
			continue;
		prb_vec_each (frame, &thread->frames) {
			const char *slash = frame->file ? strrchr(frame->file, '/') : NULL;

			/* Our own hook of exceptions is on the stack, too. */
			if (frame->kind != PRB_FRAME_PYTHON ||
			    (frame->file && !strcmp(frame->file, "<probing agent>")))
				continue;
			prb_text_escape(&r->where, frame->func ? frame->func : "?");
			prb_str_puts(&r->where, " ");
			prb_text_escape(&r->where, slash	 ? slash + 1
						   : frame->file ? frame->file
								 : "?");
			if (frame->line > 0)
				prb_str_printf(&r->where, ":%d", frame->line);
			return;
		}
	}
}

static void put_what(const struct prb_dump_death *death, struct record *r)
{
	if (*death->exception)
		prb_text_escape(&r->what, death->exception);
	else if (death->signal)
		prb_put_signal(&r->what, death->signal);
	if (death->has_address)
		prb_str_printf(&r->what, " at %#llx", (unsigned long long)death->address);
}

/** Parses the last place of a traceback: "  File "PATH", line N, in FUNCTION". */
static void put_raised(const struct prb_dump *dump, struct record *r)
{
	static const char begins[] = "\n  File \"";
	const char *at = dump->exception, *last = NULL, *quote, *in;

	while (at && (at = strstr(at, begins)))
		last = at += strlen(begins);
	quote = last ? strstr(last, "\", line ") : NULL;
	in = quote ? strstr(quote, ", in ") : NULL;
	if (!in || memchr(last, '\n', (size_t)(in - last)))
		return;

	const char *slash = memrchr(last, '/', (size_t)(quote - last));

	prb_str_truncate(&r->where, 0);
	prb_text_escape_bytes(&r->where, in + 5, strcspn(in + 5, "\n"));
	prb_str_putc(&r->where, ' ');
	last = slash ? slash + 1 : last;
	prb_text_escape_bytes(&r->where, last, (size_t)(quote - last));
	prb_str_printf(&r->where, ":%.*s", (int)(in - quote - 8), quote + 8);
}

static struct prb_error *decode(struct record *r)
{
	struct prb_dump_options options = {};
	prb_auto_target struct prb_target *t = NULL;
	prb_auto_dump struct prb_dump *dump = NULL;
	const struct prb_core_info *info;

	PRB_TRY(prb_target_open_core(r->path, NULL, &t));
	info = prb_core_info(t);
	r->tid = info->signal_tid;
	r->time = t->time;

	const struct prb_dump_death death = prb_dump_death(t);

	put_what(&death, r);
	options.tid = r->tid;
	PRB_TRY(prb_dump_create(t, &options, &dump));
	for (size_t i = 0; i < dump->argv.count; i++) {
		prb_str_puts(&r->program, i ? " " : "");
		prb_text_argument_start(&r->program, dump->argv.items[i]);
	}
	put_where(dump, r);
	put_raised(dump, r);
	return NULL;
}

/** An unreadable record is listed with the reason. */
static void decode_all(struct records *records)
{
	struct record *r;

	prb_vec_each (r, &records->list) {
		prb_auto_error struct prb_error *err = decode(r);

		r->decoded = !err;
		if (err && !r->what.length)
			prb_str_printf(&r->what, "cannot be read: %s", err->message);
		else if (err)
			prb_str_printf(&r->where, "(%s)", err->message);
	}
}

static void put_text(struct prb_str *s, const struct records *records)
{
	struct record *r;

	prb_vec_each (r, &records->list) {
		prb_str_printf(s, "%s  %d  %s", prb_local_time((time_t)r->time, PRB_LOCAL_DAY).text,
			       (int)r->pid, prb_str_text(&r->what));
		if (r->where.length)
			prb_str_printf(s, "  in %s", prb_str_text(&r->where));
		prb_str_puts(s, "\n    ");
		if (r->program.length)
			prb_str_printf(s, "%s\n    ", prb_str_text(&r->program));
		prb_text_escape(s, r->path);
		prb_str_putc(s, '\n');
	}
	if (!records->list.count)
		prb_str_puts(s, "no crash records\n");
}

static void put_json(struct prb_str *s, const struct records *records)
{
	struct prb_json json = {s};
	struct record *r;

	prb_json_open(&json, NULL, '[');
	prb_vec_each (r, &records->list) {
		prb_json_open(&json, NULL, '{');
		prb_json_real(&json, "timestamp", r->time, 6);
		prb_json_integer(&json, "pid", r->pid);
		prb_json_natural(&json, "tid", r->tid ? r->tid : -1);
		prb_json_text(&json, "reason", prb_str_text(&r->what));
		prb_json_text(&json, "where", r->where.length ? prb_str_text(&r->where) : NULL);
		prb_json_text(&json, "command",
			      r->program.length ? prb_str_text(&r->program) : NULL);
		prb_json_bool(&json, "readable", r->decoded);
		prb_json_integer(&json, "bytes", r->size);
		prb_json_text(&json, "path", r->path);
		prb_json_close(&json, '}');
	}
	prb_json_close(&json, ']');
	prb_str_putc(s, '\n');
}

static struct prb_error *show(const struct prb_cli *cli, const struct crashes_settings *s,
			      struct records *records)
{
	prb_auto_str struct prb_str text = {};

	for (size_t i = 0; i < cli->argument_count; i++)
		PRB_TRY(add_folder(records, cli->arguments[i], true));
	if (!cli->argument_count)
		PRB_TRY(find_records(records));
	if (records->list.count)
		qsort(records->list.items, records->list.count, sizeof(*records->list.items),
		      compare_records);
	decode_all(records);
	if (records->left_out)
		prb_warn("there are more records than can be listed");
	if (s->json)
		put_json(&text, records);
	else
		put_text(&text, records);
	return prb_output_lines(&text, s->json);
}

static struct prb_error *run(const struct prb_cli *cli, const void *settings)
{
	struct records records = {};
	struct prb_error *err = show(cli, settings, &records);

	records_deinit(&records);
	return err;
}

const struct prb_command prb_command_crashes = {
	.rank = 62,
	.name = "crashes",
	.summary = "List the crash records of processes",
	.description =
		"A process for which 'probing inject --crash' was run, or that was started with "
		"PROBING_CRASH=1, writes a record when it dies of a fault or an exception is not "
		"caught. This lists the records of your processes, or those in FOLDER, newest "
		"first: when, which process, of what, in which function it was, its command line "
		"and the file. Every command that reads a core file reads such a file: 'probing "
		"FILE debug --dump --native', 'print', 'query'.",
	.options =
		(const struct prb_option[]){
			{"json", 0, PRB_OPTION_FLAG, NULL, "Print JSON", PRB_COMPLETE_NOTHING,
			 offsetof(struct crashes_settings, json)},
			{},
		},
	.settings_size = sizeof(struct crashes_settings),
	.target_use = PRB_TARGET_NONE,
	.argument = "[FOLDER...]",
	.max_arguments = MAX_FOLDERS,
	.complete = PRB_COMPLETE_FILE,
	.examples =
		(const struct prb_example[]){
			{"probing crashes", "What crashed, newest first"},
			{"probing crashes --json", "The same for programs"},
			{},
		},
	.run = run,
};
