/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <ctype.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "sql/engine/instant.h"
#include "sql/tables/shared/facts.h"
#include "sql/spec/table.h"

enum {
	START,
	END,
	SIZE,
	PERMS,
	OFFSET,
	DEV,
	INODE,
	PATH,
	DELETED,
	RSS,
	PSS,
	SHARED,
	PRIVATE,
	DIRTY,
	ANONYMOUS,
	HUGE,
	SWAP,
	LOCKED,
	VM_FLAGS,
	ERROR,
};

static const struct prb_column columns[] = {
	[START] = {"start", PRB_COLUMN_INTEGER,
		   "First address; that of [vsyscall] is too high and shows as negative"},
	[END] = {"end", PRB_COLUMN_INTEGER, "Address behind the last one"},
	[SIZE] = {"size", PRB_COLUMN_INTEGER, "Size", "bytes"},
	[PERMS] = {"perms", PRB_COLUMN_TEXT,
		   "What may be done with it, as rwxp; s in the last place if it is shared"},
	[OFFSET] = {"offset", PRB_COLUMN_INTEGER, "Where in the file it begins", "bytes"},
	[DEV] = {"dev", PRB_COLUMN_TEXT,
		 "Device of the file, as major:minor in hex; NULL without a file"},
	[INODE] = {"inode", PRB_COLUMN_INTEGER, "Inode of the file; NULL without a file"},
	[PATH] = {"path", PRB_COLUMN_TEXT, "File, or [heap], [stack] and the like; NULL if none"},
	[DELETED] = {"deleted", PRB_COLUMN_INTEGER, "1 if the file was removed since"},
	[RSS] = {"rss", PRB_COLUMN_INTEGER, "How much of it is in RAM", "bytes",
		 .flags = PRB_COLUMN_COSTLY},
	[PSS] = {"pss", PRB_COLUMN_INTEGER, "The same, shared pages divided by their users",
		 "bytes", .flags = PRB_COLUMN_COSTLY},
	[SHARED] = {"shared", PRB_COLUMN_INTEGER, "Part of rss that others map too", "bytes",
		    .flags = PRB_COLUMN_COSTLY},
	[PRIVATE] = {"private", PRB_COLUMN_INTEGER, "Part of rss that nobody else maps", "bytes",
		     .flags = PRB_COLUMN_COSTLY},
	[DIRTY] = {"dirty", PRB_COLUMN_INTEGER, "Part of rss that was written to", "bytes",
		   .flags = PRB_COLUMN_COSTLY},
	[ANONYMOUS] = {"anonymous", PRB_COLUMN_INTEGER, "Part of rss without a file behind it",
		       "bytes", .flags = PRB_COLUMN_COSTLY},
	[HUGE] = {"huge", PRB_COLUMN_INTEGER, "Part of rss in transparent huge pages", "bytes",
		  .flags = PRB_COLUMN_COSTLY},
	[SWAP] = {"swap", PRB_COLUMN_INTEGER, "How much of it was swapped out", "bytes",
		  .flags = PRB_COLUMN_COSTLY},
	[LOCKED] = {"locked", PRB_COLUMN_INTEGER, "How much of it may not be swapped out", "bytes",
		    .flags = PRB_COLUMN_COSTLY},
	[VM_FLAGS] = {"vm_flags", PRB_COLUMN_TEXT, "The kernel's flags, two letters each",
		      .flags = PRB_COLUMN_COSTLY},
	[ERROR] = {"_error", PRB_COLUMN_TEXT, "Why cells are missing"},
	{},
};

/** The mappings as they are in a statement; the second half is empty without smaps. */
struct contents {
	struct prb_maps maps;
	struct prb_str smaps;
	PRB_VEC(size_t) details; /**< of each mapping: where its fields begin in smaps */
};

static void contents_destroy(void *memo)
{
	struct contents *c = memo;

	prb_maps_deinit(&c->maps);
	prb_str_deinit(&c->smaps);
	prb_vec_free(&c->details);
	free(c);
}

static struct prb_error *create_maps(struct prb_instant *instant, void **ret)
{
	struct contents *c = calloc(1, sizeof(*c));

	if (!c)
		return prb_error_nomem();
	struct prb_error *err = prb_target_read_maps(prb_instant_target(instant), &c->maps);
	if (err) {
		free(c);
		return err;
	}
	*ret = c;
	return NULL;
}

/** Lines of smaps that begin a mapping begin with its address; all others with a capital. */
static struct prb_error *split(struct contents *c)
{
	prb_auto_str struct prb_str headings = {};
	const char *at = prb_str_text(&c->smaps), *line;
	size_t length;

	while (prb_next_line(&at, &line, &length)) {
		if (!isxdigit((unsigned char)*line) || isupper((unsigned char)*line))
			continue;
		size_t *place = prb_vec_push(&c->details);
		if (!place)
			return prb_error_nomem();
		*place = (size_t)(at - c->smaps.data);
		prb_str_append(&headings, line, length);
		prb_str_putc(&headings, '\n');
	}
	if (headings.failed)
		return prb_error_nomem();
	PRB_TRY(prb_maps_parse(prb_str_text(&headings), &c->maps));
	if (c->maps.list.count == c->details.count)
		return NULL;
	prb_maps_deinit(&c->maps);
	c->maps = (struct prb_maps){};
	return prb_error_create(PRB_ERROR_BAD_DATA, "smaps is malformed");
}

static struct prb_error *create_smaps(struct prb_instant *instant, void **ret)
{
	struct contents *c = calloc(1, sizeof(*c));

	if (!c)
		return prb_error_nomem();
	struct prb_error *err =
		prb_target_read_file(prb_instant_target(instant), &c->smaps, "smaps");
	if (!err)
		err = split(c);
	if (err) {
		contents_destroy(c);
		return err;
	}
	*ret = c;
	return NULL;
}

static bool wants_details(const struct prb_scan *scan)
{
	for (unsigned column = RSS; column <= VM_FLAGS; column++)
		if (prb_scan_wants(scan, column))
			return true;
	return false;
}

/** Copies a row's part of smaps: the text goes on with the next mapping. */
static void put_details(struct prb_scan *scan, const struct contents *c, size_t index)
{
	static const struct {
		unsigned column;
		const char *fields[2];
	} sums[] = {
		{RSS, {"Rss"}},
		{PSS, {"Pss"}},
		{SHARED, {"Shared_Clean", "Shared_Dirty"}},
		{PRIVATE, {"Private_Clean", "Private_Dirty"}},
		{DIRTY, {"Shared_Dirty", "Private_Dirty"}},
		{ANONYMOUS, {"Anonymous"}},
		{HUGE, {"AnonHugePages"}},
		{SWAP, {"Swap"}},
		{LOCKED, {"Locked"}},
	};
	size_t start = c->details.items[index];
	size_t end = index + 1 < c->details.count ? c->details.items[index + 1] : c->smaps.length;
	prb_auto_str struct prb_str text = {};

	prb_str_append(&text, c->smaps.data + start, end - start);
	for (size_t i = 0; i < PRB_ARRAY_SIZE(sums); i++) {
		const char *a = prb_text_field(prb_str_text(&text), sums[i].fields[0]);
		const char *b = sums[i].fields[1]
					? prb_text_field(prb_str_text(&text), sums[i].fields[1])
					: "0";

		int64_t sum;

		if (a && b &&
		    !__builtin_add_overflow(strtoll(a, NULL, 10), strtoll(b, NULL, 10), &sum) &&
		    !__builtin_mul_overflow(sum, 1024, &sum))
			prb_put_integer(scan, sums[i].column, sum);
	}
	prb_put_field_text(scan, VM_FLAGS, prb_str_text(&text), "VmFlags");
}

static void put(struct prb_scan *scan, const struct prb_map *map)
{
	prb_put_integer(scan, START, (int64_t)map->start);
	prb_put_integer(scan, END, (int64_t)map->end);
	prb_put_integer(scan, SIZE, (int64_t)(map->end - map->start));
	prb_put_format(scan, PERMS, "%c%c%c%c", map->read ? 'r' : '-', map->write ? 'w' : '-',
		       map->exec ? 'x' : '-', map->shared ? 's' : 'p');
	prb_put_integer(scan, OFFSET, (int64_t)map->offset);
	/* No file lies on device 0: a core numbers its files by itself. */
	if (map->major || map->minor) {
		prb_put_format(scan, DEV, "%02x:%02x", map->major, map->minor);
		prb_put_integer(scan, INODE, (int64_t)map->inode);
	}
	if (*map->path)
		prb_put_text(scan, PATH, map->path);
	prb_put_integer(scan, DELETED, map->deleted);
}

static struct prb_error *find_contents(struct prb_scan *scan, struct prb_missing *missing,
				       struct contents **ret)
{
	static const char maps_key, smaps_key;

	if (wants_details(scan)) {
		struct prb_error *err = prb_instant_memo(scan->instant, &smaps_key, create_smaps,
							 contents_destroy, (void **)ret);

		if (!err)
			return NULL;
		PRB_TRY(prb_missing_add(scan, missing, err, "smaps"));
	}
	return prb_instant_memo(scan->instant, &maps_key, create_maps, contents_destroy,
				(void **)ret);
}

static struct prb_error *scan(struct prb_scan *scan)
{
	prb_auto_missing struct prb_missing missing = {};
	struct contents *c;
	bool told;

	PRB_TRY(prb_fact_told(scan, find_contents(scan, &missing, &c), &told));
	if (!told)
		return NULL;
	for (; scan->position < c->maps.list.count; scan->position++) {
		if (prb_scan_full(scan)) {
			scan->more = true;
			return NULL;
		}
		PRB_TRY(prb_scan_row(scan));
		put(scan, &c->maps.list.items[scan->position]);
		if (c->details.count)
			put_details(scan, c, scan->position);
		prb_missing_put(scan, ERROR, &missing);
	}
	return NULL;
}

const struct prb_table prb_table_process_maps = {
	.schema = "process",
	.name = "maps",
	.doc = "Memory mappings; the columns from rss to vm_flags are read only when asked for",
	.columns = columns,
	.rows = 200,
	.scan = scan,
};
