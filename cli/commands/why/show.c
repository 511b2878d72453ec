/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Findings of several targets as text and as JSON. */
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/commands/why/why.h"
#include "judge/ranking.h"
#include "judge/text.h"
#include "target/spec/command_line.h"

enum { MOST_SENTENCES = 5, MOST_NAMED = 20, MOST_REASONS = 3 };

static void put_name(struct prb_str *s, const struct prb_why_one *one)
{
	if (one->host) {
		prb_text_escape(s, one->host);
		prb_str_putc(s, ' ');
		if (one->process.pid)
			prb_str_printf(s, " %d  ", (int)one->process.pid);
		prb_str_puts(s, one->command);
	} else if (one->file) {
		prb_text_escape(s, one->file);
	} else {
		prb_str_printf(s, "%d  ", (int)one->process.pid);
		prb_command_line_text(s, &one->process);
	}
	prb_str_putc(s, '\n');
}

static const char *confidence_words(const struct prb_why_one *one)
{
	if (one->apart)
		return "low: it waits for another process, which the file does not have; processes "
		       "that wait for each other are found where they run";
	if (one->closed)
		return "low: it waits without a limit for its own process, and whether that ever "
		       "ends the wait is not known";
	return "medium";
}

static void put_nothing(struct prb_str *s, const struct prb_why_one *one)
{
	put_name(s, one);
	if (one->agent < 0) {
		prb_str_puts(s, "nothing is wrong\n");
	} else {
		prb_str_puts(s, "nothing is wrong since probing's agent was loaded, ");
		prb_text_duration(s, one->agent);
		prb_str_puts(s,
			     " ago: that interrupted the main thread, and how long it had waited "
			     "is not known\n");
	}
	prb_put_lines(s, "evidence", one->doing ? one->doing : "");
	prb_put_lines(s, one->doing ? "" : "evidence", one->chain ? one->chain : "");
	prb_put_lines(s, "rests on", "all rules of `probing why --rules`, at one look");
	prb_put_lines(s, "confidence", confidence_words(one));
	prb_put_lines(s, "wrong if", "the program should be doing something else by now");
	if (one->child) {
		prb_str_printf(s, "  next        probing why %d\n", (int)one->child);
		return;
	}
	prb_str_puts(s, "  next        probing -t ");
	prb_text_argument(s, one->words);
	prb_str_puts(s, " dump\n");
}

/** Those of which it is not known how long they had waited before our agent came. */
static void put_interrupted(struct prb_str *s, const struct prb_why *why)
{
	size_t count = 0;

	for (size_t i = 0; i < why->list.count; i++) {
		const struct prb_why_one *one = why->list.items[i];

		if (one->agent < 0 || one->findings.list.count)
			continue;
		prb_str_puts(s, count++ ? ", "
					: "interrupted when probing's agent was loaded, so that it "
					  "is not known how long it had waited: ");
		prb_text_escape(s, one->words);
	}
	if (count)
		prb_str_putc(s, '\n');
}

static void put_pids(struct prb_str *s, const struct prb_why *why, bool strange)
{
	const char *comma = ": ";
	size_t count = 0;

	for (size_t i = 0; i < why->list.count; i++) {
		const struct prb_why_one *one = why->list.items[i];

		if (prb_why_is_strange(one) != strange || one->findings.list.count ||
		    one->agent >= 0)
			continue;
		if (count++ < MOST_NAMED) {
			prb_str_puts(s, comma);
			prb_text_escape(s, one->words);
			comma = ", ";
		}
	}
	if (count > MOST_NAMED)
		prb_str_printf(s, " and %zu more", count - MOST_NAMED);
	prb_str_putc(s, '\n');
}

/** Why the first ones cannot be read, each reason once. */
static void put_reasons(struct prb_str *s, const struct prb_why *why)
{
	const char *said[MOST_REASONS];
	size_t count = 0;

	for (size_t i = 0; i < why->list.count; i++) {
		const struct prb_why_one *one = why->list.items[i];
		bool is_new = prb_why_is_strange(one);

		for (size_t at = 0; is_new && at < count; at++)
			is_new = strcmp(said[at], one->unreadable) != 0;
		if (!is_new)
			continue;
		if (count == MOST_REASONS) {
			prb_str_puts(s,
				     "  others for other reasons: 'probing PID why' prints it\n");
			return;
		}
		said[count++] = one->unreadable;
		prb_str_puts(s, "  ");
		prb_text_escape(s, one->words);
		prb_str_puts(s, ": ");
		prb_text_escape(s, one->unreadable);
		prb_str_putc(s, '\n');
	}
}

static void put_silent(struct prb_str *s, const struct prb_why *why)
{
	const struct prb_why_silent *silent;

	prb_vec_each (silent, &why->silent)
		prb_str_printf(s, "not judged: %s: %s\n", silent->host, silent->why);
}

/** Rules that look at a process for a while may not have been asked about all of them. */
static void put_unlooked(struct prb_str *s, const struct prb_why *why)
{
	size_t count = 0;

	for (size_t i = 0; i < why->list.count; i++)
		count += !why->list.items[i]->looked && !why->list.items[i]->host &&
			 !why->list.items[i]->unreadable;
	if (count)
		prb_str_printf(s,
			       "only one reading of %zu process%s: lock_file, loop, slow, sqlite, "
			       "tasks and "
			       "throttled need a second one; --look 0.25s makes it for each\n",
			       count, count == 1 ? "" : "es");
}

/** Of those without a finding, which may be hung all the same. */
static void put_low(struct prb_str *s, const struct prb_why *why, bool apart, const char *reason)
{
	size_t count = 0;

	for (size_t i = 0; i < why->list.count; i++) {
		if (apart ? !why->list.items[i]->apart : !why->list.items[i]->closed)
			continue;
		if (count++ >= MOST_NAMED)
			continue;
		prb_str_puts(s, count == 1 ? "  with low confidence, since they wait for " : ", ");
		prb_str_puts(s, count == 1 ? reason : "");
		prb_text_escape(s, why->list.items[i]->words);
	}
	if (count > MOST_NAMED)
		prb_str_printf(s, " and %zu more", count - MOST_NAMED);
	if (count)
		prb_str_putc(s, '\n');
}

/** One line for all that is healthy, and one for what may not be read. */
static void put_others(struct prb_str *s, const struct prb_why *why)
{
	size_t healthy = 0, strange = 0;

	for (size_t i = 0; i < why->list.count; i++) {
		strange += prb_why_is_strange(why->list.items[i]);
		healthy += !prb_why_is_strange(why->list.items[i]) &&
			   !why->list.items[i]->findings.list.count &&
			   why->list.items[i]->agent < 0;
	}
	if (why->list.count == 1 && !strange && !why->list.items[0]->findings.list.count &&
	    !why->list.items[0]->host) {
		put_nothing(s, why->list.items[0]);
		return;
	}
	if (healthy) {
		prb_str_printf(s, "nothing is wrong with %zu process%s", healthy,
			       healthy == 1 ? "" : "es");
		put_pids(s, why, false);
		put_low(s, why, false, "themselves: ");
		put_low(s, why, true, "others, and are judged without them: ");
	}
	put_interrupted(s, why);
	if (strange) {
		prb_str_printf(s, "not judged: %zu process%s that cannot be read", strange,
			       strange == 1 ? "" : "es");
		put_pids(s, why, true);
		put_reasons(s, why);
	}
	put_unlooked(s, why);
	put_silent(s, why);
}

static struct prb_error *rank(const struct prb_why *why, struct prb_ranking *ret)
{
	for (size_t i = 0; i < why->list.count; i++) {
		const struct prb_why_one *one = why->list.items[i];

		PRB_TRY(prb_ranking_add(ret, &one->findings, one, one->process.pid));
	}
	prb_ranking_sort(ret);
	return NULL;
}

/** Names the @p count targets after the place @p first, of which the same is said. */
static void put_same(struct prb_str *s, const struct prb_ranking *ranking, size_t first,
		     size_t count)
{
	for (size_t i = 1; i <= count && i <= MOST_NAMED; i++) {
		const struct prb_why_one *one = ranking->list.items[first + i].owner;

		prb_str_puts(s, i == 1 ? "  also of     " : ", ");
		prb_text_escape(s, one->words);
	}
	if (count > MOST_NAMED)
		prb_str_printf(s, " and %zu more", count - MOST_NAMED);
	if (count)
		prb_str_putc(s, '\n');
}

struct prb_error *prb_why_text(const struct prb_why *why, struct prb_str *ret)
{
	prb_auto_ranking struct prb_ranking ranking = {};
	const struct prb_why_one *before = NULL;
	size_t at = 0;

	PRB_TRY(rank(why, &ranking));
	for (size_t n = 0; at < ranking.list.count && n < MOST_SENTENCES; n++, at++) {
		const struct prb_why_one *one = ranking.list.items[at].owner;
		size_t same = prb_ranking_same(&ranking, at);

		if (one != before)
			put_name(ret, one);
		before = one;
		prb_finding_text(ret, ranking.list.items[at].finding);
		put_same(ret, &ranking, at, same);
		at += same;
	}
	if (at < ranking.list.count)
		prb_str_printf(ret, "%zu more finding%s: --json prints all\n",
			       ranking.list.count - at, ranking.list.count - at == 1 ? "" : "s");
	put_others(ret, why);
	return NULL;
}

/** Of the verdict: that of the worst finding, or of "nothing is wrong". */
static const char *confidence_of(const struct prb_why_one *one)
{
	if (one->findings.list.count)
		return prb_confidence_name(one->findings.list.items[0]->confidence);
	if (one->unreadable || one->host)
		return NULL;
	return prb_confidence_name(one->closed || one->apart ? PRB_CONFIDENCE_LOW
							     : PRB_CONFIDENCE_MEDIUM);
}

static void put_one_json(struct prb_json *json, const struct prb_why_one *one)
{
	bool strange = prb_why_is_strange(one);
	char *const *argument;

	prb_json_open(json, NULL, '{');
	prb_json_natural(json, "pid", one->process.pid ? one->process.pid : -1);
	prb_json_text(json, "file", one->file);
	prb_json_text(json, "host", one->host);
	prb_json_text(json, "command", one->command);
	prb_json_open(json, "argv", '[');
	prb_vec_each (argument, &one->process.argv)
		prb_json_text(json, NULL, *argument);
	prb_json_close(json, ']');
	prb_json_text(json, "verdict",
		      strange ? "unreadable" : prb_finding_kind_name(prb_why_kind(one)));
	prb_json_text(json, "unreadable", one->unreadable);
	prb_json_text(json, "confidence", confidence_of(one));
	prb_json_text(json, "doing", one->doing);
	prb_json_text(json, "chain", one->chain);
	if (!one->host && !one->unreadable)
		prb_json_bool(json, "looked", one->looked);
	prb_json_natural(json, "waits_for_child", one->child ? one->child : -1);
	prb_json_open(json, "findings", '[');
	for (size_t i = 0; i < one->findings.list.count; i++) {
		prb_json_open(json, NULL, '{');
		prb_finding_members(json, one->findings.list.items[i], one->process.pid);
		prb_json_close(json, '}');
	}
	prb_json_close(json, ']');
	prb_json_close(json, '}');
}

void prb_why_json(const struct prb_why *why, struct prb_str *ret)
{
	struct prb_json json = {ret};
	const struct prb_why_silent *silent;

	prb_json_open(&json, NULL, '{');
	prb_json_open(&json, "targets", '[');
	for (size_t i = 0; i < why->list.count; i++)
		put_one_json(&json, why->list.items[i]);
	prb_json_close(&json, ']');
	prb_json_open(&json, "silent", '[');
	prb_vec_each (silent, &why->silent) {
		prb_json_open(&json, NULL, '{');
		prb_json_text(&json, "host", silent->host);
		prb_json_text(&json, "error", silent->why);
		prb_json_close(&json, '}');
	}
	prb_json_close(&json, ']');
	prb_json_close(&json, '}');
	prb_str_putc(ret, '\n');
}

static void put_needs(struct prb_str *s, unsigned needs)
{
	static const char *const names[] = {"threads", "memory", "proc"};

	for (size_t i = 0, count = 0; i < sizeof(names) / sizeof(*names); i++)
		if (needs & 1u << i)
			prb_str_printf(s, "%s%s", count++ ? " " : "", names[i]);
}

void prb_why_rules(bool json, struct prb_str *ret)
{
	struct prb_json out = {ret};

	if (json)
		prb_json_open(&out, NULL, '[');
	for (const struct prb_rule *const *rule = prb_rules; *rule; rule++) {
		prb_auto_str struct prb_str needs = {};

		put_needs(&needs, (*rule)->needs);
		if (!json) {
			prb_str_printf(ret, "%4d  %-14s %-16s %s\n",
				       PRB_FINDING_EXIT + (int)(*rule)->kind, (*rule)->name,
				       prb_str_text(&needs), (*rule)->proves);
			continue;
		}
		prb_json_open(&out, NULL, '{');
		prb_json_integer(&out, "exit_code", PRB_FINDING_EXIT + (int)(*rule)->kind);
		prb_json_text(&out, "rule", (*rule)->name);
		prb_json_text(&out, "kind", prb_finding_kind_name((*rule)->kind));
		prb_json_text(&out, "needs", prb_str_text(&needs));
		prb_json_text(&out, "proves", (*rule)->proves);
		prb_json_close(&out, '}');
	}
	if (json) {
		prb_json_close(&out, ']');
		prb_str_putc(ret, '\n');
	}
}
