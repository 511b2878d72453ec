/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The settings of a process with the agent: the one table of their keys, which help,
 * completion and docs/configuration.md are made from, and how a value is read.
 *
 * Used on both sides: a client checks what the user typed, the agent checks what a client sends.
 * Allocates nothing. Threading: constant.
 */
#ifndef PRB_AGENT_CONFIG_KEYS_H
#define PRB_AGENT_CONFIG_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum prb_config_type {
	PRB_CONFIG_NUMBER,
	PRB_CONFIG_SIZE, /**< bytes: "64MiB", "1GB", "500000" */
	PRB_CONFIG_TEXT,
};

enum { PRB_CONFIG_TEXT_SIZE = 512 /**< bytes of a text with its NUL */ };

struct prb_config_key {
	const char *name;
	const char *environment;      /**< variables that set it at start; the first counts */
	const char *environment_also; /**< or NULL */
	enum prb_config_type type;
	const char *unit; /**< or NULL */
	double least, most, initial;
	const char *when; /**< a change has effect */
	const char *doc;  /**< one line, without full stop */
	const char *more; /**< further sentences, without the last full stop */
	double on;	  /**< what "on" means, and then "off" is 0; 0: these are no values */
};

enum prb_config_index {
	PRB_CONFIG_MAX_MEMORY,
	PRB_CONFIG_MEMORY_INTERVAL,
	PRB_CONFIG_RETENTION_DAYS,
	PRB_CONFIG_SAMPLE_RATE,
	PRB_CONFIG_TORCH_NAN,
	PRB_CONFIG_TORCH_PROFILING,
	PRB_CONFIG_WATCH,
	PRB_CONFIG_KEYS,
};

static const struct prb_config_key prb_config_keys[PRB_CONFIG_KEYS] = {
	[PRB_CONFIG_MAX_MEMORY] =
		{"probing.max_memory", "PROBING_MAX_MEMORY", NULL, PRB_CONFIG_SIZE, "bytes",
		 1 << 20, (double)(1ull << 40), 256 << 20, "with the next table that is made",
		 "Most that the rings of a process may take together",
		 "The same limit holds for all that ended processes of the user have left"},
	[PRB_CONFIG_MEMORY_INTERVAL] =
		{"probing.memory.interval", "PROBING_MEMORY_INTERVAL", NULL, PRB_CONFIG_NUMBER, "s",
		 0, 86400, 0, "at once", "Time between rows of memory_usage; 0: only with events",
		 "These rows are written by the agent's thread. The program's own events, spans "
		 "and steps write others, at most once a second"},
	[PRB_CONFIG_RETENTION_DAYS] =
		{"probing.retention_days", "PROBING_RETENTION_DAYS", NULL, PRB_CONFIG_NUMBER,
		 "days", 0, 3650, 7, "when a process makes its first table",
		 "How long rings of ended processes are kept",
		 "They are removed when another process of the user makes its first table"},
	[PRB_CONFIG_SAMPLE_RATE] = {"probing.sample_rate", "PROBING_SAMPLE_RATE", NULL,
				    PRB_CONFIG_NUMBER, NULL, 0, 1, 1, "at once",
				    "Share of events and outermost spans that are recorded",
				    "What happens within a span is recorded if the span is"},
	[PRB_CONFIG_TORCH_NAN] =
		{"probing.torch.nan", "PROBING_TORCH_NAN", NULL, PRB_CONFIG_NUMBER, NULL, 0, 1, 0,
		 "with the next step",
		 "Whether losses and outputs of modules are checked for NaN and infinity; on: 1",
		 "Losses in each step, outputs in timed steps and in those after such a loss: "
		 "rows of python.torch_nan",
		 .on = 1},
	[PRB_CONFIG_TORCH_PROFILING] =
		{"probing.torch.profiling", "PROBING_TORCH_PROFILING", NULL, PRB_CONFIG_NUMBER,
		 NULL, 0, 1, 0, "with the next step",
		 "Share of torch's training steps whose modules are timed; on: 0.01",
		 "off, or 0: no step is. The steps are chosen by their number, so all ranks of a "
		 "job choose the same. See docs/training.md",
		 .on = 0.01},
	[PRB_CONFIG_WATCH] =
		{"probing.watch", "PROBING_WATCH", "PROBE_TORCH_EXPRS", PRB_CONFIG_TEXT, NULL, 0, 0,
		 0, "with the next step", "Expressions whose values each step records",
		 "\"loss@train,acc1@train\": each probing.step(), or else each step of a "
		 "torch optimizer, writes the values to python.variables, and @ names the "
		 "function"},
};

/** The key of that name; PRB_CONFIG_KEYS if there is none. */
static inline enum prb_config_index prb_config_find(const char *name, size_t length)
{
	unsigned i = 0;

	while (i < PRB_CONFIG_KEYS && (strlen(prb_config_keys[i].name) != length ||
				       memcmp(prb_config_keys[i].name, name, length) != 0))
		i++;
	return (enum prb_config_index)i;
}

/** 1 for "", 1000 for "kB" or "k", 1024 for "KiB", …; 0 for anything else. */
static inline double prb_config_factor(const char *unit)
{
	static const char letters[] = "kMGT";
	double decimal = 1, binary = 1;

	if (!*unit || !strcmp(unit, "B"))
		return 1;
	for (const char *letter = letters; *letter; letter++) {
		decimal *= 1000;
		binary *= 1024;
		if ((*unit | 32) != (*letter | 32))
			continue;
		unit++;
		if (!*unit || !strcmp(unit, "B") || !strcmp(unit, "b"))
			return decimal;
		return !strcmp(unit, "iB") || !strcmp(unit, "ib") ? binary : 0;
	}
	return 0;
}

/** Reads a number in its bounds; false for anything else. */
static inline bool prb_config_parse(const struct prb_config_key *key, const char *text, double *ret)
{
	char *end;
	double value = strtod(text, &end), factor = 1;

	if (key->on > 0 && (!strcmp(text, "on") || !strcmp(text, "off"))) {
		*ret = text[1] == 'n' ? key->on : 0;
		return true;
	}
	if (end == text || key->type == PRB_CONFIG_TEXT)
		return false;
	if (key->type == PRB_CONFIG_SIZE) {
		while (*end == ' ')
			end++;
		factor = prb_config_factor(end);
	} else if (*end) {
		return false;
	}
	*ret = value * factor;
	return factor > 0 && *ret >= key->least && *ret <= key->most;
}

#endif
