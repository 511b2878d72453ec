/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cluster/rows/rows.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cluster/jobs/rank_set.h"
#include "cluster/reach/relay.h"

enum { MAX_RANK = 1 << 20 };

/* Of each rank's environment: what says where it is. The first that is set counts. */
static const char ENVIRONMENT[] =
	"SELECT _rank, _pid, name, value FROM process.environ WHERE name IN ('LOCAL_RANK', "
	"'SLURM_LOCALID', 'OMPI_COMM_WORLD_LOCAL_RANK', 'GROUP_RANK', 'SLURM_NODEID', "
	"'OMPI_COMM_WORLD_NODE_RANK', 'ROLE_NAME', 'WORLD_SIZE', 'SLURM_NTASKS', "
	"'OMPI_COMM_WORLD_SIZE') UNION ALL SELECT _rank, _pid, '', '' FROM process.environ "
	"GROUP BY _rank, _pid";

struct place {
	long rank, pid, local_rank, node_rank;
	const char *role; /**< the document's */
	const char *host; /**< NULL: this machine */
};

struct row {
	json_t *value; /**< borrowed from a document */
	const char *host;
};

/** The result of a statement on all hosts. */
struct result {
	char *sql;
	PRB_VEC(struct row) rows;
};

struct prb_rows {
	struct prb_rows_options options;
	char host[256]; /**< name of this machine */
	PRB_VEC(json_t *) documents;
	PRB_VEC(struct result *) results;
	PRB_VEC(struct place) places;
	bool placed;
	long world_size;	/**< -1: unknown */
	struct prb_str missing; /**< a line for each host without an answer */
	struct prb_str asked;	/**< a line for each statement that the ranks ran */
	size_t hosts, answered;
};

struct prb_error *prb_rows_create(const struct prb_rows_options *options, struct prb_rows **ret)
{
	struct prb_rows *rows = calloc(1, sizeof(*rows));

	if (!rows)
		return prb_error_nomem();
	rows->options = *options;
	rows->world_size = -1;
	if (gethostname(rows->host, sizeof(rows->host) - 1))
		strcpy(rows->host, "localhost");
	*ret = rows;
	return NULL;
}

static void result_destroy(struct result *result)
{
	prb_vec_free(&result->rows);
	free(result->sql);
	free(result);
}

void prb_rows_destroy(struct prb_rows *rows)
{
	struct result **result;
	json_t **document;

	if (!rows)
		return;
	prb_vec_each (result, &rows->results)
		result_destroy(*result);
	prb_vec_each (document, &rows->documents)
		json_decref(*document);
	prb_vec_free(&rows->results);
	prb_vec_free(&rows->documents);
	prb_vec_free(&rows->places);
	prb_str_deinit(&rows->missing);
	prb_str_deinit(&rows->asked);
	free(rows);
}

static struct prb_error *add_answer(struct prb_rows *rows, struct prb_answers *answers,
				    const char *host, const char *const *words)
{
	struct prb_answer *answer = prb_answers_add(answers, host);

	if (!answer)
		return prb_error_nomem();
	if (host)
		return prb_reach_ask(rows->options.reach, answer, words);
	answer->itself = true;
	PRB_TRY(prb_words_add(&answer->words, "probing"));
	return prb_words_add_ours(&answer->words, words);
}

static struct prb_error *ask(struct prb_rows *rows, const char *sql, struct prb_answers *answers)
{
	const struct prb_rows_options *o = &rows->options;
	const char *words[] = {"cluster", "rows", "--json", sql, o->job, NULL};
	const struct prb_gather_options options = {.deadline_s = o->deadline_s};
	prb_auto_free char *step =
		o->reach->slurm && !o->job ? prb_format("slurm:%s", o->reach->slurm) : NULL;
	char *const *host;

	if (o->reach->slurm && !o->job && !step)
		return prb_error_nomem();
	if (step)
		words[4] = step;
	if (!o->hosts->list.count)
		PRB_TRY(add_answer(rows, answers, NULL, words));
	prb_vec_each (host, &o->hosts->list)
		PRB_TRY(add_answer(rows, answers, *host, words));
	return o->tree ? prb_relay_gather(o->reach, words, answers, &options)
		       : prb_gather(answers, &options);
}

static struct prb_error *lack(struct prb_rows *rows, const struct prb_answer *answer,
			      const char *why)
{
	prb_auto_str struct prb_str line = {};

	prb_text_escape(&line, answer->host ? answer->host : rows->host);
	prb_str_puts(&line, ": ");
	prb_text_escape(&line, why);
	if (rows->options.strict)
		return prb_error_hint(prb_error_create(PRB_ERROR_FAILED, "%s", prb_str_text(&line)),
				      "without --strict the others' rows are shown");
	prb_str_putc(&line, '\n');
	/* Each once, whatever was asked. */
	if (!rows->missing.data || !strstr(rows->missing.data, prb_str_text(&line)))
		prb_str_append(&rows->missing, line.data, line.length);
	return NULL;
}

/** Keeps the rows of one host. Some of its ranks may be lost: then there are rows and an error. */
static struct prb_error *take(struct prb_rows *rows, struct prb_answer *answer,
			      struct result *result)
{
	json_t *document = json_loadb(answer->out.data ? answer->out.data : "", answer->out.length,
				      JSON_REJECT_DUPLICATES, NULL);
	json_t **kept, *value;
	size_t i;

	if (answer->error || !json_is_array(document))
		PRB_TRY(lack(rows, answer,
			     answer->error ? answer->error
					   : "its answer cannot be understood: another version?"));
	if (!json_is_array(document)) {
		json_decref(document);
		return NULL;
	}
	kept = prb_vec_push(&rows->documents);
	if (!kept) {
		json_decref(document);
		return prb_error_nomem();
	}
	*kept = document;
	rows->answered++;
	json_array_foreach(document, i, value)
	{
		struct row *row = prb_vec_push(&result->rows);

		if (!row)
			return prb_error_nomem();
		*row = (struct row){value, answer->host};
	}
	return NULL;
}

static struct prb_error *fetch(struct prb_rows *rows, const char *sql, struct result **ret)
{
	prb_auto_answers struct prb_answers answers = {};
	struct result **place, *result;
	struct prb_answer *answer;
	size_t bytes = 0;

	prb_vec_each (place, &rows->results)
		if (!strcmp((*place)->sql, sql)) {
			*ret = *place;
			return NULL;
		}
	result = calloc(1, sizeof(*result));
	place = result ? prb_vec_push(&rows->results) : NULL;
	if (!place) {
		free(result);
		return prb_error_nomem();
	}
	*place = *ret = result;
	PRB_TRY(prb_str_copy(sql, &result->sql));
	PRB_TRY(ask(rows, sql, &answers));
	rows->hosts = answers.list.count;
	rows->answered = 0;
	prb_vec_each (answer, &answers.list) {
		bytes += answer->out.length;
		PRB_TRY(take(rows, answer, result));
	}
	if (rows->placed)
		prb_str_printf(&rows->asked, "each ran: %s\n%zu row%s came, %zu bytes\n", sql,
			       result->rows.count, result->rows.count == 1 ? "" : "s", bytes);
	return NULL;
}

static long integer_of(const json_t *row, const char *key)
{
	const json_t *value = json_object_get(row, key);

	return json_is_integer(value) ? (long)json_integer_value(value) : -1;
}

static int same_host(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static struct place *find_place(const struct prb_rows *rows, const char *host, long pid)
{
	struct place *place;

	prb_vec_each (place, &rows->places)
		if (place->pid == pid && same_host(place->host, host))
			return place;
	return NULL;
}

static bool is_one_of(const char *name, const char *const *names)
{
	for (; *names; names++)
		if (!strcmp(*names, name))
			return true;
	return false;
}

static void note_variable(struct prb_rows *rows, struct place *place, const char *name,
			  const char *value)
{
	static const char *const locals[] = {"LOCAL_RANK", "SLURM_LOCALID",
					     "OMPI_COMM_WORLD_LOCAL_RANK", NULL},
				 *const nodes[] = {"GROUP_RANK", "SLURM_NODEID",
						   "OMPI_COMM_WORLD_NODE_RANK", NULL},
				 *const sizes[] = {"WORLD_SIZE", "SLURM_NTASKS",
						   "OMPI_COMM_WORLD_SIZE", NULL};
	char *end;
	long number = strtol(value, &end, 10);
	bool is_number = *value && !*end && number >= 0 && number <= MAX_RANK;

	if (!strcmp(name, "ROLE_NAME"))
		place->role = value;
	else if (is_number && place->local_rank < 0 && is_one_of(name, locals))
		place->local_rank = number;
	else if (is_number && place->node_rank < 0 && is_one_of(name, nodes))
		place->node_rank = number;
	else if (is_number && is_one_of(name, sizes) && rows->world_size < number)
		rows->world_size = number;
}

static struct prb_error *find_places(struct prb_rows *rows)
{
	struct result *result;
	const struct row *row;

	if (rows->placed)
		return NULL;
	PRB_TRY(fetch(rows, ENVIRONMENT, &result));
	rows->placed = true;
	prb_vec_each (row, &result->rows) {
		long pid = integer_of(row->value, "_pid");
		struct place *place = find_place(rows, row->host, pid);
		const char *name = json_string_value(json_object_get(row->value, "name"));
		const char *value = json_string_value(json_object_get(row->value, "value"));

		if (!place) {
			place = prb_vec_push(&rows->places);
			if (!place)
				return prb_error_nomem();
			*place = (struct place){
				integer_of(row->value, "_rank"), pid, -1, -1, NULL, row->host};
		}
		if (name && value)
			note_variable(rows, place, name, value);
	}
	if (rows->options.strict && rows->world_size > (long)rows->places.count)
		return prb_error_hint(prb_error_create(PRB_ERROR_FAILED,
						       "%zu of %ld ranks answered",
						       rows->places.count, rows->world_size),
				      "without --strict their rows are shown");
	return NULL;
}

/** Appends the conditions that each rank can test. */
static void put_conditions(const struct prb_global_ask *ask, const struct prb_scan *scan,
			   struct prb_str *sql)
{
	const char *before = " WHERE ";

	/* All that the statement says, or what is compared with constants. */
	if (ask->where) {
		prb_str_printf(sql, " WHERE (%s)", ask->where);
		return;
	}
	for (unsigned n = 0;; n++) {
		prb_auto_str struct prb_str condition = {};

		if (!prb_scan_condition(scan, n, &condition))
			return;
		if (!condition.length)
			continue;
		prb_str_printf(sql, "%s%s", before, prb_str_text(&condition));
		before = " AND ";
	}
}

static struct prb_error *make_sql(const struct prb_global_ask *ask, const struct prb_scan *scan,
				  char **ret)
{
	const struct prb_table *own = ask->own;
	unsigned own_count = ask->own_count;
	prb_auto_str struct prb_str sql = {};

	if (ask->sql)
		return prb_str_copy(ask->sql, ret);
	prb_str_puts(&sql, "SELECT _rank, _pid");
	for (unsigned i = 0; i < own_count; i++)
		if (prb_scan_wants(scan, i) && !(own->columns[i].flags & PRB_COLUMN_HIDDEN))
			prb_str_printf(&sql, ", \"%s\"", own->columns[i].name);
	prb_str_printf(&sql, " FROM %s.%s", own->schema, own->name);
	put_conditions(ask, scan, &sql);
	if (ask->limit >= 0)
		prb_str_printf(&sql, " LIMIT %lld", (long long)ask->limit);
	*ret = prb_str_take(&sql);
	return *ret ? NULL : prb_error_nomem();
}

static void put_cell(struct prb_scan *scan, unsigned column, const json_t *value)
{
	if (json_is_integer(value))
		prb_put_integer(scan, column, json_integer_value(value));
	else if (json_is_real(value))
		prb_put_real(scan, column, json_real_value(value));
	else if (json_is_string(value))
		prb_put_bytes(scan, column, json_string_value(value), json_string_length(value));
	else if (json_is_boolean(value))
		prb_put_integer(scan, column, json_is_true(value));
}

static void put_place(const struct prb_rows *rows, struct prb_scan *scan, unsigned first,
		      const struct row *row)
{
	long pid = integer_of(row->value, "_pid");
	const struct place *place = find_place(rows, row->host, pid);

	prb_put_text(scan, first + PRB_PLACE_HOST, row->host ? row->host : rows->host);
	if (row->host && prb_reach_is_served(row->host))
		prb_put_text(scan, first + PRB_PLACE_ADDRESS, row->host);
	else if (row->host)
		prb_put_format(scan, first + PRB_PLACE_ADDRESS, "ssh://%s/%ld", row->host, pid);
	else
		prb_put_format(scan, first + PRB_PLACE_ADDRESS, "%ld", pid);
	prb_put_natural(scan, first + PRB_PLACE_RANK, integer_of(row->value, "_rank"));
	prb_put_natural(scan, first + PRB_PLACE_PID, pid);
	if (!place)
		return;
	prb_put_natural(scan, first + PRB_PLACE_LOCAL_RANK, place->local_rank);
	prb_put_natural(scan, first + PRB_PLACE_NODE_RANK, place->node_rank);
	prb_put_text(scan, first + PRB_PLACE_ROLE, place->role);
}

struct prb_error *prb_rows_read(void *context, const struct prb_global_ask *ask,
				struct prb_scan *scan)
{
	unsigned own_count = ask->own_count;
	struct prb_rows *rows = context;
	prb_auto_free char *sql = NULL;
	struct result *result;

	PRB_TRY(find_places(rows));
	PRB_TRY(make_sql(ask, scan, &sql));
	PRB_TRY(fetch(rows, sql, &result));
	while (scan->position < result->rows.count && !prb_scan_full(scan)) {
		const struct row *row = &result->rows.items[scan->position++];

		PRB_TRY(prb_scan_row(scan));
		for (unsigned i = 0; i < own_count; i++)
			put_cell(scan, i, json_object_get(row->value, ask->own->columns[i].name));
		put_place(rows, scan, own_count, row);
	}
	scan->more = scan->position < result->rows.count;
	return NULL;
}

static int by_number(const void *a, const void *b)
{
	const long *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

void prb_rows_receipt(const struct prb_rows *rows, struct prb_str *s)
{
	struct prb_rank_set set = {};
	const struct place *place;

	if (!rows->placed)
		return;
	prb_vec_each (place, &rows->places) {
		long *slot = place->rank >= 0 ? prb_vec_push(&set.list) : NULL;

		if (slot)
			*slot = place->rank;
	}
	if (set.list.count)
		qsort(set.list.items, set.list.count, sizeof(*set.list.items), by_number);
	prb_str_printf(s, "%zu of ", set.list.count);
	if (rows->world_size >= 0)
		prb_str_printf(s, "%ld", rows->world_size);
	else
		prb_str_putc(s, '?');
	prb_str_puts(s, " ranks answered: ");
	if (set.list.count)
		prb_rank_set_text(s, &set);
	else
		prb_str_puts(s, "none");
	prb_str_putc(s, '\n');
	prb_str_puts(s, prb_str_text(&rows->missing));
	prb_str_puts(s, prb_str_text(&rows->asked));
	prb_vec_free(&set.list);
}
