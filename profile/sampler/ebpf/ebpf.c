/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "profile/sampler/ebpf/ebpf.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"

bool prb_ebpf_built(void)
{
#ifdef PRB_HAVE_EBPF
	return true;
#else
	return false;
#endif
}

#ifdef PRB_HAVE_EBPF

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <dlfcn.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/checked.h"
#include "base/log.h"
#include "base/vec.h"
#include "profile/sampler/ebpf/walk.inc"

static const char *const LIBRARIES[] = {"libbpf.so.1", "libbpf.so.2"};

#define FUNCTIONS(X)                        \
	X(libbpf_set_print)                 \
	X(bpf_object__open_mem)             \
	X(bpf_object__find_map_by_name)     \
	X(bpf_object__find_program_by_name) \
	X(bpf_object__load)                 \
	X(bpf_object__close)                \
	X(bpf_map__set_initial_value)       \
	X(bpf_map__set_max_entries)         \
	X(libbpf_num_possible_cpus)         \
	X(bpf_map__fd)                      \
	X(bpf_map_lookup_elem)              \
	X(bpf_program__attach_perf_event)   \
	X(bpf_link__destroy)                \
	X(ring_buffer__new)                 \
	X(ring_buffer__consume)             \
	X(ring_buffer__free)

/* Loaded when it is needed. */
static struct {
#define MEMBER(name) __typeof__(&name) name;
	FUNCTIONS(MEMBER)
#undef MEMBER
	bool loaded;
} lib;

static struct prb_error *load_library(void)
{
	void *library = NULL, *function;

	if (lib.loaded)
		return NULL;
	for (size_t i = 0; !library && i < PRB_ARRAY_SIZE(LIBRARIES); i++)
		library = dlopen(LIBRARIES[i], RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return prb_error_hint(prb_error_create(PRB_ERROR_UNSUPPORTED,
						       "libbpf is needed for samples by eBPF: %s",
						       dlerror()),
				      "Debian and Ubuntu: apt-get install libbpf1");
#define LOOK_UP(name)                                                                        \
	function = dlsym(library, #name);                                                    \
	if (!function)                                                                       \
		return prb_error_create(PRB_ERROR_UNSUPPORTED, "libbpf has no %s()", #name); \
	memcpy(&lib.name, &function, sizeof(function));
	FUNCTIONS(LOOK_UP)
#undef LOOK_UP
	lib.loaded = true;
	return NULL;
}

struct prb_ebpf {
	struct bpf_object *object;
	struct bpf_program *program;
	struct bpf_map *lost;
	struct ring_buffer *ring;
	PRB_VEC(struct bpf_link *) links; /* each owns the descriptor of its event */

	/* While records are drained. */
	struct prb_error *(*take)(void *context, const struct prb_ebpf_record *record);
	void *context;
	struct prb_error *err;
};

struct prb_error *prb_ebpf_check(void)
{
	static const char types[] = "/sys/kernel/btf/vmlinux";

	PRB_TRY(load_library());
	if (access(types, R_OK))
		return prb_error_hint(
			prb_error_os(errno, "cannot read the kernel's types, %s", types),
			"mount /sys; the kernel needs CONFIG_DEBUG_INFO_BTF");
	return NULL;
}

static int print(enum libbpf_print_level level, const char *format, va_list args)
{
	char text[512];
	int length = vsnprintf(text, sizeof(text), format, args);

	while (length > 0 && (size_t)length < sizeof(text) && text[length - 1] == '\n')
		text[--length] = 0;
	prb_log("profile", level == LIBBPF_DEBUG ? 3 : 2, "libbpf: %s", text);
	return 0;
}

static struct prb_error *failed(int code, const char *what)
{
	struct prb_error *err;

	code = code < 0 ? -code : code;
	if (code == EPERM || code == EACCES) {
		err = prb_error_create(PRB_ERROR_PERMISSION, "the kernel does not allow to %s",
				       what);
		return prb_error_hint(err, "this needs root, or CAP_BPF and CAP_PERFMON; "
					   "'--source stops' needs neither");
	}
	if (code == ENOMEM)
		return prb_error_nomem();
	err = prb_error_os(code, "cannot %s", what);
	err->code = PRB_ERROR_UNSUPPORTED;
	return prb_error_hint(err, "this needs Linux 5.17 or later, with BTF; "
				   "'--source stops' does not");
}

static int take_one(void *context, void *data, size_t size)
{
	struct prb_ebpf *ebpf = context;
	const struct prb_ebpf_record *record = data;

	if (ebpf->err || size < offsetof(struct prb_ebpf_record, frames) ||
	    record->count > PRB_EBPF_FRAMES ||
	    size < offsetof(struct prb_ebpf_record, frames) +
			    record->count * sizeof(record->frames[0]))
		return 0;
	ebpf->err = ebpf->take(ebpf->context, record);
	return 0;
}

static struct prb_error *load(struct prb_ebpf *ebpf, const struct prb_ebpf_layout *layout)
{
	struct bpf_map *constants, *ring, *scratch;
	int result;

	PRB_TRY(load_library());
	lib.libbpf_set_print(print);
	ebpf->object = lib.bpf_object__open_mem(prb_ebpf_object, sizeof(prb_ebpf_object), NULL);
	if (!ebpf->object)
		return failed(errno, "open the BPF program");
	constants = lib.bpf_object__find_map_by_name(ebpf->object, ".rodata");
	ring = lib.bpf_object__find_map_by_name(ebpf->object, "ring");
	scratch = lib.bpf_object__find_map_by_name(ebpf->object, "scratch");
	ebpf->lost = lib.bpf_object__find_map_by_name(ebpf->object, "lost");
	ebpf->program = lib.bpf_object__find_program_by_name(ebpf->object, "on_tick");
	if (!constants || !ring || !scratch || !ebpf->lost || !ebpf->program)
		return failed(ENOENT, "find the parts of the BPF program");
	result = lib.bpf_map__set_initial_value(constants, layout, sizeof(*layout));
	if (!result)
		result = lib.libbpf_num_possible_cpus();
	if (result > 0)
		result = lib.bpf_map__set_max_entries(scratch, (uint32_t)result);
	if (result)
		return failed(result, "set the layout of the BPF program");
	result = lib.bpf_object__load(ebpf->object);
	if (result)
		return failed(result, "load a BPF program");
	ebpf->ring = lib.ring_buffer__new(lib.bpf_map__fd(ring), take_one, ebpf, NULL);
	return ebpf->ring ? NULL : failed(errno, "map the ring of the BPF program");
}

struct prb_error *prb_ebpf_open(const struct prb_ebpf_layout *layout, struct prb_ebpf **ret)
{
	struct prb_ebpf *ebpf = calloc(1, sizeof(*ebpf));
	struct prb_error *err;

	if (!ebpf)
		return prb_error_nomem();
	err = load(ebpf, layout);
	if (err)
		prb_ebpf_close(ebpf);
	else
		*ret = ebpf;
	return err;
}

void prb_ebpf_close(struct prb_ebpf *ebpf)
{
	struct bpf_link **link;

	if (!ebpf)
		return;
	prb_vec_each (link, &ebpf->links)
		lib.bpf_link__destroy(*link);
	prb_vec_free(&ebpf->links);
	if (ebpf->ring)
		lib.ring_buffer__free(ebpf->ring);
	if (ebpf->object)
		lib.bpf_object__close(ebpf->object);
	prb_error_destroy(ebpf->err);
	free(ebpf);
}

struct prb_error *prb_ebpf_add(struct prb_ebpf *ebpf, pid_t tid, uint64_t period)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = period,
		.inherit = 1,
		.inherit_thread = 1,
	};
	struct bpf_link **slot;
	int fd = (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		return errno == ESRCH ? NULL : failed(errno, "open a clock of a thread");
	slot = prb_vec_push(&ebpf->links);
	if (!slot) {
		close(fd);
		return prb_error_nomem();
	}
	*slot = lib.bpf_program__attach_perf_event(ebpf->program, fd);
	if (*slot)
		return NULL;
	int code = errno;
	ebpf->links.count--;
	close(fd);
	return failed(code, "attach a BPF program to the clock of a thread");
}

struct prb_error *prb_ebpf_drain(struct prb_ebpf *ebpf,
				 struct prb_error *(*take)(void *context,
							   const struct prb_ebpf_record *record),
				 void *context)
{
	ebpf->take = take;
	ebpf->context = context;
	lib.ring_buffer__consume(ebpf->ring);
	return prb_steal(&ebpf->err);
}

uint64_t prb_ebpf_lost(struct prb_ebpf *ebpf)
{
	uint64_t count = 0;
	uint32_t zero = 0;

	return lib.bpf_map_lookup_elem(lib.bpf_map__fd(ebpf->lost), &zero, &count) ? 0 : count;
}

#else

static struct prb_error *missing(void)
{
	return prb_error_hint(prb_error_create(PRB_ERROR_UNSUPPORTED,
					       "this build has no BPF program: clang or libbpf was "
					       "missing"),
			      "'--source stops' works without");
}

struct prb_error *prb_ebpf_check(void)
{
	return missing();
}

struct prb_error *prb_ebpf_open(const struct prb_ebpf_layout *layout, struct prb_ebpf **ret)
{
	(void)layout;
	(void)ret;
	return missing();
}

void prb_ebpf_close(struct prb_ebpf *ebpf)
{
	(void)ebpf;
}

struct prb_error *prb_ebpf_add(struct prb_ebpf *ebpf, pid_t tid, uint64_t period)
{
	(void)ebpf;
	(void)tid;
	(void)period;
	return missing();
}

struct prb_error *prb_ebpf_drain(struct prb_ebpf *ebpf,
				 struct prb_error *(*take)(void *context,
							   const struct prb_ebpf_record *record),
				 void *context)
{
	(void)ebpf;
	(void)take;
	(void)context;
	return missing();
}

uint64_t prb_ebpf_lost(struct prb_ebpf *ebpf)
{
	(void)ebpf;
	return 0;
}

#endif
