/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/commands/memory/history/history.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/new_file.h"
#include "base/text.h"
#include "cli/commands/perf/torch/asking.h"
#include "control/eval.h"
#include "control/load.h"
#include "profile/formats/format.h"

enum { MOST_MIB = 1024, BYTES_WIDTH = 11, COUNT_WIDTH = 9, MOST_FIELDS = 6 };

/** Seconds: to record without a word of the user's; that the process may take to send it. */
static const double DEFAULT_SECONDS = 10, SEND_SECONDS = 120;

/** The first line of the answer. */
struct head {
	long long events, full, took, own; /**< of all GPUs; more were lost; µs; 0: it goes on */
};

struct taker {
	struct prb_str out, err;
};

static void taker_deinit(struct taker *t)
{
	prb_str_deinit(&t->out);
	prb_str_deinit(&t->err);
}

static struct prb_error *take(void *context, enum prb_wire_type what, const void *data,
			      size_t length)
{
	struct taker *t = context;
	struct prb_str *to = what == PRB_WIRE_STDOUT ? &t->out : &t->err;

	if (to->length + length > (size_t)MOST_MIB << 20)
		return prb_error_create(PRB_ERROR_FAILED, "the history has more than %d MiB",
					MOST_MIB);
	prb_str_append(to, data, length);
	return to->failed ? prb_error_nomem() : NULL;
}

static struct prb_error *ask(struct prb_target *target, struct prb_agent *agent, double seconds,
			     struct taker *t)
{
	struct prb_eval how = {.lasts = seconds + SEND_SECONDS, .put = take, .context = t};
	struct prb_eval_result result = {};
	prb_auto_str struct prb_str code = {};
	struct prb_error *err;

	prb_str_printf(&code, "history\n%.3f", seconds);
	err = prb_torch_ask(target, agent, &how, &code, "recording GPU memory",
			    " and shows what there is", &result);
	if (!err && result.outcome == PRB_WIRE_RAISED && t->err.length)
		err = prb_torch_refusal(&t->err, "GPU memory cannot be recorded",
					"memory without this option shows tensors of the CPU, too");
	else if (!err)
		err = prb_eval_judge(target, target->pid, &how, &result);
	prb_eval_result_deinit(&result);
	return err;
}

static struct prb_error *record(struct prb_target *target, double seconds, struct taker *t)
{
	struct prb_agent *agent = NULL;
	struct prb_error *err;

	PRB_TRY(prb_agent_reach(target, true, &agent));
	err = prb_agent_requires(agent, PRB_WIRE_CAN_HISTORY, "record GPU memory");
	if (!err)
		err = ask(target, agent, seconds, t);
	prb_agent_close(agent);
	return err;
}

/** Between lines and the file there is an empty line; *text: the lines, which end with a NUL. */
static struct prb_error *split(struct prb_str *out, struct head *head, char **text,
			       const char **file)
{
	static const char end[] = "\n\n";
	char *at = out->length ? memmem(out->data, out->length, end, strlen(end)) : NULL;

	if (at) {
		at[1] = 0;
		*file = at + strlen(end);
		*text = strchr(out->data, '\n') + 1;
	}
	if (!at || memchr(out->data, 0, (size_t)(at - out->data)) ||
	    sscanf(out->data, "%lld %lld %lld %lld\n", &head->events, &head->full, &head->took,
		   &head->own) != 4)
		return prb_error_create(PRB_ERROR_BAD_DATA, "the agent's answer is not understood");
	return NULL;
}

/** Tabs part the fields; missing ones are "". */
static void cut(char *line, char *fields[MOST_FIELDS])
{
	static char none[] = "";

	for (unsigned i = 0; i < MOST_FIELDS; i++) {
		char *tab = strchr(line, '\t');

		fields[i] = line;
		line = tab ? tab + 1 : none;
		if (tab)
			*tab = 0;
	}
}

static double number(const char *text)
{
	double value = strtod(text, NULL);

	return value >= 0 && value < 1e18 ? value : 0;
}

/** A line of text for one of the agent's: a GPU, or a place where it was allocated. */
static void put_line(char *fields[MOST_FIELDS], struct prb_str *s)
{
	prb_auto_str struct prb_str size = {}, count = {};

	if (*fields[0]) {
		prb_str_printf(s, "\nGPU %.0f: at most ", number(fields[0]));
		prb_text_bytes(s, number(fields[1]));
		prb_str_printf(s, " at once, in %.0f blocks\n", number(fields[2]));
		prb_str_puts(s, "      bytes   blocks  allocated in\n");
		return;
	}
	prb_text_bytes(&size, number(fields[1]));
	prb_memory_put_count(&count, (int64_t)number(fields[2]));
	prb_text_right(s, prb_str_text(&size), BYTES_WIDTH);
	prb_text_right(s, prb_str_text(&count), COUNT_WIDTH);
	prb_str_puts(s, "  ");
	prb_text_escape(s, fields[4]);
	if (*fields[5]) {
		prb_str_puts(s, " (");
		prb_text_escape(s, fields[5]);
		prb_str_printf(s, ":%.0f)", number(fields[3]));
	}
	prb_str_putc(s, '\n');
}

static void put_lines(char *text, int rows, struct prb_str *s)
{
	char *fields[MOST_FIELDS], *end;
	int shown = 0;

	for (; *text; text = end + 1) {
		end = strchr(text, '\n');
		if (!end)
			return;
		*end = 0;
		cut(text, fields);
		shown = *fields[0] ? 0 : shown + 1;
		if (shown <= rows)
			put_line(fields, s);
	}
}

static void put_json_lines(char *text, struct prb_json *json)
{
	char *fields[MOST_FIELDS], *end;
	bool open = false;

	prb_json_open(json, "gpus", '[');
	for (; *text && (end = strchr(text, '\n')) != NULL; text = end + 1) {
		*end = 0;
		cut(text, fields);
		if (*fields[0]) {
			if (open) {
				prb_json_close(json, ']');
				prb_json_close(json, '}');
			}
			prb_json_open(json, NULL, '{');
			prb_json_integer(json, "gpu", (int64_t)number(fields[0]));
			prb_json_integer(json, "peak_bytes", (int64_t)number(fields[1]));
			prb_json_integer(json, "peak_blocks", (int64_t)number(fields[2]));
			prb_json_open(json, "places", '[');
			open = true;
		} else if (open) {
			prb_json_open(json, NULL, '{');
			prb_json_integer(json, "bytes", (int64_t)number(fields[1]));
			prb_json_integer(json, "blocks", (int64_t)number(fields[2]));
			prb_json_text(json, "function", fields[4]);
			prb_json_text(json, "file", *fields[5] ? fields[5] : NULL);
			prb_json_integer(json, "lineno", (int64_t)number(fields[3]));
			prb_json_close(json, '}');
		}
	}
	if (open) {
		prb_json_close(json, ']');
		prb_json_close(json, '}');
	}
	prb_json_close(json, ']');
}

static void put_text(const struct prb_memory_settings *s, const struct head *head, char *text,
		     struct prb_str *out)
{
	prb_text_escape(out, s->snapshot_gpu);
	prb_str_puts(out, ": ");
	prb_memory_put_count(out, head->events);
	prb_str_printf(out, " events%s, for https://pytorch.org/memory_viz\n",
		       head->full ? ", the last ones" : "");
	if (!head->own)
		prb_str_puts(out, "the program records its history itself, which goes on\n");
	prb_str_puts(out, "cost: making the snapshot took ");
	prb_text_duration(out, (double)head->took / 1e6);
	prb_str_putc(out, '\n');
	put_lines(text, s->rows, out);
}

static void put_json(const struct prb_target *target, const struct prb_memory_settings *s,
		     const struct head *head, char *text, struct prb_str *out)
{
	struct prb_json json = {.out = out};

	prb_json_open(&json, NULL, '{');
	prb_json_integer(&json, "pid", target->pid);
	prb_json_text(&json, "file", s->snapshot_gpu);
	prb_json_integer(&json, "events", head->events);
	prb_json_bool(&json, "events_lost", head->full > 0);
	prb_json_bool(&json, "records_itself", !head->own);
	prb_json_integer(&json, "snapshot_us", head->took);
	put_json_lines(text, &json);
	prb_json_close(&json, '}');
	prb_str_putc(out, '\n');
}

struct prb_error *prb_memory_history(struct prb_target *target, const struct prb_memory_settings *s,
				     struct prb_str *out)
{
	prb_auto_new_file struct prb_new_file file = PRB_NO_FILE;
	__attribute__((cleanup(taker_deinit))) struct taker t = {};
	struct prb_sink sink = {.path = s->snapshot_gpu};
	struct head head = {};
	const char *data;
	char *text;

	if (!target->live)
		return prb_error_create(PRB_ERROR_UNSUPPORTED,
					"--snapshot-gpu needs a process that runs; this is a %s",
					prb_target_kind_name(target->kind));
	PRB_TRY(prb_new_file_open(&file, s->snapshot_gpu));
	PRB_TRY(record(target, s->duration > 0 ? s->duration : DEFAULT_SECONDS, &t));
	PRB_TRY(split(&t.out, &head, &text, &data));
	sink.fd = file.fd;
	sink.text = (struct prb_str){};
	prb_str_append(&sink.text, data, t.out.length - (size_t)(data - t.out.data));
	struct prb_error *err = prb_sink_flush(&sink, true);

	prb_str_deinit(&sink.text);
	PRB_TRY(err);
	PRB_TRY(prb_new_file_finish(&file));
	if (s->json)
		put_json(target, s, &head, text, out);
	else
		put_text(s, &head, text, out);
	return out->failed ? prb_error_nomem() : NULL;
}
