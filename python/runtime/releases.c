/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "python/runtime/releases.h"

#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "python/repr/core/repr.h"
#include "python/runtime/entered.h"

enum { MOST_NAMES = 2000 /* of a code object */ };

/* Their release() is of locks of their own. */
static const char *const modules_with_own_locks[] = {
	"threading",	   "logging",
	"queue",	   "subprocess",
	"selectors",	   "concurrent.futures",
	"multiprocessing", "importlib._bootstrap",
	"socket",	   "asyncio",
	"gevent",	   "eventlet",
};

/* Names in code */

/* True if @p wanted accepts one of the names in a tuple. */
static struct prb_error *names_of_tuple(struct prb_python *py, struct prb_mem *mem, uint64_t tuple,
					bool (*wanted)(const char *name), bool *ret)
{
	const struct prb_layout *l = &py->layout;
	uint64_t count;

	PRB_TRY(prb_mem_read_u64(mem, tuple + (uint64_t)l->var_size, &count));
	if (count > MOST_NAMES)
		return prb_error_create(PRB_ERROR_BAD_DATA, "%llu names",
					(unsigned long long)count);
	for (uint64_t i = 0; i < count && !*ret; i++) {
		prb_auto_str struct prb_str name = {};
		uint64_t object;

		PRB_TRY(prb_mem_read_u64(mem, tuple + (uint64_t)l->tuple_items + 8 * i, &object));
		PRB_TRY(prb_object_str(py, mem, object, 64, &name));
		*ret = wanted(prb_str_text(&name));
	}
	return NULL;
}

/* True if the code uses such a name: of an attribute or a global, mostly, or of a variable. */
static struct prb_error *names_of_code(struct prb_python *py, struct prb_mem *mem, uint64_t code,
				       bool (*wanted)(const char *name), bool *ret)
{
	const struct prb_layout *l = &py->layout;
	bool old = l->behaviour->chain == PRB_CHAIN_PYFRAME;
	int32_t tuples[] = {l->code_names, old ? l->code_varnames : l->code_localsplusnames,
			    old ? l->code_freevars : 0, old ? l->code_cellvars : 0};

	*ret = false;
	for (size_t i = 0; i < PRB_ARRAY_SIZE(tuples) && !*ret; i++) {
		uint64_t tuple;

		if (tuples[i] <= 0)
			continue;
		PRB_TRY(prb_mem_read_u64(mem, code + (uint64_t)tuples[i], &tuple));
		PRB_TRY(names_of_tuple(py, mem, tuple, wanted, ret));
	}
	return NULL;
}

/* Such as release, _release_save, unlock: also what wraps it. */
static bool is_release(const char *name)
{
	return strcasestr(name, "release") || strcasestr(name, "unlock") ||
	       !strcmp(name, "__exit__") || !strcmp(name, "__aexit__");
}

static bool is_release_or_acquire(const char *name)
{
	return is_release(name) || strcasestr(name, "acquire");
}

static struct prb_error *module_of(struct prb_python *py, struct prb_mem *mem,
				   const struct prb_py_frame *frame, char **ret)
{
	uint64_t globals;

	*ret = NULL;
	PRB_TRY(prb_python_globals(py, mem, frame, &globals));
	return prb_python_module_name(py, mem, globals, ret);
}

static bool has_own_locks(const char *module)
{
	for (size_t i = 0; module && i < PRB_ARRAY_SIZE(modules_with_own_locks); i++) {
		size_t length = strlen(modules_with_own_locks[i]);

		if (!strncmp(module, modules_with_own_locks[i], length) &&
		    (!module[length] || module[length] == '.'))
			return true;
	}
	return false;
}

/* True if @p function is of a module of the standard library that has locks of its own. */
static struct prb_error *is_of_library(struct prb_python *py, struct prb_mem *mem,
				       uint64_t function, bool *ret)
{
	prb_auto_str struct prb_str kind = {}, module = {};
	uint64_t name;

	*ret = false;
	PRB_TRY(prb_object_type_name(py, mem, function, &kind));
	if (strcmp(prb_str_text(&kind), "function") != 0)
		return prb_error_create(PRB_ERROR_UNSUPPORTED, "no function");
	PRB_TRY(prb_mem_read_u64(mem, function + (uint64_t)py->layout.function_module, &name));
	PRB_TRY(prb_object_str(py, mem, name, 64, &module));
	*ret = has_own_locks(prb_str_text(&module));
	return NULL;
}

/* The code that an object runs at its end, or while it is entered; 0: none that counts. */
static struct prb_error *code_of_leaving(struct prb_python *py, struct prb_mem *mem,
					 uint64_t object, uint64_t leave, uint64_t codes[2])
{
	const struct prb_layout *l = &py->layout;
	prb_auto_str struct prb_str type = {};
	uint64_t generator;
	bool of_library;

	codes[0] = codes[1] = 0;
	PRB_TRY(is_of_library(py, mem, leave, &of_library));
	if (of_library)
		return NULL;
	PRB_TRY(prb_mem_read_u64(mem, leave + (uint64_t)l->function_code, &codes[0]));
	PRB_TRY(prb_object_type_name(py, mem, object, &type));
	if (!strstr(prb_str_text(&type), "GeneratorContextManager"))
		return NULL;
	PRB_TRY(prb_object_attribute(py, mem, object, "gen", &generator));
	if (l->behaviour->chain == PRB_CHAIN_PYFRAME) {
		PRB_TRY(prb_mem_read_u64(mem, generator + (uint64_t)l->generator_frame,
					 &generator));
		return prb_mem_read_u64(mem, generator + (uint64_t)l->pyframe_code, &codes[1]);
	}
	PRB_TRY(prb_mem_read_u64(mem, generator + (uint64_t)(l->generator_frame + l->frame_code),
				 &codes[1]));
	if (l->behaviour->tagged_refs)
		codes[1] &= ~3ULL;
	return NULL;
}

/* True if one of the first @p count objects that the frame has entered may release locks. */
static struct prb_error *may_release_by_leaving(struct prb_python *py, struct prb_mem *mem,
						const struct prb_py_frame *frame, unsigned count,
						bool *ret)
{
	struct prb_py_entered entered;

	*ret = false;
	PRB_TRY(prb_python_entered(py, mem, frame, &entered));
	for (unsigned i = 0; i < PRB_MIN(count, entered.count) && !*ret; i++) {
		uint64_t codes[2];

		if (!entered.list[i].in_python)
			continue;
		PRB_TRY(code_of_leaving(py, mem, entered.list[i].object, entered.list[i].leave,
					codes));
		for (unsigned n = 0; n < 2 && codes[n] && !*ret; n++)
			PRB_TRY(names_of_code(py, mem, codes[n], is_release_or_acquire, ret));
	}
	return NULL;
}

static struct prb_error *code_may_release(struct prb_python *py, struct prb_mem *mem,
					  const struct prb_py_frame *frame, bool retakes, bool *ret)
{
	struct prb_py_code code;

	PRB_TRY(prb_python_code(py, mem, frame->code, &code));
	if (!strncmp(code.name, "__", 2)) /* such as __exit__ */
		retakes = true;
	prb_py_code_deinit(&code);
	return names_of_code(py, mem, frame->code, retakes ? is_release_or_acquire : is_release,
			     ret);
}

struct prb_error *prb_python_may_release(struct prb_python *py, struct prb_mem *mem,
					 const struct prb_py_frame *holder, unsigned level,
					 const struct prb_py_frame *frame, bool retakes, bool *ret)
{
	*ret = false;
	if (frame->shim)
		return NULL;
	if (frame == holder) {
		PRB_TRY(names_of_code(py, mem, frame->code,
				      retakes ? is_release_or_acquire : is_release, ret));
	} else {
		prb_auto_free char *own = NULL, *outer = NULL;

		PRB_TRY(module_of(py, mem, frame, &own));
		PRB_TRY(module_of(py, mem, holder, &outer));
		if (has_own_locks(own) && !has_own_locks(outer))
			return NULL;
		PRB_TRY(code_may_release(py, mem, frame, retakes, ret));
	}
	if (*ret)
		return NULL;
	return may_release_by_leaving(py, mem, frame, frame == holder ? level : PRB_ENTERED_MAX,
				      ret);
}

static bool is_acquire(const char *name)
{
	return strcasestr(name, "acquire");
}

/* The frame that calls acquire(): with `with`, it does not have that name. */
static struct prb_error *caller_locks(struct prb_python *py, struct prb_mem *mem,
				      const struct prb_py_frame *frame, bool *ret)
{
	struct prb_py_code code;
	bool acquires;

	PRB_TRY(prb_python_code(py, mem, frame->code, &code));
	*ret = !strncmp(code.name, "__", 2);
	prb_py_code_deinit(&code);
	PRB_TRY(names_of_code(py, mem, frame->code, is_acquire, &acquires));
	*ret = *ret || !acquires;
	return NULL;
}

struct prb_error *prb_python_uses_as_lock(struct prb_python *py, struct prb_mem *mem,
					  const struct prb_py_frames *frames, bool *ret)
{
	enum { MOST_CALLERS = 4 };
	const struct prb_py_frame *frame;
	unsigned callers = 0;

	*ret = false;
	prb_vec_each (frame, &frames->list) {
		prb_auto_free char *module = NULL;
		bool releases;

		if (frame->shim || callers == MOST_CALLERS || *ret)
			continue;
		PRB_TRY(module_of(py, mem, frame, &module));
		if (has_own_locks(module))
			continue;
		if (!callers++)
			PRB_TRY(caller_locks(py, mem, frame, ret));
		PRB_TRY(names_of_code(py, mem, frame->code, is_release, &releases));
		*ret = *ret || releases;
	}
	return NULL;
}

/* The lock that the frame has released because it is Condition.wait(); 0 if it is not. */
static struct prb_error *condition_waited(struct prb_python *py, struct prb_mem *mem,
					  const struct prb_py_frame *frame, uint64_t *ret)
{
	prb_auto_free char *module = NULL;
	uint64_t self;
	struct prb_py_code code;
	bool is_wait;

	*ret = 0;
	if (frame->shim)
		return NULL;
	PRB_TRY(prb_python_code(py, mem, frame->code, &code));
	is_wait = !strcmp(code.name, "wait");
	prb_py_code_deinit(&code);
	if (!is_wait)
		return NULL;
	PRB_TRY(module_of(py, mem, frame, &module));
	if (strcmp(module, "threading") != 0 && strcmp(module, "asyncio.locks") != 0 &&
	    strcmp(module, "multiprocessing.synchronize") != 0)
		return NULL;
	PRB_TRY(prb_python_first_value(py, mem, frame, &self));

	struct prb_error *err = prb_object_attribute(py, mem, self, "_lock", ret);
	if (prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
		return NULL; /* Event.wait(), Barrier.wait() */
	PRB_TRY(err);
	return strcmp(module, "multiprocessing.synchronize")
		       ? NULL
		       : prb_object_attribute(py, mem, *ret, "_semlock", ret);
}

struct prb_error *prb_python_lock_of(struct prb_python *py, struct prb_mem *mem, uint64_t object,
				     uint64_t leave, uint64_t *ret)
{
	prb_auto_str struct prb_str type = {};
	bool condition, of_library = false, none = false;

	*ret = object;
	PRB_TRY(prb_object_type_name(py, mem, object, &type));
	condition = !strcmp(prb_str_text(&type), "Condition");
	if (!condition && strcmp(prb_str_text(&type), "Lock") != 0 &&
	    strcmp(prb_str_text(&type), "RLock") != 0)
		return NULL;

	/* Types in C have no function there, but a definition, which is no object. */
	PRB_TRY(prb_error_tolerate(is_of_library(py, mem, leave, &of_library), &none));
	if (none || !of_library)
		return NULL;
	if (condition)
		PRB_TRY(prb_object_attribute(py, mem, object, "_lock", ret));

	uint64_t shared; /* of multiprocessing */
	PRB_TRY(prb_error_tolerate(prb_object_attribute(py, mem, *ret, "_semlock", &shared),
				   &none));
	if (!none)
		*ret = shared;
	return NULL;
}

struct prb_error *prb_python_note_released(struct prb_python *py, struct prb_mem *mem,
					   const struct prb_py_frame *frame,
					   struct prb_py_released *released)
{
	uint64_t lock = 0;
	bool failed = false;

	PRB_TRY(prb_error_tolerate(condition_waited(py, mem, frame, &lock), &failed));
	if (!failed && lock && released->count < PRB_RELEASED_MAX)
		released->locks[released->count++] = lock;
	return NULL;
}

bool prb_python_is_released(const struct prb_py_released *released, uint64_t lock)
{
	for (unsigned i = 0; i < released->count; i++)
		if (released->locks[i] == lock)
			return true;
	return false;
}

struct prb_error *prb_python_waits_in_condition(struct prb_python *py, struct prb_mem *mem,
						const struct prb_py_frame *frame, uint64_t lock,
						bool *ret)
{
	uint64_t waited;

	*ret = false;
	PRB_TRY(condition_waited(py, mem, frame, &waited));
	*ret = waited && waited == lock;
	return NULL;
}
