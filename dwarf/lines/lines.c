/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "dwarf/lines/lines.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/str.h"
#include "base/jail.h"
#include "dwarf/cache/cache.h"
#include "dwarf/lines/demangle.h"
#include "dwarf/lines/line_source.h"
#include "dwarf/lines/record.h"
#include "dwarf/lines/runs.h"
#include "target/architecture.h"

/* The open files of a module. */
struct file {
	struct prb_module *module;
	struct prb_cache *cache;
	int *patience;			/* of the resolver */
	struct prb_line_source *source; /* NULL: none, or not tried yet */
	bool tried_source;
	char *trouble; /* why the source is of no use, or NULL */
};

struct prb_resolver {
	struct prb_modules *modules;
	PRB_VEC(struct file) files;
	size_t last;  /* index of the file asked for last: stacks stay in one for a while */
	int patience; /* milliseconds that parsers of hostile files may still take */
};

struct prb_error *prb_resolver_create(struct prb_modules *modules, struct prb_resolver **ret)
{
	struct prb_resolver *resolver = calloc(1, sizeof(*resolver));

	if (!resolver)
		return prb_error_nomem();
	resolver->modules = modules;
	resolver->patience = PRB_JAIL_PATIENCE;
	*ret = resolver;
	return NULL;
}

void prb_resolver_destroy(struct prb_resolver *resolver)
{
	struct file *file;

	if (!resolver)
		return;
	prb_vec_each (file, &resolver->files) {
		prb_cache_close(file->cache);
		prb_line_source_close(file->source);
		free(file->trouble);
	}
	prb_vec_free(&resolver->files);
	free(resolver);
}

static struct prb_error *file_of(struct prb_resolver *resolver, struct prb_module *module,
				 struct file **ret)
{
	prb_auto_str struct prb_str id = {};
	struct file *file;

	if (resolver->last < resolver->files.count &&
	    resolver->files.items[resolver->last].module == module) {
		*ret = &resolver->files.items[resolver->last];
		return NULL;
	}
	prb_vec_each (file, &resolver->files)
		if (file->module == module)
			goto found;

	struct prb_cache *cache;
	PRB_TRY(prb_module_cache_id(module, &id));
	PRB_TRY(prb_cache_open(prb_str_text(&id), "lines", &cache));
	file = prb_vec_push(&resolver->files);
	if (!file) {
		prb_cache_close(cache);
		return prb_error_nomem();
	}
	file->module = module;
	file->cache = cache;
	file->patience = &resolver->patience;
found:
	resolver->last = (size_t)(file - resolver->files.items);
	*ret = file;
	return NULL;
}

/* The line information of the module's file or separate debug file; NULL if there is none. */
static struct prb_line_source *source_of(struct file *file)
{
	struct prb_elf *debug;

	if (file->tried_source)
		return file->source;
	file->tried_source = true;

	prb_auto_error struct prb_error *err = prb_module_debug(file->module, &debug);
	if (!err)
		err = prb_line_source_open(debug, file->module->target->machine, file->patience,
					   &file->source);
	if (err)
		prb_log("lines", 2, "no lines of %s: %s", file->module->path, err->message);
	return file->source;
}

/* Goes on without the source, unless it is memory that is missing; ends the error. */
static struct prb_error *give_up(struct file *file, struct prb_error *err)
{
	if (!err || err->code == PRB_ERROR_NOMEM)
		return err;
	prb_log("lines", 1, "no lines of %s: %s", file->module->path, err->message);
	prb_line_source_close(file->source);
	file->source = NULL;
	file->trouble = prb_format("%s", err->message);
	prb_error_destroy(err);
	return file->trouble ? NULL : prb_error_nomem();
}

/* glibc's own calls go to hidden aliases, which no programmer has ever heard of. */
static bool is_hidden_alias(const char *func)
{
	return !strncmp(func, "__GI_", 5);
}

static struct prb_error *set_symbol(struct prb_lines *lines, const char *symbol)
{
	struct prb_line *line;

	prb_vec_each (line, &lines->list) {
		line->symbol = strdup(symbol);
		if (!line->symbol)
			return prb_error_nomem();
	}

	struct prb_line *real = &lines->list.items[lines->list.count - 1];
	if (!real->func || is_hidden_alias(real->func)) {
		free(real->func);
		real->func = prb_demangle(symbol);
		if (!real->func)
			real->func = strdup(symbol);
		if (!real->func)
			return prb_error_nomem();
	}
	return NULL;
}

static struct prb_error *compute(struct file *file, uint64_t offset, struct prb_lines *ret)
{
	struct prb_line_source *source = source_of(file);

	if (source)
		PRB_TRY(give_up(file, prb_line_source_find(source, offset, ret)));
	if (file->trouble)
		prb_lines_deinit(ret);
	ret->trouble = file->trouble;
	if (ret->list.count == 0 && !prb_vec_push(&ret->list))
		return prb_error_nomem();

	prb_auto_str struct prb_str symbol = {};
	prb_auto_error struct prb_error *err =
		prb_module_symbol_at(file->module, offset + file->module->bias, &symbol, NULL);
	if (err)
		prb_log("lines", 3, "%s+%#llx: %s", file->module->path, (unsigned long long)offset,
			err->message);
	else
		PRB_TRY(set_symbol(ret, prb_str_text(&symbol)));
	return NULL;
}

/*
 * An answer that was found without line information holds only until there is some: a package
 * with debug files can be installed at any time.
 */
static bool is_good(struct file *file, const struct prb_lines *lines, bool had_table)
{
	return lines->list.count > 0 && (had_table || !source_of(file));
}

static bool from_cache(struct file *file, uint64_t offset, struct prb_lines *ret)
{
	const void *value;
	size_t length;
	bool had_table;

	if (!prb_cache_get(file->cache, &offset, sizeof(offset), &value, &length))
		return false;
	if (prb_line_record_decode(value, length, ret, &had_table) &&
	    is_good(file, ret, had_table)) {
		ret->trouble = had_table ? NULL : file->trouble;
		return true;
	}
	prb_lines_deinit(ret);
	return false;
}

enum { MAX_FUNCTION = 16 << 10 /* bytes of a function that is resolved whole */ };

/* Key of a function's runs in the cache; single addresses have plain offsets for keys. */
struct function_key {
	uint64_t start;
	char kind;
} __attribute__((packed));

/* The function that covers @p offset: start in the file's own addresses, and name, which is
 * appended; false if none is known. */
static bool function_at(struct file *file, uint64_t offset, uint64_t *start, struct prb_str *name)
{
	uint64_t bias = file->module->bias;
	prb_auto_error struct prb_error *err =
		prb_module_symbol_at(file->module, offset + bias, name, start);

	*start -= err ? 0 : bias;
	return !err;
}

static bool from_function(struct file *file, uint64_t offset, struct prb_lines *ret)
{
	prb_auto_str struct prb_str name = {};
	const void *runs, *record;
	uint64_t start = 0;
	size_t length;
	bool had_table;

	if (!function_at(file, offset, &start, &name))
		return false;

	struct function_key key = {start, 'F'};
	if (!prb_cache_get(file->cache, &key, sizeof(key), &runs, &length) ||
	    !prb_line_runs_find(runs, length, offset - start, &record, &length))
		return false;
	if (prb_line_record_decode(record, length, ret, &had_table) && ret->list.count)
		return true;
	prb_lines_deinit(ret);
	return false;
}

static bool is_in_function(struct file *file, uint64_t offset, uint64_t start)
{
	prb_auto_str struct prb_str name = {};
	uint64_t other = 0;

	return function_at(file, offset, &other, &name) && other == start;
}

/* Bytes of the function that lie in front of the next one. */
static uint32_t function_size(struct file *file, uint64_t start)
{
	uint32_t size = 0, step = 64;

	/* Whole steps first, then the last one byte by byte. */
	while (step && size < MAX_FUNCTION) {
		if (is_in_function(file, start + size + step - 1, start))
			size += step;
		else
			step = step == 64 ? 1 : 0;
	}
	return size;
}

/* Puts the name of the function's symbol into the record of one of its runs. */
static struct prb_error *name_record(void *context, const void *record, size_t length,
				     struct prb_str *ret)
{
	const struct prb_str *symbol = context;
	struct prb_lines lines = {};
	struct prb_error *err = NULL;

	if (!prb_line_record_decode_unnamed(record, length, &lines))
		err = prb_error_create(PRB_ERROR_BAD_DATA, "the line of an address makes no sense");
	if (!err)
		err = set_symbol(&lines, prb_str_text(symbol));
	if (!err)
		prb_line_record_encode(&lines, true, ret);
	prb_lines_deinit(&lines);
	return err;
}

/* A function that was caught executing will be again, at another of its instructions. */
static struct prb_error *keep_function(struct file *file, uint64_t offset)
{
	const struct prb_architecture *machine =
		prb_architecture_find(file->module->target->machine);
	const uint32_t step = machine ? machine->instruction : 1;
	prb_auto_str struct prb_str plain = {}, runs = {}, name = {};
	uint64_t start = 0;

	if (!file->source || !prb_module_may_keep(file->module) ||
	    !function_at(file, offset, &start, &name))
		return NULL;

	uint32_t size = function_size(file, start);
	struct prb_error *err = prb_line_source_runs(file->source, start, size, step, &plain);
	if (!err && plain.length)
		err = prb_line_runs_change(plain.data, plain.length, size, name_record, &name,
					   &runs);
	PRB_TRY(give_up(file, err));

	struct function_key key = {start, 'F'};
	if (!file->trouble && runs.length)
		prb_cache_put(file->cache, &key, sizeof(key), runs.data, runs.length);
	return NULL;
}

static char *fact_key(struct prb_module *module, uint64_t offset)
{
	const char *id = prb_module_build_id(module);

	return prb_format("pc:%s:%llx", *id ? id : module->path, (unsigned long long)offset);
}

static bool from_snapshot(struct prb_target *target, const char *key, struct prb_lines *ret)
{
	prb_auto_str struct prb_str value = {};
	bool had_table;

	if (!prb_target_recall(target, key, &value))
		return false;
	if (prb_line_record_decode(value.data, value.length, ret, &had_table))
		return true;
	prb_lines_deinit(ret);
	return false;
}

static struct prb_error *resolve(struct file *file, uint64_t offset, bool exact,
				 struct prb_lines *ret)
{
	struct prb_target *target = file->module->target;
	prb_auto_free char *key = fact_key(file->module, offset);
	prb_auto_str struct prb_str record = {};

	if (!key)
		return prb_error_nomem();
	if (from_snapshot(target, key, ret))
		return NULL;

	bool cached = from_cache(file, offset, ret) || (exact && from_function(file, offset, ret));
	if (!cached)
		PRB_TRY(compute(file, offset, ret));
	if (!cached && exact)
		PRB_TRY(keep_function(file, offset));
	if (cached && !prb_target_is_recorded(target))
		return NULL;
	prb_line_record_encode(ret, file->source != NULL, &record);
	if (record.failed)
		return prb_error_nomem();
	if (!cached && !file->trouble && prb_module_may_keep(file->module))
		prb_cache_put(file->cache, &offset, sizeof(offset), record.data, record.length);
	prb_target_remember(target, key, record.data, record.length);
	return NULL;
}

struct prb_error *prb_resolve(struct prb_resolver *resolver, uint64_t pc, bool exact,
			      struct prb_lines *ret)
{
	struct prb_module *module = prb_modules_find(resolver->modules, pc);
	struct file *file;

	*ret = (struct prb_lines){};
	if (!module)
		return NULL;
	PRB_TRY(file_of(resolver, module, &file));

	/* A return address may be the first of the next function; the call never is. */
	struct prb_error *err = resolve(file, pc - module->bias - !exact, exact, ret);
	if (err)
		prb_lines_deinit(ret);
	return err;
}
