/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "profile/formats/otlp.h"

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/otlp.h"
#include "base/protobuf.h"
#include "profile/formats/format.h"
#include "profile/formats/otlp_dictionary.h"
#include "profile/formats/sums.h"

/* Fields of the messages, by their names in profiles.proto. */
enum {
	DATA_RESOURCE_PROFILES = 1,
	DATA_DICTIONARY = 2,
	RESOURCE_SCOPE_PROFILES = 2,
	SCOPE_PROFILES = 2,
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLES = 2,
	PROFILE_TIME = 3,
	PROFILE_DURATION = 4,
	PROFILE_PERIOD_TYPE = 5,
	PROFILE_PERIOD = 6,
	TYPE_TYPE = 1,
	TYPE_UNIT = 2,
	SAMPLE_STACK = 1,
	SAMPLE_ATTRIBUTES = 2,
	SAMPLE_VALUES = 4,
};

enum weight { CPU, WALL, RUNQUEUE, SAMPLES, WEIGHTS };

static const struct {
	const char *type, *unit;
} weights[WEIGHTS] = {
	[CPU] = {"cpu", "nanoseconds"},
	[WALL] = {"wall", "nanoseconds"},
	[RUNQUEUE] = {"runqueue", "nanoseconds"},
	[SAMPLES] = {"samples", "count"},
};

struct writer {
	const struct prb_recording *recording;
	const struct prb_profile_choice *choice;
	struct prb_otlp_dictionary dictionary;
	struct prb_sums sums;
	struct prb_str samples[WEIGHTS]; /* of the process that is being written */
};

static void writer_deinit(struct writer *w)
{
	prb_otlp_dictionary_deinit(&w->dictionary);
	prb_sums_deinit(&w->sums);
	for (unsigned i = 0; i < WEIGHTS; i++)
		prb_str_deinit(&w->samples[i]);
}

static void put_type(struct writer *w, struct prb_str *s, unsigned field, enum weight weight)
{
	struct prb_str type = {};

	prb_proto_number(&type, TYPE_TYPE, prb_otlp_text(&w->dictionary, weights[weight].type));
	prb_proto_number(&type, TYPE_UNIT, prb_otlp_text(&w->dictionary, weights[weight].unit));
	prb_proto_message(s, field, &type);
}

static enum weight first_weight(const struct writer *w)
{
	switch (w->choice->weight) {
	case PRB_WEIGHT_CPU:
		return CPU;
	case PRB_WEIGHT_RUNQUEUE:
		return RUNQUEUE;
	default:
		return WALL;
	}
}

/* A sample without weight says nothing. */
static void put_sum(struct writer *w, const struct prb_str *attributes, const struct prb_sum *sum)
{
	const uint64_t values[WEIGHTS] = {
		[CPU] = (uint64_t)PRB_MAX(sum->cpu, 0),
		[WALL] = (uint64_t)PRB_MAX(sum->wall, 0),
		[RUNQUEUE] = (uint64_t)PRB_MAX(sum->queue, 0),
		[SAMPLES] = sum->samples,
	};
	const uint32_t stack = prb_otlp_stack(&w->dictionary, sum->stack);

	for (unsigned i = 0; i < WEIGHTS; i++) {
		struct prb_str sample = {}, packed = {};

		if (!values[i])
			continue;
		prb_proto_number(&sample, SAMPLE_STACK, stack);
		prb_proto_bytes(&sample, SAMPLE_ATTRIBUTES, attributes->data, attributes->length);
		prb_proto_varint(&packed, values[i]);
		prb_proto_message(&sample, SAMPLE_VALUES, &packed);
		prb_proto_message(&w->samples[i], PROFILE_SAMPLES, &sample);
	}
}

static struct prb_error *put_thread(struct writer *w, uint32_t number)
{
	const struct prb_profile_thread *thread = &w->recording->threads.items[number];
	struct prb_otlp_dictionary *d = &w->dictionary;
	const uint32_t id = prb_otlp_attribute_integer(d, "thread.id", thread->tid);
	const uint32_t name = prb_otlp_attribute(d, "thread.name", prb_profile_thread_name(thread));
	const struct prb_sum *sum;

	PRB_TRY(prb_sums_of_thread(&w->sums, number));
	prb_vec_each (sum, &w->sums.list) {
		prb_auto_str struct prb_str attributes = {};

		prb_proto_varint(&attributes, id);
		if (name)
			prb_proto_varint(&attributes, name);
		prb_proto_varint(&attributes, prb_otlp_attribute(d, "thread.state",
								 prb_run_state_name(sum->state)));
		d->message.failed |= attributes.failed;
		put_sum(w, &attributes, sum);
	}
	return NULL;
}

/** One profile of the samples so far, which it takes. */
static void put_profile(struct writer *w, struct prb_str *scope, enum weight weight)
{
	const struct prb_recording *r = w->recording;
	struct prb_str profile = {};

	put_type(w, &profile, PROFILE_SAMPLE_TYPE, weight);
	prb_str_append(&profile, w->samples[weight].data, w->samples[weight].length);
	profile.failed |= w->samples[weight].failed;
	prb_proto_fixed64(&profile, PROFILE_TIME, prb_whole_ns(r->started * 1e9));
	prb_proto_number(&profile, PROFILE_DURATION, (uint64_t)r->duration);
	if (r->rate > 0) {
		put_type(w, &profile, PROFILE_PERIOD_TYPE, first_weight(w));
		prb_proto_number(&profile, PROFILE_PERIOD, prb_whole_ns(1e9 / r->rate));
	}
	prb_proto_message(scope, SCOPE_PROFILES, &profile);
	prb_str_deinit(&w->samples[weight]);
}

/* The machine that a file was recorded on is not known; a command line may hold secrets. */
static void put_resource(struct writer *w, struct prb_str *s, uint32_t process)
{
	struct prb_recording *r = (struct prb_recording *)w->recording;
	const char *python = *prb_recording_python(r, process);
	struct prb_str resource = {};

	prb_otlp_put_service(&resource);
	prb_otlp_put_integer(&resource, PRB_OTLP_RESOURCE_ATTRIBUTES, "process.pid",
			     prb_recording_pid(r, process));
	if (python) {
		prb_otlp_put_text(&resource, PRB_OTLP_RESOURCE_ATTRIBUTES, "process.runtime.name",
				  "cpython");
		prb_otlp_put_text(&resource, PRB_OTLP_RESOURCE_ATTRIBUTES,
				  "process.runtime.version", python);
	}
	prb_proto_message(s, PRB_OTLP_RESOURCE, &resource);
}

static bool is_empty(const struct writer *w)
{
	for (unsigned i = 0; i < WEIGHTS; i++)
		if (w->samples[i].length)
			return false;
	return true;
}

/* Of several processes, those without samples that were asked for are left out. */
static struct prb_error *put_process(struct writer *w, uint32_t process, struct prb_str *ret)
{
	const struct prb_recording *r = w->recording;
	const enum weight first = first_weight(w);
	struct prb_str resource = {}, scope = {};

	for (uint32_t i = 0; i < r->threads.count; i++)
		if (r->threads.items[i].process == process &&
		    (!w->choice->threads || w->choice->threads[i]))
			PRB_TRY(put_thread(w, i));
	if (r->others.count && is_empty(w))
		return NULL;
	put_resource(w, &resource, process);
	prb_otlp_put_scope(&scope);
	put_profile(w, &scope, first);
	for (unsigned i = 0; i < WEIGHTS; i++)
		if (i != first)
			put_profile(w, &scope, i);
	prb_proto_message(&resource, RESOURCE_SCOPE_PROFILES, &scope);
	prb_proto_message(ret, DATA_RESOURCE_PROFILES, &resource);
	return NULL;
}

struct prb_error *prb_otlp_put_profiles(struct prb_str *ret, const struct prb_recording *recording,
					const struct prb_profile_choice *choice)
{
	__attribute__((cleanup(writer_deinit))) struct writer w = {recording, choice};

	PRB_TRY(prb_otlp_dictionary_init(&w.dictionary, recording->tree, choice->lines));
	PRB_TRY(prb_sums_init(&w.sums, recording, choice->lines));
	for (uint32_t process = 0; process <= recording->others.count; process++)
		PRB_TRY(put_process(&w, process, ret));
	prb_proto_message(ret, DATA_DICTIONARY, &w.dictionary.message);
	return ret->failed ? prb_error_nomem() : NULL;
}

static struct prb_error *write_otlp(const struct prb_recording *recording,
				    const struct prb_profile_choice *choice, struct prb_sink *sink)
{
	PRB_TRY(prb_otlp_put_profiles(&sink->text, recording, choice));
	return prb_sink_flush(sink, true);
}

const struct prb_profile_format prb_format_otlp = {
	.name = "otlp",
	.extensions = {".otlp"},
	.any_order = true,
	.basic_modes = true,
	.does = "OpenTelemetry's profiles (v1development), as its receivers take them",
	.write = write_otlp,
};
