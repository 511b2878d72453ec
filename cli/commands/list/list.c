/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "agent/threads.h"
#include "cli/commands/list/dead.h"
#include "cli/commands/list/job.h"
#include "base/pool.h"
#include "cli/commands/list/program.h"
#include "cli/commands/list/version.h"
#include "inference/server.h"
#include "control/socket.h"
#include "command/command.h"
#include "command/output.h"
#include "command/term.h"
#include "control/pause_state.h"
#include "remote/serve/known.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/str.h"
#include "base/text.h"
#include "target/proc/instance.h"
#include "target/proc/process.h"
#include "dump/tasks/tasks.h"
#include "target/spec/command_line.h"

enum {
	MAX_ANCESTORS = 64,
	AGENT_WIDTH = 7,
	LEAST_PROGRAM = 8,
	LEAST_COMMAND = 18, /* an interpreter and the name of its script */
};

struct list_settings {
	bool tree, json, dead, job;
};

/** One process in the order and at the depth it is shown. */
struct row {
	const struct prb_python_process *process;
	unsigned depth;
	pid_t parent;		   /**< nearest Python ancestor that is listed, or 0 */
	const struct prb_job *job; /**< that it is a rank of, or a child of a rank; or NULL */
};

struct rows {
	const struct prb_python_processes *all;
	PRB_VEC(struct row) list;
	const struct prb_jobs *jobs;  /**< NULL: all processes are shown */
	enum prb_agent_state *agents; /**< of each of `all` */
	struct prb_str *served;	      /**< the same: where clients reach it */
	struct prb_pause_state *pauses;
	const char **programs; /**< the same: what it is; NULL if that is not known */
	bool *servers;	       /**< the same: it is a process of an inference server */
	struct prb_engines engines;
	struct prb_list_versions versions;
	struct prb_pool *pool; /**< of names of programs */
	bool ranks;	       /**< any process has one */
	size_t served_width;   /**< 0: none is served */
	size_t version_width;
	size_t program_width; /**< 0: none is known */
	size_t columns;	      /**< of the terminal; 0: it is none */
};

static const struct prb_python_process *find_pid(const struct prb_python_processes *all, pid_t pid)
{
	size_t low = 0, high = all->list.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		pid_t here = all->list.items[middle].process.pid;

		if (here == pid)
			return &all->list.items[middle];
		if (here < pid)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

/** The nearest Python ancestor; shells and launchers between are passed over. */
static pid_t python_ancestor(const struct prb_python_processes *all,
			     const struct prb_python_process *p)
{
	pid_t pid = p->process.ppid;

	for (unsigned n = 0; pid > 1 && n < MAX_ANCESTORS; n++) {
		struct prb_process between = {};

		if (find_pid(all, pid))
			return pid;

		prb_auto_error struct prb_error *err = prb_process_describe(pid, &between);
		if (err)
			return 0;
		pid = between.ppid;
		prb_process_deinit(&between);
	}
	return 0;
}

static struct prb_error *add_row(struct rows *rows, const struct row *row)
{
	struct row *added = prb_vec_push(&rows->list);

	if (!added)
		return prb_error_nomem();
	*added = *row;
	return NULL;
}

/** Appends the children of @p parent, each followed by its own. */
static struct prb_error *add_tree(struct rows *rows, const pid_t *parents, pid_t parent,
				  unsigned depth, const struct prb_job *job)
{
	for (size_t i = 0; i < rows->all->list.count; i++) {
		const struct prb_python_process *p = &rows->all->list.items[i];

		if (parents[i] != parent)
			continue;
		PRB_TRY(add_row(rows, &(struct row){p, depth, parent, job}));
		PRB_TRY(add_tree(rows, parents, p->process.pid, depth + 1, job));
	}
	return NULL;
}

/** The ranks of each job by their numbers, each followed by its children. */
static struct prb_error *add_jobs(struct rows *rows, const pid_t *parents)
{
	const struct prb_job *job;
	const struct prb_rank *rank;

	prb_vec_each (job, &rows->jobs->list)
		prb_vec_each (rank, &job->ranks) {
			const struct prb_python_process *p = find_pid(rows->all, rank->pid);

			/* A rank may be missing, or have started since the list was made. */
			if (!p)
				continue;
			PRB_TRY(add_row(rows, &(struct row){p, 0, 0, job}));
			PRB_TRY(add_tree(rows, parents, rank->pid, 1, job));
		}
	return NULL;
}

/* The width of the names of programs, where all others leave some of the terminal. */
static size_t fitting(const struct rows *rows)
{
	size_t others = strlen("    PID    THREADS      ") + AGENT_WIDTH + rows->version_width +
			(rows->served_width ? rows->served_width + 2 : 0) +
			(rows->ranks ? strlen("RANK  ") : 0) + LEAST_COMMAND;
	size_t room =
		rows->columns > others + LEAST_PROGRAM ? rows->columns - others : LEAST_PROGRAM;

	return rows->columns ? PRB_MIN(rows->program_width, room) : rows->program_width;
}

static struct prb_error *arrange(struct rows *rows, bool tree)
{
	size_t count = rows->all->list.count;
	prb_auto_free pid_t *parents = calloc(count + 1, sizeof(*parents));

	if (!parents)
		return prb_error_nomem();
	rows->version_width = strlen("PYTHON");
	for (size_t i = 0; i < count; i++) {
		const struct prb_python_process *p = &rows->all->list.items[i];

		rows->ranks |= p->rank >= 0;
		rows->served_width =
			PRB_MAX(rows->served_width, prb_text_width(prb_str_text(&rows->served[i])));
		rows->version_width =
			PRB_MAX(rows->version_width, p->version ? strlen(p->version) : 0);
		if (rows->programs[i])
			rows->program_width =
				PRB_MAX(rows->program_width,
					PRB_MAX(strlen("PROGRAM"), strlen(rows->programs[i])));
		if (tree || rows->jobs)
			parents[i] = python_ancestor(rows->all, p);
	}
	/* The heading is as wide. */
	if (rows->served_width)
		rows->served_width = PRB_MAX(rows->served_width, strlen("SERVED AT"));
	rows->program_width = fitting(rows);
	return rows->jobs ? add_jobs(rows, parents) : add_tree(rows, parents, 0, 0, NULL);
}

static enum prb_agent_state agent_of(const struct rows *rows, const struct row *row)
{
	return rows->agents[row->process - rows->all->list.items];
}

static const struct prb_str *served_at(const struct rows *rows, const struct row *row)
{
	return &rows->served[row->process - rows->all->list.items];
}

static const char *program_of(const struct rows *rows, const struct row *row)
{
	return rows->programs[row->process - rows->all->list.items];
}

static const struct prb_pause_state *pause_of(const struct rows *rows, const struct row *row)
{
	return &rows->pauses[row->process - rows->all->list.items];
}

/* The command line, cut where the terminal ends; what may follow it is shown whole. */
static void put_command(struct prb_str *s, const struct rows *rows, const struct row *row,
			size_t start)
{
	prb_auto_str struct prb_str branch = {};

	for (unsigned n = 0; n < row->depth; n++)
		prb_str_puts(&branch, n + 1 == row->depth ? "└─ " : "   ");
	s->failed |= branch.failed;
	prb_command_line_cell(s, start, prb_str_text(&branch), &row->process->process,
			      rows->columns);
}

/* The name of the program, padded. */
static void put_program(struct prb_str *s, const char *program, size_t width)
{
	prb_auto_str struct prb_str cut = {};

	prb_text_cut(&cut, program ? program : "-", width);
	prb_text_column(s, prb_str_text(&cut), width);
	prb_str_puts(s, "  ");
}

static void put_row(struct prb_str *s, const struct rows *rows, const struct row *row)
{
	static const char *const agents[] = {[PRB_AGENT_NONE] = "-",
					     [PRB_AGENT_STOPPED] = "stopped",
					     [PRB_AGENT_RUNNING] = "yes"};
	const struct prb_python_process *p = row->process;
	const struct prb_pause_state *pause = pause_of(rows, row);
	size_t start = s->length;

	prb_str_printf(s, "%7d  ", (int)p->process.pid);
	prb_text_column(s, p->version ? p->version : "?", rows->version_width);
	prb_str_printf(s, "  %7u  %-*s  ", p->process.threads, AGENT_WIDTH,
		       pause->paused && !pause->hard ? "paused" : agents[agent_of(rows, row)]);
	if (rows->served_width) {
		const struct prb_str *served = served_at(rows, row);

		prb_text_column(s, served->length ? served->data : "-", rows->served_width);
		prb_str_puts(s, "  ");
	}
	if (rows->program_width)
		put_program(s, program_of(rows, row), rows->program_width);
	if (rows->ranks) {
		if (p->rank >= 0)
			prb_str_printf(s, "%4ld  ", p->rank);
		else
			prb_str_puts(s, "   -  ");
	}
	put_command(s, rows, row, start);
	if (p->refusal) {
		prb_str_puts(s, "   (unreadable: ");
		prb_text_escape(s, p->refusal);
		prb_str_putc(s, ')');
	}
	if (pause->paused) {
		prb_str_puts(s, "   (");
		prb_pause_state_tell(pause, p->process.pid, s);
		prb_str_putc(s, ')');
	}
	prb_str_putc(s, '\n');
}

static struct prb_error *show_text(const struct rows *rows)
{
	prb_auto_str struct prb_str text = {};
	const struct prb_job *job = NULL;
	const struct row *row;

	if (!rows->list.count) {
		fputs(rows->jobs
			      ? "probing: no rank of a job runs here, as far as processes can be "
				"read; 'probing list' shows all Python processes\n"
			      : "probing: there are no Python processes here\n",
		      stderr);
		return NULL;
	}
	prb_str_printf(&text, "    PID  %-*s  THREADS  %-*s  ", (int)rows->version_width, "PYTHON",
		       AGENT_WIDTH, "AGENT");
	if (rows->served_width)
		prb_str_printf(&text, "%-*s  ", (int)rows->served_width, "SERVED AT");
	if (rows->program_width)
		prb_str_printf(&text, "%-*s  ", (int)rows->program_width, "PROGRAM");
	prb_str_puts(&text, rows->ranks ? "RANK  " : "");
	prb_text_last_cell(&text, 0, "COMMAND", rows->columns);
	prb_str_putc(&text, '\n');
	prb_vec_each (row, &rows->list) {
		if (row->job != job)
			prb_list_job_text(row->job, prb_list_launcher(row->job, rows->all), &text);
		job = row->job;
		put_row(&text, rows, row);
	}
	return prb_output_lines(&text, false);
}

/** "3.13t", as files are named, is a free-threaded 3.13. */
static bool split_version(const char *version, struct prb_str *number)
{
	size_t length = version ? strlen(version) : 0;
	bool free_threaded = length && version[length - 1] == 't';

	prb_str_append(number, version, length - free_threaded);
	return free_threaded;
}

static void put_json_row(struct prb_json *json, const struct rows *rows, const struct row *row,
			 bool tree)
{
	static const char *const agents[] = {[PRB_AGENT_NONE] = NULL,
					     [PRB_AGENT_STOPPED] = "stopped",
					     [PRB_AGENT_RUNNING] = "running"};
	const struct prb_python_process *p = row->process;
	prb_auto_str struct prb_str version = {};
	bool free_threaded = split_version(p->version, &version);
	char id[PRB_INSTANCE_SIZE];
	char *const *argument;

	prb_instance_print(p->process.pid, p->process.start_ticks, id);
	prb_json_open(json, NULL, '{');
	prb_json_text(json, "id", id);
	prb_json_integer(json, "pid", p->process.pid);
	prb_json_integer(json, "ppid", p->process.ppid);
	if (tree)
		prb_json_natural(json, "python_parent", row->parent ? row->parent : -1);
	prb_json_text(json, "version", p->version ? prb_str_text(&version) : NULL);
	if (p->version)
		prb_json_bool(json, "free_threaded", free_threaded);
	else
		prb_json_null(json, "free_threaded");
	prb_json_integer(json, "threads", p->process.threads);
	prb_json_text(json, "agent", agents[agent_of(rows, row)]);
	prb_pause_state_json(pause_of(rows, row), json);
	prb_json_text(json, "served_at",
		      served_at(rows, row)->length ? prb_str_text(served_at(rows, row)) : NULL);
	prb_json_text(json, "program", program_of(rows, row));
	prb_json_natural(json, "rank", p->rank);
	prb_json_natural(json, "local_rank", p->local_rank);
	prb_json_text(json, "exe", p->process.exe);
	prb_json_open(json, "argv", '[');
	prb_vec_each (argument, &p->process.argv)
		prb_json_text(json, NULL, *argument);
	prb_json_close(json, ']');
	prb_json_text(json, "unreadable", p->refusal);
	prb_json_close(json, '}');
}

static void put_json_job(struct prb_json *json, const struct rows *rows, const struct prb_job *job)
{
	const struct row *row;

	prb_json_open(json, NULL, '{');
	prb_list_job_json(job, prb_list_launcher(job, rows->all), json);
	prb_json_open(json, "processes", '[');
	prb_vec_each (row, &rows->list)
		if (row->job == job)
			put_json_row(json, rows, row, true);
	prb_json_close(json, ']');
	prb_json_close(json, '}');
}

static struct prb_error *show_json(const struct rows *rows, bool tree)
{
	prb_auto_str struct prb_str text = {};
	struct prb_json json = {&text};
	const struct prb_job *job;
	const struct row *row;

	prb_json_open(&json, NULL, '[');
	if (rows->jobs)
		prb_vec_each (job, &rows->jobs->list)
			put_json_job(&json, rows, job);
	else
		prb_vec_each (row, &rows->list)
			put_json_row(&json, rows, row, tree);
	prb_json_close(&json, ']');
	prb_str_putc(&text, '\n');
	return prb_output(&text);
}

/** How many threads it has, not counting the agent's, by one listing; @p all if there is none. */
static unsigned count_own_threads(struct prb_target *target, unsigned all)
{
	prb_auto_str struct prb_str tids = {};
	unsigned count = 0;

	prb_error_destroy(prb_target_list(target, &tids, "task"));
	for (char *at = tids.data, *end; at && *at; at = end + (*end == '\n')) {
		prb_auto_str struct prb_str name = {};
		long tid = strtol(at, &end, 10);

		if (end == at)
			break;
		prb_auto_error struct prb_error *ended =
			prb_target_read_file(target, &name, "task/%d/comm", (int)tid);
		count += !ended && !prb_is_agent_thread(prb_str_text(&name));
	}
	return count ? count : all;
}

/** True if the package of that module is in the word. */
static bool mentions(const char *word, const char *module)
{
	size_t length = strcspn(module, ".");

	for (; (word = strchr(word, *module)); word++)
		if (!strncmp(word, module, length))
			return true;
	return false;
}

/** True if its arguments, or its parent's nature, say that it may be a process of a server. */
static bool may_be_server(const struct rows *rows, const struct prb_process *process,
			  const struct prb_python_process *above)
{
	struct prb_engine *const *engine;
	char *const *word;
	const char *rest;

	if (above && rows->servers[above - rows->all->list.items])
		return true;
	prb_vec_each (engine, &rows->engines.list) {
		if (process->argv.count &&
		    prb_engine_by_title(*engine, process->argv.items[0], &rest))
			return true;
		prb_vec_each (word, &process->argv)
			if (mentions(*word, (*engine)->module))
				return true;
	}
	return false;
}

static struct prb_error *ask_server(struct rows *rows, size_t i, struct prb_target *target)
{
	prb_auto_str struct prb_str name = {};

	PRB_TRY(prb_error_tolerate(prb_server_process_name(&rows->engines, target, &name), NULL));
	if (!name.length)
		return NULL;
	rows->servers[i] = true;
	return prb_pool_share(rows->pool, prb_str_text(&name), &rows->programs[i]);
}

/** @p target: NULL if the process may not be read. */
static struct prb_error *ask_program(struct rows *rows, size_t i, struct prb_target *target)
{
	const struct prb_process *process = &rows->all->list.items[i].process;
	const struct prb_python_process *above = find_pid(rows->all, process->ppid);
	const struct prb_process *parent = above ? &above->process : NULL;

	if (target && may_be_server(rows, process, above))
		PRB_TRY(ask_server(rows, i, target));
	if (!rows->programs[i])
		rows->programs[i] = prb_list_program(process, parent);
	if (rows->programs[i] || !target || !prb_list_is_fork(process, parent))
		return NULL;
	return prb_list_program_of_stack(target, &rows->programs[i]);
}

/** Asks each process for its version, and looks for its agent. */
static struct prb_error *ask_all(struct prb_python_processes *all, struct prb_agent_seeker *seeker,
				 struct rows *rows)
{
	for (size_t i = 0; i < all->list.count; i++) {
		struct prb_python_process *p = &all->list.items[i];
		prb_auto_target struct prb_target *target = NULL;
		struct prb_error *err =
			p->refusal ? NULL : prb_target_open_process(p->process.pid, &target);

		if (!err && !p->refusal) {
			err = prb_list_version(&rows->versions, target, p);
			rows->agents[i] = prb_agent_seek(seeker, target);
			prb_pause_state_find(target, &rows->pauses[i]);
			if (rows->agents[i] != PRB_AGENT_NONE)
				p->process.threads = count_own_threads(target, p->process.threads);
			if (!err)
				err = ask_program(rows, i, target);
		} else {
			prb_error_destroy(ask_program(rows, i, NULL));
		}
		if (rows->agents[i] != PRB_AGENT_NONE)
			prb_serve_known_find(p->process.pid, &rows->served[i]);
		if (err && err->code == PRB_ERROR_NOMEM)
			return err;
		prb_error_destroy(err); /* then its name must do */
	}
	return NULL;
}

static struct prb_error *run(const struct prb_cli *cli, const void *settings)
{
	const struct list_settings *s = settings;
	__attribute__((cleanup(prb_python_processes_deinit))) struct prb_python_processes all = {};
	__attribute__((cleanup(prb_agent_seeker_deinit))) struct prb_agent_seeker seeker = {};
	prb_auto_free enum prb_agent_state *agents = NULL;
	prb_auto_free struct prb_pause_state *pauses = NULL;
	prb_auto_free const char **programs = NULL;
	prb_auto_free bool *servers = NULL;
	prb_auto_jobs struct prb_jobs jobs = {};
	struct rows rows = {.all = &all, .jobs = s->job ? &jobs : NULL};
	size_t lines;

	(void)cli;
	if (s->dead)
		return prb_list_dead(s->json);
	if (s->job && s->tree)
		return prb_error_create(PRB_ERROR_USAGE,
					"--job shows children below their ranks, so --tree says "
					"nothing more");
	if (!s->json)
		prb_term_size(stdout, &rows.columns, &lines);
	if (s->job)
		PRB_TRY(prb_jobs_find(&jobs));
	PRB_TRY(prb_process_list(&all));
	rows.agents = agents = calloc(all.list.count + 1, sizeof(*agents));
	rows.served = calloc(all.list.count + 1, sizeof(*rows.served));
	rows.pauses = pauses = calloc(all.list.count + 1, sizeof(*pauses));
	rows.programs = programs = calloc(all.list.count + 1, sizeof(*programs));
	rows.servers = servers = calloc(all.list.count + 1, sizeof(*servers));
	if (!agents || !rows.served || !pauses || !programs || !servers) {
		free(rows.served);
		return prb_error_nomem();
	}

	struct prb_error *err = prb_pool_create(&rows.pool);
	if (!err)
		err = prb_engines_load(getenv("PROBING_ENGINES"), &rows.engines);
	if (!err)
		err = ask_all(&all, &seeker, &rows);
	if (!err)
		err = arrange(&rows, s->tree);
	if (!err)
		err = s->json ? show_json(&rows, s->tree) : show_text(&rows);
	for (size_t i = 0; i < all.list.count; i++)
		prb_str_deinit(&rows.served[i]);
	free(rows.served);
	prb_list_versions_deinit(&rows.versions);
	prb_engines_deinit(&rows.engines);
	prb_pool_destroy(rows.pool);
	prb_vec_free(&rows.list);
	return err;
}

const struct prb_command prb_command_list = {
	.rank = 40,
	.for_clients = true,
	.name = "list",
	.aliases = {"ls", "l"},
	.summary = "List the Python processes of this machine",
	.description =
		"Shows every Python process that is visible: pid, Python version, number "
		"of threads, state of the agent (loaded, stopped, or pausing the "
		"process), the address where it is served, the program if it is a "
		"well-known one (Jupyter kernel, gunicorn worker), rank in a distributed job "
		"(RANK, SLURM_PROCID, OMPI_COMM_WORLD_RANK and the like) and command "
		"line. With --job, the ranks of each job (by the environment that its launcher "
		"gives them) are listed together, with their children. For a process that cannot "
		"be read, the reason is shown.",
	.options =
		(const struct prb_option[]){
			{"tree", 't', PRB_OPTION_FLAG, NULL, "Show children below their parents",
			 PRB_COMPLETE_NOTHING, offsetof(struct list_settings, tree),
			 .for_clients = true},
			{"job", 'j', PRB_OPTION_FLAG, NULL,
			 "List the ranks of distributed jobs, job by job", PRB_COMPLETE_NOTHING,
			 offsetof(struct list_settings, job), .for_clients = true},
			{"dead", 0, PRB_OPTION_FLAG, NULL,
			 "List processes that have ended and left recorded rows",
			 PRB_COMPLETE_NOTHING, offsetof(struct list_settings, dead)},
			{"json", 0, PRB_OPTION_FLAG, NULL, "Print JSON", PRB_COMPLETE_NOTHING,
			 offsetof(struct list_settings, json), .for_clients = true},
			{}},
	.settings_size = sizeof(struct list_settings),
	.runs_elsewhere = true,
	.examples =
		(const struct prb_example[]){
			{"probing list --tree", "Show parents and children"},
			{"probing list --job", "Show which ranks of a job run here"},
			{"probing list --dead", "Show what ended processes have recorded"},
			{}},
	.run = run,
};
