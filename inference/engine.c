/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads descriptions: lines of words, each of which adds one thing to the engine or its last part.
 */
#include "inference/engine.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "inference/engine_path.h"

static const char *const roles[] = {
	[PRB_ENGINE_FRONTEND] = "frontend",
	[PRB_ENGINE_SCHEDULER] = "scheduler",
	[PRB_ENGINE_WORKER] = "worker",
	[PRB_ENGINE_DETOKENIZER] = "detokenizer",
};
static const char *const activities[] = {[PRB_ENGINE_IDLE] = "idle",
					 [PRB_ENGINE_REPLY] = "reply",
					 [PRB_ENGINE_LOAD] = "load",
					 [PRB_ENGINE_STEP] = "step"};
static const char *const request_columns[] = {
	[PRB_REQUEST_ID] = "id",
	[PRB_REQUEST_STATE] = "state",
	[PRB_REQUEST_ARRIVAL] = "arrival",
	[PRB_REQUEST_PROMPT_TOKENS] = "prompt_tokens",
	[PRB_REQUEST_OUTPUT_TOKENS] = "output_tokens",
	[PRB_REQUEST_COMPUTED_TOKENS] = "computed_tokens",
	[PRB_REQUEST_PRIORITY] = "priority",
	[PRB_REQUEST_LORA] = "lora",
	[PRB_REQUEST_BLOCKS] = "blocks",
	[PRB_REQUEST_LAST_TOKEN] = "last_token",
};
static const char *const kv_columns[] = {[PRB_KV_TOTAL] = "total",
					 [PRB_KV_FREE] = "free",
					 [PRB_KV_CACHED] = "cached",
					 [PRB_KV_BLOCK_SIZE] = "block_size"};
static const char *const graph_columns[] = {
	[PRB_GRAPH_SIZES] = "sizes", [PRB_GRAPH_EAGER] = "eager"};

struct reading {
	struct prb_engine *engine;
	unsigned line;
};

const char *prb_engine_role_name(enum prb_engine_role role)
{
	return roles[role];
}

const char *prb_engine_activity_text(enum prb_engine_activity activity)
{
	static const char *const texts[] = {
		[PRB_ENGINE_IDLE] = "waits for work",
		[PRB_ENGINE_REPLY] = "waits for its workers",
		[PRB_ENGINE_LOAD] = "loads or compiles",
		[PRB_ENGINE_STEP] = "in a step",
	};

	return texts[activity];
}

static struct prb_error *wrong(const struct reading *r, const char *what, const char *word)
{
	return prb_error_hint(prb_error_create(PRB_ERROR_USAGE, "%s:%u: %s '%.60s'",
					       r->engine->file, r->line, what, word ? word : ""),
			      "docs/howto/add-server.md describes such files");
}

/** Cuts the first word off *rest; NULL if there is none. */
static char *next_word(char **rest)
{
	char *word = *rest + strspn(*rest, " ");
	size_t length = strcspn(word, " ");

	*rest = word + length;
	if (**rest)
		*(*rest)++ = '\0';
	*rest += strspn(*rest, " ");
	return length ? word : NULL;
}

/** The place of @p word in a list of names; false if it is not among them. */
static bool find_word(const char *const *names, size_t count, const char *word, size_t *ret)
{
	for (size_t i = 0; word && i < count; i++)
		if (names[i] && !strcmp(names[i], word)) {
			*ret = i;
			return true;
		}
	return false;
}

/** True if it is of letters, digits, "_" and the characters of @p more. */
static bool is_name(const char *text, const char *more)
{
	if (!text || !*text)
		return false;
	for (; *text; text++)
		if (!isalnum((unsigned char)*text) && *text != '_' && !strchr(more, *text))
			return false;
	return true;
}

static struct prb_error *copy_name(struct reading *r, const char *text, const char *more,
				   char **ret)
{
	return is_name(text, more) ? prb_str_copy(text, ret) : wrong(r, "not a name:", text);
}

static struct prb_error *add_path(struct reading *r, const char *text, struct prb_engine_path *ret)
{
	prb_auto_error struct prb_error *err = NULL;

	if (ret->text)
		return wrong(r, "said twice:", text);
	err = prb_engine_path_parse(text, ret);
	return err && err->code == PRB_ERROR_USAGE ? wrong(r, err->message, text) : prb_steal(&err);
}

static struct prb_error *add_part(struct reading *r, char *rest)
{
	char *word = next_word(&rest);
	struct prb_engine_part *part;
	size_t role;

	if (!find_word(roles, PRB_ARRAY_SIZE(roles), word, &role))
		return wrong(r, "not a role:", word);
	if (!*rest || r->engine->parts.count >= PRB_ENGINE_PARTS_MAX)
		return wrong(r, "no name, or too many parts:", rest);
	part = prb_vec_push(&r->engine->parts);
	if (!part)
		return prb_error_nomem();
	part->role = (enum prb_engine_role)role;
	return prb_str_copy(rest, &part->name);
}

static struct prb_error *add_root(struct reading *r, struct prb_engine_part *part, char *rest)
{
	const char *name = next_word(&rest);
	struct prb_engine_root *root;

	if (part->roots.count >= PRB_ENGINE_ROOTS_MAX)
		return wrong(r, "too many roots:", name);
	root = prb_vec_push(&part->roots);
	if (!root)
		return prb_error_nomem();
	PRB_TRY(copy_name(r, name, "", &root->name));
	if (strncmp(rest, "sys.modules[", strlen("sys.modules[")) != 0)
		return copy_name(r, rest, ".", &root->class);
	return prb_str_copy(rest, &root->path);
}

/** A container, and behind " item " the way from its items to what is meant. */
static struct prb_error *add_container(struct reading *r, struct prb_engine_queue *queue,
				       char *rest)
{
	char *item = strstr(rest, " item ");

	if (item) {
		*item = '\0';
		PRB_TRY(add_path(r, item + strlen(" item "), &queue->item));
	}
	return add_path(r, rest, &queue->path);
}

static struct prb_error *add_queue(struct reading *r, struct prb_engine_part *part, char *rest)
{
	const char *name = next_word(&rest);
	struct prb_engine_queue *queue = prb_vec_push(&part->queues);

	if (!queue)
		return prb_error_nomem();
	PRB_TRY(copy_name(r, name, "", &queue->name));
	return add_container(r, queue, rest);
}

static struct prb_error *add_rank(struct reading *r, struct prb_engine_part *part, char *rest)
{
	const char *letters = next_word(&rest);
	struct prb_engine_rank *rank = prb_vec_push(&part->ranks);

	if (!rank)
		return prb_error_nomem();
	PRB_TRY(copy_name(r, letters, "", &rank->letters));
	return add_path(r, rest, &rank->path);
}

static struct prb_error *add_place(struct reading *r, struct prb_engine_part *part,
				   enum prb_engine_activity activity, char *rest)
{
	struct prb_engine_place *place = prb_vec_push(&part->places);
	char *inner = strstr(rest, " > ");

	if (!place)
		return prb_error_nomem();
	place->activity = activity;
	if (inner) {
		*inner = '\0';
		PRB_TRY(copy_name(r, inner + strlen(" > "), ".<>", &place->inner));
	}
	return copy_name(r, rest, ".<>", &place->outer);
}

static struct prb_error *add_text(char **ret, const char *text)
{
	return ret ? prb_str_copy(text, ret) : prb_error_nomem();
}

/** A line with a column: "request id request_id". */
static struct prb_error *add_column(struct reading *r, char *rest, const char *const *names,
				    size_t count, struct prb_engine_path *columns)
{
	const char *word = next_word(&rest);
	size_t column;

	return find_word(names, count, word, &column) ? add_path(r, rest, &columns[column])
						      : wrong(r, "not a column:", word);
}

/** A place for one more text of the list of that word; *is_list: there is such a list. */
static char **text_place(struct prb_engine_part *part, const char *word, bool *is_list)
{
	*is_list = true;
	if (!strcmp(word, "title"))
		return prb_vec_push(&part->titles);
	if (!strcmp(word, "transfer"))
		return prb_vec_push(&part->transfer_states);
	if (!strcmp(word, "grammar"))
		return prb_vec_push(&part->grammar_states);
	if (!strcmp(word, "client"))
		return prb_vec_push(&part->client_states);
	if (!strcmp(word, "done"))
		return prb_vec_push(&part->done_states);
	if (!strcmp(word, "loop"))
		return prb_vec_push(&part->loops);
	if (!strcmp(word, "reader"))
		return prb_vec_push(&part->readers);
	*is_list = false;
	return NULL;
}

static struct prb_error *add_to_part(struct reading *r, struct prb_engine_part *part,
				     const char *word, char *rest)
{
	size_t activity;
	bool is_list;
	char **text = text_place(part, word, &is_list);

	if (is_list)
		return add_text(text, rest);
	if (find_word(activities, PRB_ARRAY_SIZE(activities), word, &activity))
		return add_place(r, part, (enum prb_engine_activity)activity, rest);
	if (!strcmp(word, "root"))
		return add_root(r, part, rest);
	if (!strcmp(word, "queue"))
		return add_queue(r, part, rest);
	if (!strcmp(word, "rank"))
		return add_rank(r, part, rest);
	if (!strcmp(word, "class"))
		return part->class ? wrong(r, "said twice:", word)
				   : copy_name(r, rest, ".", &part->class);
	if (!strcmp(word, "unit"))
		return part->unit ? wrong(r, "said twice:", word)
				  : copy_name(r, rest, "", &part->unit);
	if (!strcmp(word, "all"))
		return add_path(r, rest, &part->all);
	if (!strcmp(word, "limit"))
		return add_path(r, rest, &part->limit);
	if (!strcmp(word, "workers"))
		return add_container(r, &part->workers, rest);
	if (!strcmp(word, "paused"))
		return add_path(r, rest, &part->paused);
	if (!strcmp(word, "preempts"))
		return add_path(r, rest, &part->preempts);
	if (!strcmp(word, "peers"))
		return add_path(r, rest, &part->peers);
	if (!strcmp(word, "request"))
		return add_column(r, rest, request_columns, PRB_ARRAY_SIZE(request_columns),
				  part->request);
	if (!strcmp(word, "kv"))
		return add_column(r, rest, kv_columns, PRB_ARRAY_SIZE(kv_columns), part->kv);
	if (!strcmp(word, "graph"))
		return add_column(r, rest, graph_columns, PRB_ARRAY_SIZE(graph_columns),
				  part->graph);
	return wrong(r, "unknown word", word);
}

static struct prb_error *add_line(struct reading *r, char *line)
{
	struct prb_engine *engine = r->engine;
	const char *word = next_word(&line);
	char **text = NULL;

	if (!word || *word == '#')
		return NULL;
	if (!*line)
		return wrong(r, "nothing follows", word);
	if (!strcmp(word, "part"))
		return add_part(r, line);
	if (!strcmp(word, "engine"))
		text = &engine->name;
	else if (!strcmp(word, "module"))
		text = &engine->module;
	else if (!strcmp(word, "from"))
		text = &engine->from;
	else if (!strcmp(word, "before"))
		text = &engine->before;
	else if (!strcmp(word, "hosts"))
		text = &engine->hosts;
	else if (!strcmp(word, "below"))
		text = &engine->below;
	if (text && (*text || engine->parts.count))
		return wrong(r, "said twice, or after a part:", word);
	if (text)
		return copy_name(r, line, text == &engine->name ? " .-" : ".", text);
	if (!engine->parts.count)
		return wrong(r, "no part is before", word);
	return add_to_part(r, &engine->parts.items[engine->parts.count - 1], word, line);
}

/** What every description has to say. */
static struct prb_error *check(struct reading *r)
{
	struct prb_engine_part *part;

	if (!r->engine->name || !r->engine->module || !r->engine->parts.count)
		return wrong(r, "there have to be lines", "engine, module and part");
	prb_vec_each (part, &r->engine->parts) {
		if (!part->roots.count && !part->titles.count)
			return wrong(r, "no root and no title in part", part->name);
		if (part->queues.count && !part->request[PRB_REQUEST_ID].text)
			continue; /* its queues are counted, and no rows of requests */
	}
	return NULL;
}

static struct prb_error *read_lines(struct reading *r, const char *text, size_t length)
{
	for (size_t at = 0; at < length;) {
		const char *end = memchr(text + at, '\n', length - at);
		size_t size = end ? (size_t)(end - text) - at : length - at;
		prb_auto_free char *line = strndup(text + at, size);

		if (!line)
			return prb_error_nomem();
		at += size + 1;
		r->line++;
		line[strcspn(line, "\r")] = '\0';
		for (size_t i = 0; i < size; i++)
			if ((unsigned char)text[at - size - 1 + i] < ' ' &&
			    text[at - size - 1 + i] != '\r')
				return wrong(r, "a control character is in", "the line");
		if (r->line > PRB_ENGINE_LINES_MAX)
			return wrong(r, "too many", "lines");
		PRB_TRY(add_line(r, line));
	}
	return check(r);
}

struct prb_error *prb_engine_parse(const char *file, const char *text, size_t length,
				   struct prb_engine **ret)
{
	struct reading r = {.engine = calloc(1, sizeof(*r.engine))};
	struct prb_error *err = r.engine ? prb_str_copy(file, &r.engine->file) : prb_error_nomem();

	if (!err && length > PRB_ENGINE_FILE_MAX)
		err = prb_error_create(PRB_ERROR_USAGE, "%s: more than %d KiB", file,
				       PRB_ENGINE_FILE_MAX >> 10);
	if (!err)
		err = read_lines(&r, text, length);
	if (err)
		prb_engine_destroy(r.engine);
	else
		*ret = r.engine;
	return err;
}

static void end_paths(struct prb_engine_part *part)
{
	prb_engine_path_deinit(&part->all);
	prb_engine_path_deinit(&part->limit);
	prb_engine_path_deinit(&part->paused);
	prb_engine_path_deinit(&part->preempts);
	prb_engine_path_deinit(&part->peers);
}

static void end_texts(struct prb_engine_part *part)
{
	char **text;

	prb_vec_each (text, &part->titles)
		free(*text);
	prb_vec_each (text, &part->transfer_states)
		free(*text);
	prb_vec_each (text, &part->grammar_states)
		free(*text);
	prb_vec_each (text, &part->client_states)
		free(*text);
	prb_vec_each (text, &part->done_states)
		free(*text);
	prb_vec_each (text, &part->loops)
		free(*text);
	prb_vec_each (text, &part->readers)
		free(*text);
	prb_vec_free(&part->titles);
	prb_vec_free(&part->transfer_states);
	prb_vec_free(&part->grammar_states);
	prb_vec_free(&part->client_states);
	prb_vec_free(&part->done_states);
	prb_vec_free(&part->loops);
	prb_vec_free(&part->readers);
}

static void end_part(struct prb_engine_part *part)
{
	struct prb_engine_queue *queue;
	struct prb_engine_place *place;
	struct prb_engine_root *root;
	struct prb_engine_rank *rank;

	free(part->name);
	free(part->class);
	free(part->unit);
	prb_vec_each (root, &part->roots) {
		free(root->name);
		free(root->class);
		free(root->path);
	}
	prb_vec_each (rank, &part->ranks) {
		free(rank->letters);
		prb_engine_path_deinit(&rank->path);
	}
	prb_vec_each (place, &part->places) {
		free(place->outer);
		free(place->inner);
	}
	prb_vec_each (queue, &part->queues) {
		free(queue->name);
		prb_engine_path_deinit(&queue->path);
		prb_engine_path_deinit(&queue->item);
	}
	prb_vec_free(&part->roots);
	prb_vec_free(&part->ranks);
	prb_vec_free(&part->places);
	prb_vec_free(&part->queues);
	prb_engine_path_deinit(&part->workers.path);
	prb_engine_path_deinit(&part->workers.item);
	for (size_t i = 0; i < PRB_REQUEST_COLUMNS; i++)
		prb_engine_path_deinit(&part->request[i]);
	for (size_t i = 0; i < PRB_KV_COLUMNS; i++)
		prb_engine_path_deinit(&part->kv[i]);
	for (size_t i = 0; i < PRB_GRAPH_COLUMNS; i++)
		prb_engine_path_deinit(&part->graph[i]);
	end_paths(part);
	end_texts(part);
}

void prb_engine_destroy(struct prb_engine *engine)
{
	struct prb_engine_part *part;

	if (!engine)
		return;
	prb_vec_each (part, &engine->parts)
		end_part(part);
	prb_vec_free(&engine->parts);
	free(engine->file);
	free(engine->name);
	free(engine->module);
	free(engine->from);
	free(engine->before);
	free(engine->hosts);
	free(engine->below);
	free(engine);
}

/** The next number of a version; 0 at its end. */
static unsigned long next_number(const char **version)
{
	char *end = (char *)*version;
	unsigned long number = isdigit((unsigned char)*end) ? strtoul(*version, &end, 10) : 0;

	*version = *end == '.' ? end + 1 : end;
	return number;
}

static int compare_versions(const char *a, const char *b)
{
	for (unsigned i = 0; i < 3; i++) {
		unsigned long one = next_number(&a), other = next_number(&b);

		if (one != other)
			return one < other ? -1 : 1;
	}
	return 0;
}

size_t prb_engine_release(const char *version)
{
	size_t first = strspn(version, "0123456789");

	return version[first] == '.' ? first + 1 + strspn(version + first + 1, "0123456789")
				     : first;
}

bool prb_engine_takes(const struct prb_engine *engine, const char *version)
{
	/* A version of its own making, as of a development tree: its attributes decide. */
	if (!version || !isdigit((unsigned char)*version) || !strncmp(version, "0.0", 3))
		return true;
	return (!engine->from || compare_versions(version, engine->from) >= 0) &&
	       (!engine->before || compare_versions(version, engine->before) < 0);
}
