/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/commands/list/program.h"

#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "dump/dump.h"

/* A known program, by the name of a script or of a module after -m. */
struct program {
	const char *names[4];
	const char *word;	 /* must be among the arguments, too; or NULL */
	const char *what;	 /* what it is */
	const char *forked_what; /* what a child of such a process is, that was forked; or NULL */
};

static const struct program programs[] = {
	{{"ipykernel_launcher", "ipykernel_launcher.py", "ipykernel"},
	 NULL,
	 "Jupyter kernel",
	 NULL},
	{{"ipython", "ipython3", "IPython"}, NULL, "IPython", NULL},
	{{"jupyter-lab", "jupyter-notebook", "jupyter-server", "jupyterlab"},
	 NULL,
	 "Jupyter server",
	 NULL},
	{{"gunicorn", "gunicorn.app.wsgiapp"}, NULL, "gunicorn master", "gunicorn worker"},
	{{"uvicorn"}, NULL, "uvicorn", "uvicorn worker"},
	{{"celery"}, "worker", "Celery worker", "Celery pool process"},
	{{"celery"}, "beat", "Celery beat", NULL},
	{{"celery"}, NULL, "Celery", NULL},
	{{"pytest", "py.test"}, NULL, "pytest", NULL},
	{{"torchrun", "torch.distributed.run", "torch.distributed.launch"}, NULL, "torchrun", NULL},
};

/* Titles that programs give themselves, which replace the command line. */
static const struct {
	const char *begin, *part, *what;
} titles[] = {
	{"gunicorn: master", NULL, "gunicorn master"},
	{"gunicorn: worker", NULL, "gunicorn worker"},
	{"[celeryd:", ":MainProcess]", "Celery worker"},
	{"[celeryd:", "PoolWorker", "Celery pool process"},
	{"[celery beat", NULL, "Celery beat"},
	{"[pytest-xdist", NULL, "pytest-xdist worker"},
};

/* Functions at the outer end of the main thread's stack. */
static const struct {
	const char *func, *file, *what;
} loops[] = {
	{"_worker_loop", "/torch/utils/data/_utils/worker.py", "torch DataLoader worker"},
	{"worker", "/multiprocessing/pool.py", "multiprocessing pool worker"},
	{"_process_worker", "/concurrent/futures/process.py", "process pool worker"},
};

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool is_python(const char *word)
{
	return !strncmp(last_part(word), "python", strlen("python"));
}

/* The script's name or the module's, and its place in argv; NULL if there is none. */
static const char *runs(const struct prb_process *p, size_t *at)
{
	char *const *argv = p->argv.items;
	size_t count = p->argv.count, i = count && is_python(argv[0]);

	for (; i < count; i++) {
		const char *word = argv[i];

		*at = i;
		if (word[0] != '-')
			return last_part(word);
		if (!strcmp(word, "-m") && i + 1 < count)
			return *at = i + 1, argv[i + 1];
		if (!strncmp(word, "-m", 2) && word[2])
			return word + 2;
		if (!strcmp(word, "-c") || !strcmp(word, "-"))
			return NULL;
		i += !strcmp(word, "-X") || !strcmp(word, "-W");
	}
	return NULL;
}

static bool has_word(const struct prb_process *p, size_t from, const char *word)
{
	for (size_t i = from; i < p->argv.count; i++)
		if (!strcmp(p->argv.items[i], word))
			return true;
	return false;
}

static const struct program *find(const struct prb_process *p)
{
	size_t at = 0;
	const char *name = runs(p, &at);

	for (size_t i = 0; name && i < PRB_ARRAY_SIZE(programs); i++) {
		const struct program *program = &programs[i];

		for (size_t n = 0; n < PRB_ARRAY_SIZE(program->names) && program->names[n]; n++)
			if (!strcmp(name, program->names[n]) &&
			    (!program->word || has_word(p, at + 1, program->word)))
				return program;
	}
	return NULL;
}

static bool is_spawned(const struct prb_process *p)
{
	for (size_t i = 0; i < p->argv.count; i++)
		if (strstr(p->argv.items[i], "from multiprocessing.spawn import spawn_main"))
			return true;
	return false;
}

static bool same_command(const struct prb_process *a, const struct prb_process *b)
{
	if (a->argv.count != b->argv.count || !a->argv.count)
		return false;
	for (size_t i = 0; i < a->argv.count; i++)
		if (strcmp(a->argv.items[i], b->argv.items[i]) != 0)
			return false;
	return true;
}

bool prb_list_is_fork(const struct prb_process *process, const struct prb_process *parent)
{
	return parent && (same_command(process, parent) || is_spawned(process));
}

static const char *by_title(const struct prb_process *p)
{
	const char *title = p->argv.count ? p->argv.items[0] : "";

	for (size_t i = 0; i < PRB_ARRAY_SIZE(titles); i++)
		if (!strncmp(title, titles[i].begin, strlen(titles[i].begin)) &&
		    (!titles[i].part || strstr(title, titles[i].part)))
			return titles[i].what;
	return NULL;
}

/* Helpers that multiprocessing starts with -c, and workers of pytest-xdist. */
static const char *by_code(const struct prb_process *p, const struct prb_process *parent)
{
	static const char execnet[] = "import sys;exec(eval(sys.stdin.readline()))";
	const struct program *above = parent ? find(parent) : NULL;

	for (size_t i = 0; i < p->argv.count; i++) {
		const char *word = p->argv.items[i];

		if (strstr(word, PRB_RESOURCE_TRACKER))
			return "multiprocessing resource tracker";
		if (strstr(word, "from multiprocessing.forkserver import main"))
			return "multiprocessing fork server";
		if (!strcmp(word, execnet) && above && !strcmp(above->what, "pytest"))
			return "pytest-xdist worker";
	}
	return NULL;
}

const char *prb_list_program(const struct prb_process *process, const struct prb_process *parent)
{
	const struct program *program = find(process);
	const struct program *above = parent ? find(parent) : NULL;
	const char *title = by_title(process);

	if (title)
		return title;
	if (above && above->forked_what && prb_list_is_fork(process, parent))
		return above->forked_what;
	if (prb_list_is_fork(process, parent))
		return NULL; /* a child of it, which does something else: judged by its stack */
	return program ? program->what : by_code(process, parent);
}

struct prb_error *prb_list_program_of_stack(struct prb_target *target, const char **ret)
{
	const struct prb_dump_options options = {
		.main_only = true, .no_waits = true, .no_modules = true, .no_command = true};
	prb_auto_dump struct prb_dump *dump = NULL;
	prb_auto_error struct prb_error *err = prb_dump_create(target, &options, &dump);
	const struct prb_dump_thread *thread;
	const struct prb_dump_frame *frame;

	*ret = NULL;
	if (err)
		return err->code == PRB_ERROR_NOMEM ? prb_steal(&err) : NULL;
	prb_vec_each (thread, &dump->threads) {
		prb_vec_each (frame, &thread->frames) {
			size_t length = frame->file ? strlen(frame->file) : 0;

			for (size_t i = 0; frame->func && i < PRB_ARRAY_SIZE(loops); i++) {
				size_t end = strlen(loops[i].file);

				if (!strcmp(frame->func, loops[i].func) && length > end &&
				    !strcmp(frame->file + length - end, loops[i].file))
					*ret = loops[i].what;
			}
		}
	}
	return NULL;
}
