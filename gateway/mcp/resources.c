/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "gateway/mcp/resources.h"

#include <string.h>

#include "base/cleanup.h"
#include "gateway/skills/skills.h"

static const char SKILL[] = "probing://skills/", PAGE[] = "probing://docs/",
		  TABLES[] = "probing://tables";

/* Pages of docs/. */
static const struct prb_skill pages[] = {
#include "gateway/mcp/pages.inc"
	{},
};

static void put(struct prb_json *json, const char *base, const char *name, const char *title,
		const char *media)
{
	prb_auto_str struct prb_str uri = {};

	prb_str_printf(&uri, "%s%s", base, name);
	prb_json_open(json, NULL, '{');
	prb_json_text(json, "uri", prb_str_text(&uri));
	prb_json_text(json, "name", *name ? name : "tables");
	prb_json_text(json, "title", title);
	prb_json_text(json, "mimeType", media);
	prb_json_close(json, '}');
}

static void put_all(struct prb_json *json, const char *base, const struct prb_skill *list)
{
	for (; list->name; list++) {
		prb_auto_str struct prb_str title = {};

		prb_skill_title(list, &title);
		put(json, base, list->name, prb_str_text(&title), "text/markdown");
	}
}

void prb_resources_list(struct prb_json *json)
{
	prb_json_open(json, "resources", '[');
	put_all(json, SKILL, prb_skills);
	put_all(json, PAGE, pages);
	put(json, TABLES, "", "All tables that 'query' can read", "text/plain");
	prb_json_close(json, ']');
}

void prb_resource_templates_list(struct prb_json *json)
{
	prb_json_open(json, "resourceTemplates", '[');
	prb_json_open(json, NULL, '{');
	prb_json_text(json, "uriTemplate", "probing://tables/{table}");
	prb_json_text(json, "name", "table");
	prb_json_text(json, "title", "Columns of a table, such as python.threads");
	prb_json_text(json, "mimeType", "text/plain");
	prb_json_close(json, '}');
	prb_json_close(json, ']');
}

static const char *find_text(const struct prb_skill *list, const char *name)
{
	for (; list->name; list++)
		if (!strcmp(list->name, name))
			return list->text;
	return NULL;
}

static bool is_table(const char *name)
{
	static const char LETTERS[] = "abcdefghijklmnopqrstuvwxyz0123456789_.";
	size_t length = strspn(name, LETTERS);

	return length && !name[length];
}

bool prb_resource_find(const char *uri, const char **text, struct prb_words *words)
{
	const char *table = uri + strlen(TABLES);
	struct prb_error *err;

	if (!strncmp(uri, SKILL, strlen(SKILL)))
		*text = find_text(prb_skills, uri + strlen(SKILL));
	else if (!strncmp(uri, PAGE, strlen(PAGE)))
		*text = find_text(pages, uri + strlen(PAGE));
	if (*text)
		return true;
	if (strncmp(uri, TABLES, strlen(TABLES)) != 0 ||
	    (*table && (*table != '/' || !is_table(table + 1))))
		return false;
	err = prb_words_add(words, "tables");
	if (!err && *table)
		err = prb_words_add(words, "%s", table + 1);
	if (err)
		prb_words_deinit(words);
	prb_error_destroy(err);
	return true;
}
