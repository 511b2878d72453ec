/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * How exact profiles are on this machine: a program that measures its own functions is recorded
 * with each Python that is found in PATH, and both are compared.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/commands/perf/show/performance.h"
#include "command/interrupt.h"
#include "command/output.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/text.h"
#include "profile/sampler/sampler.h"
#include "command/start.h"

__asm__(".pushsection .rodata\n"
	".global prb_selfcheck_program\n"
	".hidden prb_selfcheck_program\n"
	"prb_selfcheck_program:\n"
	".incbin \"cli/commands/perf/selfcheck.py\"\n"
	".byte 0\n"
	".popsection\n");
extern const char prb_selfcheck_program[];

extern char **environ;

enum { MOST_PYTHONS = 32, MOST_FUNCTIONS = 32, RATE = 500 };

/* More than what chance explains, and than what measuring costs. */
static const double allowed = 0.01, deviations = 4;
static const double usual_seconds = 6;

/* What a function says that it used. */
struct function {
	char mode[16], name[32];
	double seconds;
};

/* How far a mode is off. */
struct error_of_mode {
	bool known; /* the program said what is right */
	bool wrong;
	double most;   /* the largest error of a share, 0 to 1 */
	double chance; /* with a probability of 95 % it is below that */
};

struct child {
	pid_t pid;
	int in, out; /* its stdin and stdout */
	struct prb_str said;
};

struct outcome {
	const char *python; /* path */
	double seconds;	    /* how long it is to be recorded */
	char *version;
	double samples;
	struct error_of_mode modes[PRB_WEIGHTS];
	double sum; /* error of the whole time on a processor, as a part of it */
};

static void child_deinit(struct child *child)
{
	prb_close_guard(&child->in);
	prb_close_guard(&child->out);
	if (child->pid > 0) {
		kill(child->pid, SIGKILL);
		while (waitpid(child->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	prb_str_deinit(&child->said);
}

static struct prb_error *start(const char *python, struct child *child)
{
	char *arguments[] = {(char *)python, "-c", (char *)prb_selfcheck_program, NULL};
	posix_spawn_file_actions_t actions;
	int in[2], out[2], failed;

	if (pipe2(in, O_CLOEXEC))
		return prb_error_os(errno, "cannot make a pipe");
	child->in = in[1];
	if (pipe2(out, O_CLOEXEC)) {
		close(in[0]);
		return prb_error_os(errno, "cannot make a pipe");
	}
	child->out = out[0];
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
	posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	failed = prb_start_child(arguments, false, &actions, &child->pid);
	posix_spawn_file_actions_destroy(&actions);
	close(in[0]);
	close(out[1]);
	if (failed)
		child->pid = 0;
	return failed ? prb_error_os(failed, "cannot start a process") : NULL;
}

/* Reads on until it has said @p word; false if it has ended. */
static bool hear(struct child *child, const char *word, int timeout)
{
	char part[512];

	while (!strstr(prb_str_text(&child->said), word)) {
		struct pollfd wait = {.fd = child->out, .events = POLLIN};
		int ready = poll(&wait, 1, timeout);
		ssize_t n = ready > 0 ? read(child->out, part, sizeof(part)) : 0;

		if (n <= 0 && !(ready < 0 && errno == EINTR && !prb_interrupted()))
			return false;
		if (n > 0)
			prb_str_append(&child->said, part, (size_t)n);
	}
	return true;
}

static bool has_ended(void *context)
{
	return prb_interrupted() || hear(context, "end\n", 0);
}

static size_t read_truth(const char *said, struct function *functions)
{
	size_t count = 0;

	for (const char *line = said; *line && count < MOST_FUNCTIONS;
	     line += strcspn(line, "\n"), line += *line == '\n') {
		struct function *f = &functions[count];

		count += sscanf(line, "%15s %31s %lf", f->mode, f->name, &f->seconds) == 3;
	}
	return count;
}

static int64_t total_of(const struct prb_recording *r, const struct prb_report *report,
			const char *name)
{
	const struct prb_report_row *row;

	prb_vec_each (row, &report->rows)
		if (!strcmp(r->tree->functions.items[row->function].name, name))
			return row->total;
	return 0;
}

static void compare_share(double found, double share, double samples, struct error_of_mode *ret)
{
	double off = fabs(found - share);
	double error = sqrt(share * (1 - share) / fmax(samples, 1));

	ret->most = fmax(ret->most, off);
	ret->chance = fmax(ret->chance, 2 * error);
	ret->wrong |= off > deviations * error + allowed;
}

/* Shares of the functions that measured themselves for this mode, among each other. */
static struct prb_error *compare(const struct prb_recording *r, const struct function *functions,
				 size_t count, enum prb_weight weight, struct outcome *outcome)
{
	const struct prb_profile_choice choice = {.weight = weight};
	struct error_of_mode *mode = &outcome->modes[weight];
	int64_t found[MOST_FUNCTIONS] = {};
	double truth = 0, sum = 0;
	struct prb_report report;

	PRB_TRY(prb_report_make(r, &choice, &report));
	for (size_t i = 0; i < count; i++) {
		if (strcmp(functions[i].mode, prb_weight_words[weight].mode))
			continue;
		found[i] = total_of(r, &report, functions[i].name);
		truth += functions[i].seconds;
		sum += (double)found[i];
	}
	for (size_t i = 0; i < count && truth > 0 && sum > 0; i++)
		if (!strcmp(functions[i].mode, prb_weight_words[weight].mode))
			compare_share((double)found[i] / sum, functions[i].seconds / truth,
				      report.samples * sum / (double)report.weight, mode);
	mode->known = truth > 0;
	mode->wrong |= truth > 0 && !(sum > 0);
	if (weight == PRB_WEIGHT_CPU) {
		outcome->samples = report.samples;
		outcome->sum = truth > 0 ? sum / 1e9 / truth - 1 : 0;
	}
	prb_report_deinit(&report);
	return NULL;
}

static struct prb_error *record(struct child *child, double seconds, struct prb_recording **ret)
{
	prb_auto_target struct prb_target *target = NULL;
	const struct prb_profile_options options = {
		.seconds = seconds + 60, .rate = RATE, .cancelled = has_ended, .context = child};
	prb_auto_str struct prb_str order = {};

	PRB_TRY(prb_target_open_process(child->pid, &target));
	prb_str_printf(&order, "%.3f\n", seconds);
	if (write(child->in, order.data, order.length) != (ssize_t)order.length)
		return prb_error_os(errno, "cannot write to the program");
	return prb_profile_record(target, &options, ret);
}

static struct prb_error *check_one(struct outcome *outcome)
{
	__attribute__((cleanup(child_deinit))) struct child child = {.in = -1, .out = -1};
	prb_auto_recording struct prb_recording *recording = NULL;
	struct function functions[MOST_FUNCTIONS] = {};
	size_t count;

	PRB_TRY(start(outcome->python, &child));
	if (!hear(&child, "ready\n", 30000))
		return prb_error_create(PRB_ERROR_FAILED, "it does not run the program");
	PRB_TRY(record(&child, outcome->seconds, &recording));
	/* What the program says in the end is of all its time. */
	if (prb_interrupted())
		return prb_error_create(PRB_ERROR_CANCELLED, "interrupted");
	if (!hear(&child, "end\n", 60000))
		return prb_error_create(PRB_ERROR_FAILED, "it does not run the program");
	count = read_truth(prb_str_text(&child.said), functions);
	PRB_TRY(prb_str_copy(recording->python, &outcome->version));
	for (unsigned i = 0; i < PRB_WEIGHTS; i++)
		PRB_TRY(compare(recording, functions, count, (enum prb_weight)i, outcome));
	return NULL;
}

static bool is_python(const char *name)
{
	int minor = 0, end = 0;

	return !strcmp(name, "python3") || (sscanf(name, "python3.%d%n", &minor, &end) == 1 &&
					    minor >= 4 && (!name[end] || !strcmp(name + end, "t")));
}

struct pythons {
	char *paths[MOST_PYTHONS];
	size_t count;
};

static void pythons_deinit(struct pythons *p)
{
	for (size_t i = 0; i < p->count; i++)
		free(p->paths[i]);
}

static void add_python(struct pythons *p, const char *folder, const char *name)
{
	prb_auto_free char *path = prb_format("%s/%s", folder, name);
	prb_auto_free char *real = path ? realpath(path, NULL) : NULL;

	if (!real || access(real, X_OK) || p->count == MOST_PYTHONS)
		return;
	for (size_t i = 0; i < p->count; i++)
		if (!strcmp(p->paths[i], real))
			return;
	p->paths[p->count++] = prb_steal(&real);
}

/* In the order of PATH; a program that has several names is one. */
static void find_pythons(struct pythons *p)
{
	const char *folders = getenv("PATH");
	prb_auto_free char *path = folders ? strdup(folders) : NULL;
	char *rest = path, *folder;

	while (rest && (folder = strsep(&rest, ":"))) {
		struct dirent **names = NULL;
		int count = folder[0] == '/' ? scandir(folder, &names, NULL, alphasort) : 0;

		for (int i = 0; i < count; i++) {
			if (is_python(names[i]->d_name))
				add_python(p, folder, names[i]->d_name);
			free(names[i]);
		}
		free(names);
	}
}

static void put_modes(struct prb_str *s, const struct outcome *o)
{
	for (unsigned i = 0; i < PRB_WEIGHTS; i++) {
		const struct error_of_mode *mode = &o->modes[i];

		if (mode->known)
			prb_str_printf(s, "%5.2f (%5.2f)  ", 100 * mode->most, 100 * mode->chance);
		else
			prb_str_puts(s, "           –   ");
	}
}

static bool is_wrong(const struct outcome *o)
{
	bool wrong = false;

	for (unsigned i = 0; i < PRB_WEIGHTS; i++)
		wrong |= o->modes[i].wrong;
	return wrong || !o->modes[PRB_WEIGHT_CPU].known;
}

static void put_wrong(struct prb_str *s, const struct outcome *o)
{
	if (!is_wrong(o))
		return;
	prb_str_puts(s, "   WRONG:");
	for (unsigned i = 0; i < PRB_WEIGHTS; i++)
		if (o->modes[i].wrong)
			prb_str_printf(s, " %s", prb_weight_words[i].mode);
}

static void put_text(struct prb_str *s, const struct outcome *o, const struct prb_error *err)
{
	if (err) {
		prb_str_puts(s, "not checked: ");
		prb_text_escape(s, err->message);
		prb_str_puts(s, "   ");
	} else {
		prb_text_column(s, o->version ? o->version : "?", 9);
		prb_str_printf(s, "%7.0f  ", o->samples);
		put_modes(s, o);
		prb_str_printf(s, "%+6.2f %%  ", 100 * o->sum);
	}
	prb_text_escape(s, o->python);
	if (!err)
		put_wrong(s, o);
	prb_str_putc(s, '\n');
}

static void put_json(struct prb_json *json, const struct outcome *o, const struct prb_error *err)
{
	prb_json_open(json, NULL, '{');
	prb_json_text(json, "path", o->python);
	prb_json_text(json, "python", o->version);
	prb_json_text(json, "error", err ? err->message : NULL);
	prb_json_real(json, "independent_samples", o->samples, 1);
	for (unsigned i = 0; i < PRB_WEIGHTS; i++) {
		const struct error_of_mode *mode = &o->modes[i];

		if (!mode->known) {
			prb_json_null(json, prb_weight_words[i].mode);
			continue;
		}
		prb_json_open(json, prb_weight_words[i].mode, '{');
		prb_json_real(json, "off", mode->most, 6);
		prb_json_real(json, "chance", mode->chance, 6);
		prb_json_bool(json, "wrong", mode->wrong);
		prb_json_close(json, '}');
	}
	prb_json_signed(json, "sum_off", o->sum, 6);
	prb_json_close(json, '}');
}

/* *ret_checked and *ret_wrong count what was compared. */
static struct prb_error *check_all(const struct pythons *pythons, double seconds,
				   struct prb_json *json, size_t *ret_checked, size_t *ret_wrong)
{
	for (size_t i = 0; i < pythons->count; i++) {
		struct outcome outcome = {.python = pythons->paths[i], .seconds = seconds};
		prb_auto_str struct prb_str line = {};
		struct prb_error *err = check_one(&outcome);

		if (prb_interrupted()) {
			prb_error_destroy(err);
			free(outcome.version);
			return NULL;
		}
		*ret_checked += !err;
		*ret_wrong += !err && is_wrong(&outcome);
		if (json)
			put_json(json, &outcome, err);
		else
			put_text(&line, &outcome, err);
		free(outcome.version);
		prb_error_destroy(err);
		PRB_TRY(prb_output(&line));
		PRB_TRY(prb_output_flush());
	}
	return NULL;
}

struct prb_error *prb_performance_selfcheck(double seconds, bool as_json)
{
	__attribute__((cleanup(pythons_deinit))) struct pythons pythons = {};
	static const char head[] =
		"           indep.  points off, at most (chance)\n"
		"Python    samples       cpu           wall         runqueue         gil         "
		"blocked      sum\n";
	prb_auto_str struct prb_str text = {};
	struct prb_json json = {&text};
	size_t checked = 0, wrong = 0;
	struct prb_error *err;

	find_pythons(&pythons);
	if (as_json)
		prb_json_open(&json, NULL, '[');
	else
		prb_str_puts(&text, head);
	if (!as_json)
		PRB_TRY(prb_output(&text));
	prb_interrupt_catch_ends();
	err = check_all(&pythons, seconds > 0 ? seconds : usual_seconds, as_json ? &json : NULL,
			&checked, &wrong);
	prb_interrupt_release();
	PRB_TRY(err);
	if (as_json) {
		prb_json_close(&json, ']');
		prb_str_putc(&text, '\n');
		PRB_TRY(prb_output(&text));
	}
	PRB_TRY(prb_output_flush());
	if (prb_interrupted())
		return prb_error_create(PRB_ERROR_CANCELLED,
					"interrupted after %zu of %zu Pythons, of which %zu are "
					"wrong",
					checked, pythons.count, wrong);
	if (!checked)
		return prb_error_hint(
			prb_error_create(PRB_ERROR_NOT_FOUND, "no Python could be checked"),
			"python3, python3.12 and the like are looked for in PATH");
	return wrong ? prb_error_create(PRB_ERROR_FAILED,
					"%zu of %zu profiles are further off than chance explains",
					wrong, checked)
		     : NULL;
}
