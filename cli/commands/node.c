/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `probing node`: the daemon of a machine. It supervises what other commands do, each in a process
 * of its own, so that none can end the others. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/new_file.h"
#include "cli/commands/crashes/keep.h"
#include "cli/commands/cluster/ship_end.h"
#include "cli/commands/cluster/watch_jobs.h"
#include "clickhouse/ship.h"
#include "clickhouse/state.h"
#include "clickhouse/url.h"
#include "command/command.h"
#include "command/exit.h"
#include "command/start.h"
#include "command/words.h"
#include "cluster/watch/reports.h"
#include "remote/token.h"

struct node_settings {
	struct prb_texts to; /* a database, and the daemon that judges jobs */
	const char *password_file, *state, *host, *job, *listen, *token_file;
	const char *webhook, *hosts;
	double every, metrics, hang;
	int max_size, keep;
	bool crashes, watch_jobs, plain;
};

/* Seconds. */
static const double FIRST_WAIT = 1, MOST_WAIT = 60, LONG_RUN = 60, LAST_CHANCE = 12,
		    CRASHES_EVERY = 10;

static const char UNIX[] = "unix:", WEBHOOK[] = "PROBING_WEBHOOK";

/** The HTTP address among those of --to, or without @p http the other one; NULL: not given. */
static const char *find_to(const struct node_settings *s, bool http)
{
	for (size_t i = 0; i < s->to.count; i++)
		if (http == (!strncmp(s->to.items[i], "http://", 7) ||
			     !strncmp(s->to.items[i], "https://", 8)))
			return s->to.items[i];
	return NULL;
}

static const char *database(const struct node_settings *s)
{
	return find_to(s, false);
}

struct part {
	const char *name;
	bool wanted;
	pid_t pid; /* 0: it does not run */
	double started, wait, next_start;
	int (*run)(const struct node_settings *s);
};

static int run_ship(const struct node_settings *s)
{
	const struct prb_ship_options options = {.to = database(s),
						 .password_file = s->password_file,
						 .state = s->state,
						 .host = s->host,
						 .job = s->job,
						 .every = s->every,
						 .metrics = s->metrics,
						 .max_size = s->max_size,
						 .keep_days = s->keep,
						 .patient = true};
	struct prb_ship_sums sums = {};
	struct prb_error *err = prb_ship_run(&options, &sums);

	prb_ship_tell_end(&sums);
	return (int)prb_exit_report(err);
}

static struct prb_error *serve_words(const struct node_settings *s, struct prb_words *ret)
{
	PRB_TRY(prb_words_add(ret, "probing"));
	PRB_TRY(prb_words_add(ret, "serve"));
	PRB_TRY(prb_words_add(ret, "--address=%s", s->listen));
	if (s->plain)
		PRB_TRY(prb_words_add(ret, "--plain"));
	return s->token_file ? prb_words_add(ret, "--token-file=%s", s->token_file) : NULL;
}

/** Lets the part that serves know the files of the part that watches jobs. */
static struct prb_error *name_files(const struct node_settings *s)
{
	prb_auto_free char *path = NULL, *file = NULL, *reports = NULL;
	prb_auto_close int folder = -1;

	PRB_TRY(prb_state_folder_open(s->state, &folder, &path));
	file = prb_format("%s/" PRB_WATCH_JOBS_METRICS, path);
	reports = prb_format("%s/" PRB_REPORTS_FOLDER, path);
	return file && reports && !setenv(PRB_WATCH_JOBS_VARIABLE, file, 1) &&
			       !setenv(PRB_REPORTS_VARIABLE, reports, 1)
		       ? NULL
		       : prb_error_nomem();
}

static int run_serve(const struct node_settings *s)
{
	prb_auto_words struct prb_words words = {};
	struct prb_error *err = s->watch_jobs ? name_files(s) : NULL;
	char **list;

	if (!err)
		err = serve_words(s, &words);
	if (!err && !(err = prb_words_end(&words, &list)))
		err = prb_error_os(prb_start_become_at(NULL, list), "cannot start ourselves");
	return (int)prb_exit_report(err);
}

static int run_crashes(const struct node_settings *s)
{
	struct prb_error *err, *failed, *told = NULL;

	while (!(err = prb_crashes_keep(s->state, s->max_size, &failed))) {
		/* Once, not every ten seconds. */
		if (failed && (!told || strcmp(told->message, failed->message) != 0))
			prb_warn(failed->message);
		prb_error_destroy(told);
		told = failed;
		poll(NULL, 0, (int)(CRASHES_EVERY * 1000));
	}
	prb_error_destroy(told);
	return (int)prb_exit_report(err);
}

static int run_watch_jobs(const struct node_settings *s)
{
	const char *webhook = s->webhook ? s->webhook : getenv(WEBHOOK);

	return (int)prb_exit_report(prb_watch_jobs_run(
		&(struct prb_watch_jobs_options){.state = s->state,
						 .webhook = webhook && *webhook ? webhook : NULL,
						 .hosts = s->hosts,
						 .report = find_to(s, true),
						 .token_file = s->token_file,
						 .judges = s->listen,
						 .host = s->host,
						 .hang = s->hang}));
}

static struct prb_error *start(struct part *part, const struct node_settings *s,
			       const sigset_t *before)
{
	const pid_t parent = getpid();
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid < 0)
		return prb_error_os(errno, "cannot start '%s'", part->name);
	part->started = prb_clock_seconds();
	part->pid = pid;
	if (pid)
		return NULL;
	/* It does not outlive us, however we end. */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(PRB_EXIT_FAILED);
	sigprocmask(SIG_SETMASK, before, NULL);
	_exit(part->run(s));
}

/**
 * Notes the exit status of a part. A mistake of the user's ends the daemon, all else is tried
 * again.
 */
static struct prb_error *note_end(struct part *part, int status)
{
	const bool exited = WIFEXITED(status);
	const int code = exited ? WEXITSTATUS(status) : 0;
	prb_auto_str struct prb_str text = {};

	part->pid = 0;
	if (exited && (code == PRB_EXIT_USAGE || code == PRB_EXIT_UNSUPPORTED))
		return prb_error_create(code == PRB_EXIT_USAGE ? PRB_ERROR_USAGE
							       : PRB_ERROR_UNSUPPORTED,
					"'%s' cannot run as it was told", part->name);
	if (prb_clock_seconds() - part->started > LONG_RUN)
		part->wait = 0;
	part->wait = part->wait ? PRB_MIN(2 * part->wait, MOST_WAIT) : FIRST_WAIT;
	part->next_start = prb_clock_seconds() + part->wait;
	prb_str_printf(&text, "'%s' has ended by %s %d: it is started again in %.0f s", part->name,
		       exited ? "exit code" : "signal", exited ? code : WTERMSIG(status),
		       part->wait);
	prb_warn(prb_str_text(&text));
	return NULL;
}

static struct prb_error *reap(struct part *parts, size_t count)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		for (size_t i = 0; i < count; i++)
			if (parts[i].pid == pid)
				PRB_TRY(note_end(&parts[i], status));
	return NULL;
}

/** Ends all parts: each has some seconds to finish what it does. */
static void stop_all(struct part *parts, size_t count)
{
	const double limit = prb_clock_seconds() + LAST_CHANCE;
	bool running = true;

	for (size_t i = 0; i < count; i++)
		if (parts[i].pid)
			kill(parts[i].pid, SIGTERM);
	while (running) {
		running = false;
		for (size_t i = 0; i < count; i++) {
			if (parts[i].pid && waitpid(parts[i].pid, NULL, WNOHANG))
				parts[i].pid = 0;
			if (parts[i].pid && prb_clock_seconds() > limit)
				kill(parts[i].pid, SIGKILL);
			running |= parts[i].pid != 0;
		}
		if (running)
			poll(NULL, 0, 20);
	}
}

/** Starts what is due; gives the seconds until the next is. */
static struct prb_error *start_due(struct part *parts, size_t count, const struct node_settings *s,
				   const sigset_t *before, double *ret)
{
	*ret = MOST_WAIT;
	for (size_t i = 0; i < count; i++) {
		double rest = parts[i].next_start - prb_clock_seconds();

		if (!parts[i].wanted || parts[i].pid)
			continue;
		if (rest <= 0)
			PRB_TRY(start(&parts[i], s, before));
		else
			*ret = PRB_MIN(*ret, rest);
	}
	return NULL;
}

static struct prb_error *supervise(struct part *parts, size_t count, const struct node_settings *s,
				   const sigset_t *before, int signals)
{
	struct signalfd_siginfo info;
	double rest;

	for (;;) {
		struct pollfd polled = {.fd = signals, .events = POLLIN};

		PRB_TRY(start_due(parts, count, s, before, &rest));
		poll(&polled, 1, (int)(rest * 1000) + 1);
		while (read(signals, &info, sizeof(info)) == sizeof(info))
			if (info.ssi_signo != SIGCHLD)
				return NULL;
		PRB_TRY(reap(parts, count));
	}
}

/** The places that are written to, which no part could use later. */
static struct prb_error *check_places(const struct node_settings *s)
{
	prb_auto_free char *path = NULL;
	prb_auto_close int folder = -1;

	if (s->token_file)
		PRB_TRY(prb_new_file_check_way(s->token_file));
	if (s->listen && !strncmp(s->listen, UNIX, strlen(UNIX)))
		PRB_TRY(prb_new_file_check_way(s->listen + strlen(UNIX)));
	return database(s) || s->crashes || s->watch_jobs
		       ? prb_state_folder_open(s->state, &folder, &path)
		       : NULL;
}

/** Reports wrong settings of what is sent elsewhere. */
static struct prb_error *check_to(const struct node_settings *s)
{
	const char *to = database(s), *judge = find_to(s, true);
	struct prb_clickhouse_url url;
	struct prb_token token;

	if (s->to.count != (to ? 1u : 0u) + (judge ? 1u : 0u))
		return prb_error_create(PRB_ERROR_USAGE,
					"--to is given twice: at most one database and one "
					"http://HOST:PORT");
	if (judge && !s->watch_jobs)
		return prb_error_create(PRB_ERROR_USAGE, "--to http://… is for --watch-jobs");
	if (judge && s->hosts)
		return prb_error_create(PRB_ERROR_USAGE,
					"--hosts and --to http://… are two ways for the same");
	if (judge)
		PRB_TRY(prb_token_find(s->token_file, &token));
	if (!to && (s->every > 0 || s->metrics > 0 || s->password_file || s->job || s->keep))
		return prb_error_create(PRB_ERROR_USAGE,
					"--every, --metrics, --password-file, --job-name and "
					"--keep-days are for --to clickhouse://…");
	if (!to)
		return NULL;
	PRB_TRY(prb_clickhouse_url_parse(to, &url));
	prb_clickhouse_url_deinit(&url);
	return NULL;
}

/** Reports wrong settings before any part is started. */
static struct prb_error *check(const struct node_settings *s)
{
	if (!s->to.count && !s->listen && !s->crashes && !s->watch_jobs)
		return prb_error_hint(
			prb_error_create(PRB_ERROR_USAGE, "there is nothing to do"),
			"give --to, --listen, --crashes or --watch-jobs: probing node --to "
			"clickhouse://HOST/DATABASE");
	if (s->plain && !s->listen)
		return prb_error_create(PRB_ERROR_USAGE, "--plain is for --listen");
	if ((s->hang > 0 || s->webhook || s->hosts) && !s->watch_jobs)
		return prb_error_create(PRB_ERROR_USAGE,
					"--hang, --hosts and --webhook are for --watch-jobs");
	if (s->host && !database(s) && !s->watch_jobs)
		return prb_error_create(PRB_ERROR_USAGE,
					"--host-name is for --to and --watch-jobs");
	PRB_TRY(check_to(s));
	return check_places(s);
}

static struct prb_error *run(const struct prb_cli *cli, const void *settings)
{
	const struct node_settings *s = settings;
	struct part parts[] = {
		{.name = "ship", .wanted = database(s), .run = run_ship},
		{.name = "serve", .wanted = s->listen, .run = run_serve},
		{.name = "crashes", .wanted = s->crashes, .run = run_crashes},
		{.name = "watch-jobs", .wanted = s->watch_jobs, .run = run_watch_jobs},
	};
	prb_auto_close int signals = -1;
	struct prb_error *err;
	sigset_t set, before;

	(void)cli;
	PRB_TRY(check(s));
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, &before);
	signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	if (signals < 0)
		return prb_error_os(errno, "cannot wait for signals");
	err = supervise(parts, PRB_ARRAY_SIZE(parts), s, &before, signals);
	stop_all(parts, PRB_ARRAY_SIZE(parts));
	return err;
}

const struct prb_command prb_command_node = {
	.rank = 69,
	.name = "node",
	.summary = "Run on a machine for good: ship rows, serve, watch jobs, keep crash records",
	.description =
		"Supervises parts, each of which is a process of its own and is started again if "
		"it "
		"fails. --to sends the rows that the Python processes of this machine keep in "
		"rings to a ClickHouse database, as 'probing cluster ship' does. --listen serves "
		"a page and an HTTP interface, as 'probing serve' does. --crashes keeps the crash "
		"records that processes write. --watch-jobs looks at all distributed jobs every "
		"ten seconds, without stopping a thread. If one makes no progress, it saves its "
		"ranks, and reports the verdict of 'cluster hang' and the file. With --to "
		"http://HOST:PORT, where another daemon has --listen, that one judges the jobs of "
		"several machines, whose daemons all report to it.\n\n"
		"It finds new processes by itself, does nothing in them, and ends by SIGTERM or "
		"Ctrl-C. docs/deploy/ has a unit for systemd and a manifest for Kubernetes.",
	.options =
		(const struct prb_option[]){
			{"to", 0, PRB_OPTION_TEXTS, "URL",
			 "Rows to clickhouse://[USER@]HOST[:PORT]/DATABASE; jobs to "
			 "http://HOST:PORT",
			 PRB_COMPLETE_NOTHING, offsetof(struct node_settings, to)},
			{"password-file", 0, PRB_OPTION_TEXT, "FILE",
			 "Its password [$PROBING_CLICKHOUSE_PASSWORD]", PRB_COMPLETE_FILE,
			 offsetof(struct node_settings, password_file)},
			{"every", 0, PRB_OPTION_SECONDS, "TIME",
			 "Send each table's new rows every TIME (default: 2s)",
			 PRB_COMPLETE_NOTHING, offsetof(struct node_settings, every)},
			{"metrics", 0, PRB_OPTION_SECONDS, "TIME",
			 "Read and send the metrics of 'probing export' every TIME [never]",
			 PRB_COMPLETE_NOTHING, offsetof(struct node_settings, metrics)},
			{"host-name", 0, PRB_OPTION_TEXT, "NAME",
			 "What the rows call this machine [its host name]", PRB_COMPLETE_NOTHING,
			 offsetof(struct node_settings, host)},
			{"job-name", 0, PRB_OPTION_TEXT, "NAME",
			 "What the rows call the job [what its launcher says]",
			 PRB_COMPLETE_NOTHING, offsetof(struct node_settings, job)},
			{"keep-days", 0, PRB_OPTION_NUMBER, "N",
			 "Drop rows in the database that were sent over N days ago [never]",
			 PRB_COMPLETE_NOTHING, offsetof(struct node_settings, keep)},
			{"listen", 0, PRB_OPTION_TEXT, "ADDR", "Serve at HOST:PORT or unix:PATH",
			 PRB_COMPLETE_NOTHING, offsetof(struct node_settings, listen)},
			{"listen-token", 0, PRB_OPTION_TEXT, "FILE",
			 "Token for --listen and http:// [$PROBING_AUTH_TOKEN, a random one]",
			 PRB_COMPLETE_FILE, offsetof(struct node_settings, token_file)},
			{"plain", 0, PRB_OPTION_FLAG, NULL,
			 "'--listen': also without encryption, in a network that you trust",
			 PRB_COMPLETE_NOTHING, offsetof(struct node_settings, plain)},
			{"crashes", 0, PRB_OPTION_FLAG, NULL,
			 "Keep copies of crash records in the state's folder", PRB_COMPLETE_NOTHING,
			 offsetof(struct node_settings, crashes)},
			{"watch-jobs", 0, PRB_OPTION_FLAG, NULL,
			 "Report jobs that make no progress, and slow ranks", PRB_COMPLETE_NOTHING,
			 offsetof(struct node_settings, watch_jobs)},
			{"hang", 0, PRB_OPTION_SECONDS, "TIME",
			 "'--watch-jobs': how long ranks may wait, at least (default: 60s)",
			 PRB_COMPLETE_NOTHING, offsetof(struct node_settings, hang)},
			{"hosts", 0, PRB_OPTION_TEXT, "LIST",
			 "'--watch-jobs': judge a job of several machines by asking these, by ssh",
			 PRB_COMPLETE_NOTHING, offsetof(struct node_settings, hosts)},
			{"webhook", 0, PRB_OPTION_TEXT, "URL",
			 "'--watch-jobs': post verdicts there as JSON [$PROBING_WEBHOOK]",
			 PRB_COMPLETE_NOTHING, offsetof(struct node_settings, webhook)},
			{"state", 0, PRB_OPTION_TEXT, "FOLDER",
			 "What was sent, rows that wait, crashes, jobs [~/.local/state/probing]",
			 PRB_COMPLETE_FILE, offsetof(struct node_settings, state)},
			{"max-size", 0, PRB_OPTION_NUMBER, "MIB",
			 "At most so much of rows that wait, and of crashes of all (default: "
			 "1024)",
			 PRB_COMPLETE_NOTHING, offsetof(struct node_settings, max_size)},
			{},
		},
	.settings_size = sizeof(struct node_settings),
	.target_use = PRB_TARGET_NONE,
	.examples =
		(const struct prb_example[]){
			{"probing node --to clickhouse://probing@db/training",
			 "Ship the rows of all processes"},
			{"probing node --to clickhouse://db/training --listen 127.0.0.1:9922",
			 "And serve this machine"},
			{"probing node --watch-jobs --to http://head:9922",
			 "Report jobs to 'head'"},
			{},
		},
	.run = run,
};
