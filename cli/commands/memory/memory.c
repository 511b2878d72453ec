/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `probing memory`: what a process's memory is made of, read from outside. */
#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/commands/memory/history/history.h"
#include "cli/commands/memory/report/memory.h"
#include "cli/commands/memory/sites/sites.h"
#include "command/command.h"
#include "command/interrupt.h"
#include "command/output.h"
#include "command/term.h"
#include "target/spec/command_line.h"
#include "target/spec/target_spec.h"

enum { ROWS = 15, MAX_ROWS = 100000, MAX_SECONDS = 3600 };

#define EVERY "512KiB"
#define CLEAR "\x1b[H\x1b[2J"

bool prb_memory_wait(double seconds)
{
	int64_t until = prb_clock_ns() + (int64_t)(seconds * 1e9);
	const struct timespec at = {.tv_sec = until / 1000000000, .tv_nsec = until % 1000000000};

	while (!prb_interrupted())
		if (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) != EINTR)
			break;
	return !prb_interrupted();
}

static struct prb_error *show_once(struct prb_target *target, const struct prb_memory_settings *s,
				   struct prb_str *out)
{
	prb_auto_memory struct prb_memory memory = {};

	PRB_TRY(prb_memory_read(target, s, &memory));
	PRB_TRY(prb_memory_read_gpus(&memory));
	return s->json ? prb_memory_put_json(&memory, s->rows, out)
		       : prb_memory_put_text(&memory, s->rows, out);
}

static struct prb_error *watch(struct prb_target *target, const struct prb_memory_settings *s)
{
	bool terminal = prb_term_is(stdout) && !s->json;

	for (int n = 0; !s->count || n < s->count; n++) {
		prb_auto_str struct prb_str out = {};

		if (n && !prb_memory_wait(s->watch))
			return NULL;
		if (terminal)
			prb_str_puts(&out, CLEAR);
		else if (n && !s->json)
			prb_str_putc(&out, '\n');
		PRB_TRY(show_once(target, s, &out));
		PRB_TRY(prb_output_lines(&out, s->json));
		PRB_TRY(prb_output_flush());
	}
	return NULL;
}

/** Shows what grew since an earlier snapshot of the target. */
static struct prb_error *show_diff(const struct prb_cli *cli, struct prb_target *target,
				   const struct prb_memory_settings *s)
{
	prb_auto_str struct prb_str out = {};
	prb_auto_target struct prb_target *before = NULL;

	PRB_TRY(prb_spec_open_in(s->diff, &cli->places, &before));
	PRB_TRY(prb_memory_diff(before, target, s, &out));
	return prb_output_lines(&out, s->json);
}

static struct prb_error *show_sites(struct prb_target *target, const struct prb_memory_settings *s)
{
	prb_auto_memory struct prb_memory memory = {};
	__attribute__((cleanup(prb_memory_sites_deinit))) struct prb_memory_sites sites = {};
	prb_auto_str struct prb_str out = {};

	if (!target->live)
		return prb_error_create(PRB_ERROR_UNSUPPORTED,
					"--sites needs a process that runs; this is a %s",
					prb_target_kind_name(target->kind));
	if (!prb_sites_parse_size(s->every ? s->every : EVERY, &sites.mean))
		return prb_error_create(PRB_ERROR_USAGE,
					"--every cannot be '%.100s', it is 1 to 1 GiB, such as "
					"64KiB",
					s->every);
	PRB_TRY(prb_memory_open(target, &memory));
	PRB_TRY(prb_memory_sites_take(&memory, s, &sites));
	if (s->output)
		PRB_TRY(prb_memory_sites_write(&sites, s->output));
	PRB_TRY((s->json ? prb_memory_sites_json : prb_memory_sites_text)(&memory, &sites, s->rows,
									  &out));
	return prb_output_lines(&out, s->json);
}

static struct prb_error *show(struct prb_target *target, const struct prb_memory_settings *s)
{
	prb_auto_str struct prb_str out = {};

	if (s->sites > 0)
		return show_sites(target, s);
	if (s->watch > 0)
		return watch(target, s);
	PRB_TRY(s->snapshot_gpu ? prb_memory_history(target, s, &out)
		: s->growth > 0 ? prb_memory_growth(target, s, &out)
				: show_once(target, s, &out));
	return prb_output_lines(&out, s->json);
}

static struct prb_error *check(const struct prb_cli *cli, const struct prb_memory_settings *s)
{
	if (cli->targets.count > 1)
		return prb_error_create(PRB_ERROR_USAGE, "memory is read of one target");
	if ((s->watch > 0) + (s->growth > 0) + (s->sites > 0) + (s->diff != NULL) +
		    (s->snapshot_gpu != NULL) >
	    1)
		return prb_error_create(PRB_ERROR_USAGE, "--watch, --growth, --sites, --diff and "
							 "--snapshot-gpu exclude each other");
	if (s->duration > 0 && !s->snapshot_gpu)
		return prb_error_create(PRB_ERROR_USAGE, "--duration is for --snapshot-gpu");
	if ((s->every || s->output || s->cc) && s->sites <= 0)
		return prb_error_create(PRB_ERROR_USAGE,
					"--every, --cc and --output are for --sites");
	if (s->output)
		PRB_TRY(prb_memory_sites_check_output(s->output));
	if (s->count && s->watch <= 0)
		return prb_error_create(PRB_ERROR_USAGE, "--count is for --watch");
	if (s->rows > MAX_ROWS || s->max_seconds > MAX_SECONDS)
		return prb_error_create(PRB_ERROR_USAGE,
					"no more than %d rows and %d seconds are possible",
					MAX_ROWS, MAX_SECONDS);
	return NULL;
}

static struct prb_error *run(const struct prb_cli *cli, const void *settings)
{
	struct prb_memory_settings s = *(const struct prb_memory_settings *)settings;
	prb_auto_target struct prb_target *target = NULL;
	struct prb_error *err;

	PRB_TRY(check(cli, &s));
	s.rows = s.rows ? s.rows : ROWS;
	PRB_TRY(prb_spec_open_in(cli->target, &cli->places, &target));
	if (s.watch > 0 || s.growth > 0)
		prb_interrupt_catch(NULL);
	err = s.diff ? show_diff(cli, target, &s) : show(target, &s);
	if (err)
		err = prb_command_line_name(target, err);
	return err;
}

#define PLACE(member) PRB_COMPLETE_NOTHING, offsetof(struct prb_memory_settings, member)

const struct prb_command prb_command_memory = {
	.rank = 68,
	.for_clients = true,
	.name = "memory",
	.aliases = {"mem"},
	.summary = "Show what takes the memory of a process, and what holds it",
	.description =
		"Prints the kernel's figures of the process and the limit of its control group, "
		"the Python objects by type with the buffers that they own, Python's allocator, "
		"the tensors of torch with the variable or module that holds them, and what "
		"malloc() has handed out. All is read from outside: nothing is loaded into the "
		"process, and it is never stopped.\n\n"
		"--growth reads twice and shows which types grew between, and which objects hold "
		"what is new; --diff does so with two snapshots.\n\n"
		"--sites loads the agent. It samples the memory that Python allocates, and shows "
		"which lines allocate it, and where what is not freed comes from. The query "
		"'SELECT * FROM memory_allocations' has the same afterwards. --snapshot-gpu loads "
		"it, too.",
	.options =
		(const struct prb_option[]){
			{"growth", 'g', PRB_OPTION_SECONDS, "DURATION",
			 "Show what grew in this time, and what holds it", PLACE(growth),
			 .for_clients = true},
			{"diff", 0, PRB_OPTION_TEXT, "FILE",
			 "Show what grew since this snapshot or core of the same process",
			 PRB_COMPLETE_FILE, offsetof(struct prb_memory_settings, diff)},
			{"sites", 's', PRB_OPTION_SECONDS, "DURATION",
			 "Sample for this time which lines allocate, and what they leave behind",
			 PLACE(sites)},
			{"every", 0, PRB_OPTION_TEXT, "SIZE",
			 "With --sites: bytes for each sample [512KiB]", PLACE(every)},
			{"cc", 'C', PRB_OPTION_FLAG, NULL, "With --sites: C and C++ functions, too",
			 PLACE(cc)},
			{"output", 'o', PRB_OPTION_TEXT, "FILE",
			 "With --sites: write a flame graph, too (.html, .svg, .collapsed)",
			 PRB_COMPLETE_FILE, offsetof(struct prb_memory_settings, output)},
			{"snapshot-gpu", 0, PRB_OPTION_TEXT, "FILE",
			 "Have torch record its GPU memory, and write it for memory_viz",
			 PRB_COMPLETE_FILE, offsetof(struct prb_memory_settings, snapshot_gpu)},
			{"duration", 'd', PRB_OPTION_SECONDS, "DURATION",
			 "With --snapshot-gpu: record for this time [10s]", PLACE(duration)},
			{"watch", 'w', PRB_OPTION_SECONDS, "INTERVAL", "Read again and again",
			 PLACE(watch), .for_clients = true},
			{"count", 0, PRB_OPTION_NUMBER, "COUNT", "End after so many, with --watch",
			 PLACE(count), .for_clients = true},
			{"rows", 'n', PRB_OPTION_NUMBER, "COUNT", "Rows of each table [15]",
			 PLACE(rows), .for_clients = true},
			{"max-time", 0, PRB_OPTION_SECONDS, "DURATION",
			 "End the walk over all objects after this time [60 s]", PLACE(max_seconds),
			 .for_clients = true},
			{"json", 0, PRB_OPTION_FLAG, NULL, "Print JSON", PLACE(json),
			 .for_clients = true},
			{}},
	.settings_size = sizeof(struct prb_memory_settings),
	.target_use = PRB_TARGET_ONE,
	.examples =
		(const struct prb_example[]){
			{"probing 4242 memory", "What takes the memory"},
			{"probing 4242 memory --growth 60s", "What leaks, and who holds it"},
			{"probing memory --diff a.snapshot b.snapshot",
			 "What grew between two snapshots"},
			{"probing 4242 memory --sites 30s", "Which lines allocate"},
			{"probing core memory --json", "Of a core file"},
			{}},
	.run = run,
};
