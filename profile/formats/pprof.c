/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The format of pprof: messages of profile.proto, compressed by gzip.
 *
 * Texts are numbers of a table; the texts of each function have places in it that follow from the
 * number of the function.
 */
#include <string.h>
#include <zlib.h>

#include "base/cleanup.h"
#include "base/protobuf.h"
#include "base/text.h"
#include "profile/formats/format.h"
#include "profile/formats/sums.h"

/* Fields of the messages, by their names in profile.proto. */
enum {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE = 2,
	PROFILE_MAPPING = 3,
	PROFILE_LOCATION = 4,
	PROFILE_FUNCTION = 5,
	PROFILE_STRING_TABLE = 6,
	PROFILE_TIME_NANOS = 9,
	PROFILE_DURATION_NANOS = 10,
	PROFILE_PERIOD_TYPE = 11,
	PROFILE_PERIOD = 12,
	PROFILE_COMMENT = 13,
	PROFILE_DEFAULT_SAMPLE_TYPE = 14,
	TYPE_TYPE = 1,
	TYPE_UNIT = 2,
	SAMPLE_LOCATION = 1,
	SAMPLE_VALUE = 2,
	SAMPLE_LABEL = 3,
	LABEL_KEY = 1,
	LABEL_STR = 2,
	LABEL_NUM = 3,
	MAPPING_ID = 1,
	MAPPING_START = 2,
	MAPPING_LIMIT = 3,
	MAPPING_OFFSET = 4,
	MAPPING_FILENAME = 5,
	MAPPING_BUILD_ID = 6,
	MAPPING_HAS_FUNCTIONS = 7,
	MAPPING_HAS_FILENAMES = 8,
	MAPPING_HAS_LINE_NUMBERS = 9,
	LOCATION_ID = 1,
	LOCATION_MAPPING = 2,
	LOCATION_ADDRESS = 3,
	LOCATION_LINE = 4,
	LINE_FUNCTION = 1,
	LINE_LINE = 2,
	FUNCTION_ID = 1,
	FUNCTION_NAME = 2,
	FUNCTION_SYSTEM_NAME = 3,
	FUNCTION_FILENAME = 4,
	FUNCTION_START_LINE = 5,
};

/* Texts that each file has, by their numbers in its table. */
enum text {
	TEXT_NONE,
	TEXT_SAMPLES,
	TEXT_COUNT,
	TEXT_CPU,
	TEXT_WALL,
	TEXT_QUEUE,
	TEXT_NANOSECONDS,
	TEXT_THREAD,
	TEXT_THREAD_ID,
	TEXT_STATE,
	TEXT_COMMAND,
	TEXT_COMMENT,
	TEXT_STATES, /* of them all */
	/* Two each; then one for each thread, and two for each image. */
	TEXT_FUNCTIONS = TEXT_STATES + PRB_RUN_STATES,
};

static const char *const texts[TEXT_COMMAND] = {
	"",	    "samples",	   "count",  "cpu",	  "wall",
	"runqueue", "nanoseconds", "thread", "thread_id", "state",
};

struct writer {
	const struct prb_recording *recording;
	const struct prb_profile_choice *choice;
	struct prb_sink *sink;
	z_stream zlib;
	struct prb_sums sums;
};

static void writer_deinit(struct writer *w)
{
	deflateEnd(&w->zlib);
	prb_sums_deinit(&w->sums);
}

/* Compresses @p bytes into the sink. */
static struct prb_error *compress_bytes(struct writer *w, const void *bytes, size_t length,
					int flush)
{
	char out[1 << 14];

	w->zlib.next_in = (Bytef *)bytes;
	w->zlib.avail_in = (uInt)length;
	do {
		w->zlib.next_out = (Bytef *)out;
		w->zlib.avail_out = sizeof(out);
		deflate(&w->zlib, flush);
		prb_str_append(&w->sink->text, out, sizeof(out) - w->zlib.avail_out);
	} while (!w->zlib.avail_out);
	return prb_sink_flush(w->sink, false);
}

/* A field of the outermost message. */
static struct prb_error *emit(struct writer *w, struct prb_str *fields)
{
	prb_auto_str struct prb_str s = *fields;

	*fields = (struct prb_str){};
	if (s.failed)
		return prb_error_nomem();
	return compress_bytes(w, s.data, s.length, Z_NO_FLUSH);
}

/* The parts of a profile */

static uint64_t name_text(uint32_t function)
{
	return TEXT_FUNCTIONS + 2 * (uint64_t)function;
}

static uint64_t thread_text(const struct writer *w, uint32_t thread)
{
	return name_text((uint32_t)w->recording->tree->functions.count) + thread;
}

static uint64_t image_text(const struct writer *w, const struct prb_tree_image *image)
{
	return thread_text(w, (uint32_t)w->recording->threads.count) + 2 * (uint64_t)image->number;
}

/* The first mapping is of all that has no address. */
static uint64_t mapping_of(const struct prb_tree_function *f)
{
	return prb_function_address(f) ? (uint64_t)f->image->number + 2 : 1;
}

static void put_type(struct prb_str *s, unsigned field, enum text type, enum text unit)
{
	struct prb_str message = {};

	prb_proto_number(&message, TYPE_TYPE, type);
	prb_proto_number(&message, TYPE_UNIT, unit);
	prb_proto_message(s, field, &message);
}

static struct prb_error *put_head(struct writer *w)
{
	const struct prb_recording *r = w->recording;
	static const enum text weights[PRB_WEIGHTS] = {
		[PRB_WEIGHT_CPU] = TEXT_CPU,	    [PRB_WEIGHT_WALL] = TEXT_WALL,
		[PRB_WEIGHT_RUNQUEUE] = TEXT_QUEUE, [PRB_WEIGHT_GIL] = TEXT_WALL,
		[PRB_WEIGHT_BLOCKED] = TEXT_WALL,
	};
	enum text weight = weights[w->choice->weight];
	struct prb_str s = {}, mapping = {};

	put_type(&s, PROFILE_SAMPLE_TYPE, TEXT_SAMPLES, TEXT_COUNT);
	put_type(&s, PROFILE_SAMPLE_TYPE, TEXT_CPU, TEXT_NANOSECONDS);
	put_type(&s, PROFILE_SAMPLE_TYPE, TEXT_WALL, TEXT_NANOSECONDS);
	put_type(&s, PROFILE_SAMPLE_TYPE, TEXT_QUEUE, TEXT_NANOSECONDS);
	prb_proto_number(&mapping, MAPPING_ID, 1);
	prb_proto_number(&mapping, MAPPING_FILENAME, TEXT_COMMAND);
	prb_proto_number(&mapping, MAPPING_HAS_FUNCTIONS, 1);
	prb_proto_number(&mapping, MAPPING_HAS_FILENAMES, 1);
	prb_proto_number(&mapping, MAPPING_HAS_LINE_NUMBERS, 1);
	prb_proto_message(&s, PROFILE_MAPPING, &mapping);
	prb_proto_number(&s, PROFILE_TIME_NANOS, prb_whole_ns(r->started * 1e9));
	prb_proto_number(&s, PROFILE_DURATION_NANOS, (uint64_t)r->duration);
	put_type(&s, PROFILE_PERIOD_TYPE, weight, TEXT_NANOSECONDS);
	prb_proto_number(&s, PROFILE_PERIOD, r->rate > 0 ? prb_whole_ns(1e9 / r->rate) : 0);
	prb_proto_number(&s, PROFILE_COMMENT, TEXT_COMMENT);
	prb_proto_number(&s, PROFILE_DEFAULT_SAMPLE_TYPE, weight);
	return emit(w, &s);
}

/* Readers look for the names of a mapping's addresses unless it says that it has them. */
static struct prb_error *put_mappings(struct writer *w)
{
	const struct prb_tree *tree = w->recording->tree;
	prb_auto_free bool *lacks = calloc(tree->images.count + 1, sizeof(*lacks));
	struct prb_tree_image *const *image;
	const struct prb_tree_function *f;

	if (!lacks)
		return prb_error_nomem();
	prb_vec_each (f, &tree->functions)
		if (f->image)
			lacks[f->image->number] |= prb_function_lacks_name(f);
	prb_vec_each (image, &tree->images) {
		uint64_t start = prb_image_base(*image) + (*image)->address;
		struct prb_str s = {}, mapping = {};

		prb_proto_number(&mapping, MAPPING_ID, (uint64_t)(*image)->number + 2);
		prb_proto_number(&mapping, MAPPING_START, start);
		prb_proto_number(&mapping, MAPPING_LIMIT, start + (*image)->size);
		prb_proto_number(&mapping, MAPPING_OFFSET, (*image)->offset);
		prb_proto_number(&mapping, MAPPING_FILENAME, image_text(w, *image));
		prb_proto_number(&mapping, MAPPING_BUILD_ID, image_text(w, *image) + 1);
		prb_proto_number(&mapping, MAPPING_HAS_FUNCTIONS, !lacks[(*image)->number]);
		prb_proto_message(&s, PROFILE_MAPPING, &mapping);
		PRB_TRY(emit(w, &s));
	}
	return NULL;
}

static struct prb_error *put_locations(struct writer *w)
{
	const struct prb_tree *tree = w->recording->tree;

	for (uint32_t i = 0; i < prb_place_count(tree, w->choice->lines); i++) {
		struct prb_place place = prb_place_get(tree, w->choice->lines, i);
		struct prb_str s = {}, location = {}, line = {};

		prb_proto_number(&line, LINE_FUNCTION,
				 (uint64_t)(place.function - tree->functions.items) + 1);
		prb_proto_number(&line, LINE_LINE, place.line > 0 ? (uint64_t)place.line : 0);
		prb_proto_number(&location, LOCATION_ID, i + 1);
		prb_proto_number(&location, LOCATION_MAPPING, mapping_of(place.function));
		prb_proto_number(&location, LOCATION_ADDRESS, prb_function_address(place.function));
		prb_proto_message(&location, LOCATION_LINE, &line);
		prb_proto_message(&s, PROFILE_LOCATION, &location);
		PRB_TRY(emit(w, &s));
	}
	return NULL;
}

static struct prb_error *put_functions(struct writer *w)
{
	const struct prb_tree *tree = w->recording->tree;

	for (uint32_t i = 0; i < tree->functions.count; i++) {
		int32_t line = tree->functions.items[i].first_line;
		struct prb_str s = {}, function = {};

		prb_proto_number(&function, FUNCTION_ID, i + 1);
		prb_proto_number(&function, FUNCTION_NAME, name_text(i));
		prb_proto_number(&function, FUNCTION_SYSTEM_NAME, name_text(i));
		prb_proto_number(&function, FUNCTION_FILENAME, name_text(i) + 1);
		prb_proto_number(&function, FUNCTION_START_LINE, line > 0 ? (uint64_t)line : 0);
		prb_proto_message(&s, PROFILE_FUNCTION, &function);
		PRB_TRY(emit(w, &s));
	}
	return NULL;
}

static void put_label(struct prb_str *s, enum text key, unsigned field, uint64_t value)
{
	struct prb_str label = {};

	prb_proto_number(&label, LABEL_KEY, key);
	prb_proto_number(&label, field, value);
	prb_proto_message(s, SAMPLE_LABEL, &label);
}

/* Places are innermost first. */
static struct prb_error *put_sum(struct writer *w, uint32_t thread, const struct prb_sum *sum)
{
	const struct prb_tree *tree = w->recording->tree;
	struct prb_str s = {}, sample = {}, packed = {};

	for (uint32_t at = sum->stack; at; at = tree->stacks.items[at].parent)
		prb_proto_varint(&packed, (uint64_t)prb_place_of(tree, w->choice->lines, at) + 1);
	prb_proto_message(&sample, SAMPLE_LOCATION, &packed);
	prb_proto_varint(&packed, sum->samples);
	prb_proto_varint(&packed, (uint64_t)sum->cpu);
	prb_proto_varint(&packed, (uint64_t)sum->wall);
	prb_proto_varint(&packed, (uint64_t)sum->queue);
	prb_proto_message(&sample, SAMPLE_VALUE, &packed);
	put_label(&sample, TEXT_THREAD, LABEL_STR, thread_text(w, thread));
	put_label(&sample, TEXT_THREAD_ID, LABEL_NUM,
		  (uint64_t)w->recording->threads.items[thread].tid);
	put_label(&sample, TEXT_STATE, LABEL_STR, (uint64_t)TEXT_STATES + sum->state);
	prb_proto_message(&s, PROFILE_SAMPLE, &sample);
	return emit(w, &s);
}

static struct prb_error *put_thread(struct writer *w, uint32_t thread)
{
	const struct prb_sum *sum;

	PRB_TRY(prb_sums_of_thread(&w->sums, thread));
	prb_vec_each (sum, &w->sums.list)
		PRB_TRY(put_sum(w, thread, sum));
	return NULL;
}

/* Readers demand UTF-8, and their terminals nothing that acts on them. */
static struct prb_error *put_text(struct writer *w, const char *text)
{
	struct prb_str s = {}, plain = {};

	prb_text_escape(&plain, text ? text : "");
	prb_proto_message(&s, PROFILE_STRING_TABLE, &plain);
	return emit(w, &s);
}

static struct prb_error *put_texts(struct writer *w)
{
	const struct prb_recording *r = w->recording;
	prb_auto_str struct prb_str comment = {};
	const struct prb_tree_function *f;
	const struct prb_profile_thread *thread;
	struct prb_tree_image *const *image;

	for (size_t i = 0; i < TEXT_COMMAND; i++)
		PRB_TRY(put_text(w, texts[i]));
	prb_str_printf(&comment, "probing %s, process %d, Python %s", PRB_VERSION, (int)r->pid,
		       r->python ? r->python : "?");
	PRB_TRY(put_text(w, r->command));
	PRB_TRY(put_text(w, prb_str_text(&comment)));
	for (unsigned i = 0; i < PRB_RUN_STATES; i++)
		PRB_TRY(put_text(w, prb_run_state_name((enum prb_run_state)i)));
	prb_vec_each (f, &r->tree->functions) {
		PRB_TRY(put_text(w, f->name));
		PRB_TRY(put_text(w, prb_function_file(f)));
	}
	prb_vec_each (thread, &r->threads)
		PRB_TRY(put_text(w, prb_profile_thread_name(thread)));
	prb_vec_each (image, &r->tree->images) {
		PRB_TRY(put_text(w, (*image)->path));
		PRB_TRY(put_text(w, (*image)->build_id));
	}
	return NULL;
}

static struct prb_error *write_pprof(const struct prb_recording *recording,
				     const struct prb_profile_choice *choice, struct prb_sink *sink)
{
	enum { GZIP = 15 + 16, MEMORY = 8 };
	__attribute__((cleanup(writer_deinit))) struct writer w = {recording, choice, sink};

	if (deflateInit2(&w.zlib, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP, MEMORY,
			 Z_DEFAULT_STRATEGY) != Z_OK)
		return prb_error_nomem();
	PRB_TRY(prb_sums_init(&w.sums, recording, choice->lines));
	PRB_TRY(put_head(&w));
	PRB_TRY(put_texts(&w));
	PRB_TRY(put_functions(&w));
	PRB_TRY(put_mappings(&w));
	PRB_TRY(put_locations(&w));
	for (uint32_t i = 0; i < recording->threads.count; i++)
		if (!choice->threads || choice->threads[i])
			PRB_TRY(put_thread(&w, i));
	PRB_TRY(compress_bytes(&w, NULL, 0, Z_FINISH));
	return prb_sink_flush(sink, true);
}

const struct prb_profile_format prb_format_pprof = {
	.name = "pprof",
	.extensions = {".pb.gz"},
	.any_order = true,
	.basic_modes = true,
	.does = "for `go tool pprof`: each thread and state with all its weights",
	.write = write_pprof,
};
