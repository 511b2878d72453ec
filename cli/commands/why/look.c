/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Opens, reads and judges the targets. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/commands/script/extensions.h"
#include "cli/commands/why/why.h"
#include "cluster/jobs/job.h"
#include "command/descriptors.h"
#include "command/exit.h"
#include "control/age.h"
#include "control/socket.h"
#include "judge/answers.h"
#include "judge/chain.h"
#include "judge/glance.h"
#include "judge/threads.h"
#include "target/snapshot/bundle.h"
#include "target/spec/target_spec.h"

enum {
	AT_ONCE = 64, /* targets that are open together: the clocks are read once for them */
	MOST_LOOKS = 5,
	FEW = 4, /* targets: each is looked at for as long as its rules want */
	OFFERED = PRB_RULE_THREADS | PRB_RULE_MEMORY | PRB_RULE_PROC,
};

static void close_one(struct prb_why_one *one)
{
	prb_case_deinit(&one->judged);
	one->judged.target = NULL;
	one->judged.dump = NULL;
	one->judged.found = NULL;
	prb_dump_found_deinit(&one->found);
	one->found = (struct prb_dump_found){};
	prb_dump_destroy(prb_steal(&one->dump));
	prb_target_destroy(prb_steal(&one->target));
}

static void destroy(struct prb_why_one *one)
{
	close_one(one);
	prb_findings_deinit(&one->findings);
	prb_process_deinit(&one->process);
	free(one->words);
	free(one->file);
	free(one->host);
	free(one->command);
	free(one->unreadable);
	free(one->doing);
	free(one->chain);
	free(one);
}

void prb_why_deinit(struct prb_why *why)
{
	struct prb_why_one **one;
	struct prb_why_silent *silent;

	prb_vec_each (one, &why->list)
		destroy(*one);
	prb_vec_free(&why->list);
	prb_vec_each (silent, &why->silent) {
		free(silent->host);
		free(silent->why);
	}
	prb_vec_free(&why->silent);
}

struct prb_error *prb_why_add(struct prb_why *why, char *words, struct prb_why_one **ret)
{
	struct prb_why_one *one = words ? calloc(1, sizeof(*one)) : NULL;
	struct prb_why_one **place = one ? prb_vec_push(&why->list) : NULL;

	if (!place) {
		free(words);
		free(one);
		return prb_error_nomem();
	}
	one->words = words;
	one->agent = -1;
	*place = *ret = one;
	return NULL;
}

/** Why nothing is known of its threads; takes over @p err, which may be NULL. */
static struct prb_error *note_error(struct prb_why_one *one, struct prb_error *err)
{
	if (!err || err->code == PRB_ERROR_NOMEM)
		return err;
	one->gone = err->code == PRB_ERROR_NO_PROCESS && !one->named;
	free(one->unreadable);
	one->unreadable = strdup(err->message);
	prb_error_destroy(err);
	return one->unreadable ? NULL : prb_error_nomem();
}

static struct prb_error *add_named(struct prb_why *why, const char *name,
				   const struct prb_core_places *places)
{
	prb_auto_target struct prb_target *target = NULL;
	struct prb_why_one *one;

	PRB_TRY(prb_spec_open_in(name, places, &target));
	PRB_TRY(prb_why_add(why,
			    target->live && target->local ? prb_format("%d", (int)target->pid)
							  : strdup(name),
			    &one));
	one->named = true;
	one->target = prb_steal(&target);
	if (!one->target->live || !one->target->local)
		return prb_str_copy(name, &one->file);
	struct prb_error *err = prb_process_describe(one->target->pid, &one->process);

	prb_error_catch(&err, PRB_ERROR_NO_PROCESS);
	one->process.pid = one->target->pid;
	return err;
}

/** The ranks of a Slurm job on this machine. */
static struct prb_error *add_slurm(struct prb_why *why, const char *number,
				   const struct prb_core_places *places)
{
	prb_auto_jobs struct prb_jobs jobs = {};
	const struct prb_job *job;
	const struct prb_rank *rank;
	size_t before = why->list.count;

	PRB_TRY(prb_jobs_find(&jobs));
	prb_vec_each (job, &jobs.list) {
		if (!job->slurm || strcmp(job->slurm, number) != 0)
			continue;
		prb_vec_each (rank, &job->ranks) {
			prb_auto_free char *pid = prb_format("%d", (int)rank->pid);

			if (!pid)
				return prb_error_nomem();
			if (rank->pid)
				PRB_TRY(add_named(why, pid, places));
		}
	}
	return why->list.count > before
		       ? NULL
		       : prb_error_create(PRB_ERROR_NOT_FOUND, "no rank of Slurm job %s runs here",
					  number);
}

/** Each process of a bundle. */
static struct prb_error *add_bundle(struct prb_why *why, const char *name,
				    const struct prb_core_places *places)
{
	prb_auto_bundle struct prb_bundle bundle = PRB_NO_BUNDLE;
	const struct prb_bundle_member *member;

	PRB_TRY(prb_bundle_open(name, &bundle));
	prb_vec_each (member, &bundle.members) {
		prb_auto_free char *one = prb_format("%s/%ld", name, member->number);

		if (!one)
			return prb_error_nomem();
		if (member->kind == PRB_BUNDLE_SNAPSHOT)
			PRB_TRY(add_named(why, one, places));
	}
	return NULL;
}

static struct prb_error *add_target(struct prb_why *why, const char *name,
				    const struct prb_core_places *places)
{
	static const char slurm[] = "slurm:";
	struct stat st;

	if (!strncmp(name, slurm, strlen(slurm)))
		return add_slurm(why, name + strlen(slurm), places);
	/* Files come after numbers, as for all commands. */
	if (name[strspn(name, "0123456789")] && !stat(name, &st) && S_ISREG(st.st_mode) &&
	    prb_bundle_probe(name))
		return add_bundle(why, name, places);
	return add_named(why, name, places);
}

/** A process that ends while its number is typed does not keep the others from being judged. */
static struct prb_error *add_targets(struct prb_why *why, const struct prb_texts *targets,
				     const struct prb_core_places *places)
{
	for (size_t i = 0; i < targets->count; i++) {
		struct prb_error *err = add_target(why, targets->items[i], places);

		if (err && targets->count > 1 &&
		    (err->code == PRB_ERROR_NO_PROCESS || err->code == PRB_ERROR_UNSUPPORTED) &&
		    (why->list.count || i + 1 < targets->count)) {
			prb_warn(err->message);
			prb_error_destroy(err);
			continue;
		}
		PRB_TRY(err);
	}
	return NULL;
}

static struct prb_error *add_all(struct prb_why *why)
{
	struct prb_python_processes found = {};
	struct prb_error *err = prb_process_list(&found);
	struct prb_python_process *process;

	prb_vec_each (process, &found.list) {
		struct prb_why_one *one;

		if (err)
			break;
		err = prb_why_add(why, prb_format("%d", (int)process->process.pid), &one);
		if (err)
			break;
		one->process = process->process;
		process->process = (struct prb_process){};
		one->unreadable = prb_steal(&process->refusal);
	}
	prb_python_processes_deinit(&found);
	return err;
}

static struct prb_error *read_threads(struct prb_why_one *one)
{
	const struct prb_dump_options options = {.no_values = true, .no_command = true};

	if (!one->target)
		PRB_TRY(prb_target_open_process(one->process.pid, &one->target));
	one->target->one_look = one->once;
	PRB_TRY(prb_target_check_memory(one->target));
	return prb_dump_create_with(one->target, &options, &one->found, &one->dump);
}

static struct prb_error *read_some(struct prb_why_one **list, size_t count)
{
	struct prb_idle *idle;
	struct prb_error *err = NULL;

	PRB_TRY(prb_idle_create(&idle));
	for (size_t i = 0; i < count && !err; i++) {
		if (list[i]->unreadable)
			continue;
		list[i]->judged.read_seconds = prb_clock_seconds();
		err = note_error(list[i], read_threads(list[i]));
		if (!err && list[i]->dump)
			err = note_error(list[i], prb_judge_note_idle(idle, list[i]->target,
								      list[i]->dump, OFFERED));
	}
	prb_idle_finish(idle);
	for (size_t i = 0; i < count && !err; i++)
		list[i]->judged.read_seconds =
			list[i]->dump ? prb_judge_read_seconds(list[i]->target,
							       list[i]->judged.read_seconds)
				      : 0;
	return err;
}

/** The child that a thread waits for; 0: none, or any. */
static pid_t child_of(const struct prb_dump_thread *thread)
{
	const struct prb_enders *enders = &thread->enders;

	return enders->kind && !strcmp(enders->kind, "child") && enders->count == 1 &&
			       !enders->any_child
		       ? enders->pids[0]
		       : 0;
}

/** What the main thread waits for in the end, if that is another process. */
static struct prb_error *put_chain(struct prb_why_one *one)
{
	prb_auto_peers struct prb_peers peers = {};
	prb_auto_chain struct prb_chain chain = {};
	const struct prb_dump_thread *root;
	const struct prb_case nothing = {};
	prb_auto_str struct prb_str text = {};
	size_t place;

	PRB_TRY(prb_peers_add(&peers, one->process.pid, &place));
	if (!peers.list.items[place].dump)
		return NULL;
	PRB_TRY(prb_chain_follow(&peers, one->process.pid, 0, &chain));
	if (chain.list.count < 2 || peers.list.count < 2)
		return NULL;
	PRB_TRY(prb_peers_note_idle(&peers));
	root = prb_peer_thread(&peers, chain.list.items[chain.list.count - 1]);
	prb_chain_put(&text, &peers, &chain);
	prb_str_puts(&text, ", ");
	prb_case_put_doing(&text, &nothing, root);
	one->chain = prb_str_take(&text);
	return one->chain ? NULL : prb_error_nomem();
}

static struct prb_error *put_doing(const struct prb_why *why, struct prb_why_one *one)
{
	prb_auto_str struct prb_str text = {};
	const struct prb_dump_thread *main = one->dump->threads.items;

	prb_case_put_thread(&text, main);
	prb_str_putc(&text, ' ');
	prb_case_put_doing(&text, &one->judged, main);
	if (!one->findings.list.count && why->list.count == 1 && prb_case_is_here(&one->judged) &&
	    main->enders.kind)
		PRB_TRY(put_chain(one));
	one->doing = prb_str_take(&text);
	one->child = child_of(main);
	return one->doing ? NULL : prb_error_nomem();
}

/** With many targets, second readings stop once they have taken a second in all. */
static double patience(const struct prb_why *why, double spent)
{
	static const double moment = 0.25, most = 1;

	if (why->look > 0)
		return why->look;
	return why->list.count <= FEW || (!why->keeps && spent < most) ? moment : 0;
}

static struct prb_error *run_rules(struct prb_why_one *one, struct prb_glances *glances)
{
	struct prb_case *c = &one->judged;

	c->target = one->target;
	c->dump = one->dump;
	c->found = &one->found;
	c->unreadable = one->unreadable;
	c->pid = one->process.pid;
	c->words = one->words;
	c->glances = glances;
	c->again = false;
	prb_findings_deinit(&one->findings);
	return prb_judge(c, OFFERED, &one->findings);
}

/** What a thread did while the others were read is judged by another look, when all have slept. */
static struct prb_error *look_again(struct prb_why_one *one, struct prb_glances *glances)
{
	double seconds = PRB_MIN(PRB_MAX(2 * one->judged.read_seconds, 0.005), 0.1);

	nanosleep(&(struct timespec){.tv_nsec = (long)(seconds * 1e9)}, NULL);
	one->once = false;
	prb_dump_destroy(prb_steal(&one->dump));
	prb_case_renew(&one->judged);
	PRB_TRY(read_some(&one, 1));
	return run_rules(one, glances);
}

static void note_agent(struct prb_why_one *one)
{
	const struct prb_dump_thread *main =
		one->dump && one->dump->threads.count ? one->dump->threads.items : NULL;

	one->agent = -1;
	if (!main || !one->target || !prb_agent_is_mapped(one->target))
		return;
	double age = prb_agent_age(one->target);

	if (prb_agent_interrupted(one->target, age, main->idle_seconds))
		one->agent = age;
}

/** True if the main thread waits for another process than that of the file, which has words only.
 */
static bool waits_apart(const struct prb_why_one *one)
{
	static const char *const words[] = {": child ", ": any child", ": pipe ", ": unix socket ",
					    " of several processes"};
	const char *text;

	if (!one->file || !one->dump || !one->dump->threads.count)
		return false;
	text = one->dump->threads.items->waits_for;
	for (size_t i = 0; text && i < PRB_ARRAY_SIZE(words); i++)
		if (strstr(text, words[i]))
			return true;
	return false;
}

static struct prb_error *judge(const struct prb_why *why, struct prb_why_one *one,
			       struct prb_glances *glances)
{
	if (prb_why_is_strange(one))
		return NULL;
	PRB_TRY(run_rules(one, glances));
	for (unsigned n = 0; one->judged.again && n < MOST_LOOKS; n++)
		PRB_TRY(look_again(one, glances));
	one->closed = !one->findings.list.count && prb_case_waits_for_itself(&one->judged);
	one->apart = !one->findings.list.count && waits_apart(one);
	note_agent(one);
	return one->dump && one->dump->threads.count ? put_doing(why, one) : NULL;
}

/** Processes that ended meanwhile are none of those that were asked about. */
static void forget_gone(struct prb_why *why)
{
	size_t count = 0;

	for (size_t i = 0; i < why->list.count; i++)
		if (why->list.items[i]->gone)
			destroy(why->list.items[i]);
		else
			why->list.items[count++] = why->list.items[i];
	why->list.count = count;
}

static struct prb_error *judge_all(struct prb_why *ret)
{
	prb_auto_glances struct prb_glances glances = {};
	double spent = 0;

	for (size_t i = 0; i < ret->list.count; i += AT_ONCE) {
		size_t count = PRB_MIN(ret->list.count - i, (size_t)AT_ONCE);

		for (size_t k = i; k < i + count; k++)
			ret->list.items[k]->once = !ret->keeps && ret->look <= 0;
		PRB_TRY(read_some(ret->list.items + i, count));
		for (size_t k = i; k < i + count; k++) {
			struct prb_why_one *one = ret->list.items[k];

			one->judged.patience = patience(ret, spent);
			one->judged.at_once = ret->keeps;
			one->looked = one->judged.patience > 0;
			PRB_TRY(judge(ret, one, &glances));
			spent += one->judged.spent;
			if (!ret->keeps)
				close_one(one);
		}
	}
	for (size_t i = 0; i < ret->list.count; i++)
		ret->list.items[i]->judged.glances = NULL;
	forget_gone(ret);
	return NULL;
}

/** Rules of scripts are asked about one target only. */
static struct prb_error *extend(const struct prb_cli *cli, const struct prb_texts *scripts,
				struct prb_why *why)
{
	struct prb_target *target = why->list.count == 1 ? why->list.items[0]->target : NULL;

	return target ? prb_extensions_load(cli, scripts, PRB_EXTENSION_RULES, target,
					    &target->custom)
		      : NULL;
}

struct prb_error *prb_why_create(const struct prb_cli *cli, const struct prb_texts *targets,
				 const struct prb_texts *scripts, struct prb_why *ret)
{
	prb_descriptors_raise();
	PRB_TRY(add_targets(ret, targets, &cli->places));
	PRB_TRY(extend(cli, scripts, ret));
	if (!targets->count)
		PRB_TRY(add_all(ret));
	return judge_all(ret);
}

struct prb_error *prb_why_of(const pid_t *pids, size_t count, struct prb_why *ret)
{
	prb_descriptors_raise();
	ret->keeps = true;
	for (size_t i = 0; i < count; i++) {
		struct prb_why_one *one;

		PRB_TRY(prb_why_add(ret, prb_format("%d", (int)pids[i]), &one));
		struct prb_error *err = prb_process_describe(pids[i], &one->process);

		one->gone = prb_error_catch(&err, PRB_ERROR_NO_PROCESS);
		PRB_TRY(err);
		one->process.pid = pids[i];
	}
	forget_gone(ret);
	return judge_all(ret);
}

enum prb_finding_kind prb_why_kind(const struct prb_why_one *one)
{
	return one->findings.list.count ? one->findings.list.items[0]->kind : PRB_FINDING_NOTHING;
}

bool prb_why_is_strange(const struct prb_why_one *one)
{
	return !one->named && one->unreadable;
}
