/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/torch/flight.h"

#include <link.h>
#include <stdint.h>
#include <string.h>

#include "agent/client/connection.h"
#include "agent/inside/libc.h"

enum { PATH_SIZE = 4096, LIBRARIES = 4 };

/** std::string of libstdc++'s present ABI. */
struct string {
	char *data;
	size_t length;
	char own[16];
};

/** The words of the unwinder, as the Itanium C++ ABI has them. */
enum {
	SEARCHES = 1,
	IS_FORCED = 8,
	HANDLER_FOUND = 6,
	INSTALL_CONTEXT = 7,
	CONTINUE_UNWIND = 8,
};

static struct {
	void (*set_ip)(void *context, uintptr_t address); /* _Unwind_SetIP */
	void (*release)(void *memory);			  /* operator delete */
} runtime;

/** Calls @p function, which gives a string, in *ret; 1: an exception of C++ ended it. */
int prba_flight_call(const void *function, struct string *ret, int collectives, int active,
		     const struct string *backend) __attribute__((visibility("hidden")));
extern const char prba_flight_caught[] __attribute__((visibility("hidden")));
int prba_flight_personality(int version, int actions, uint64_t class, void *exception,
			    void *context) __attribute__((visibility("hidden"), used));

#if defined(__x86_64__)
#define CAN_CALL 1
__asm__(".pushsection .text\n"
	".globl prba_flight_call\n"
	".type prba_flight_call, @function\n"
	"prba_flight_call:\n"
	".cfi_startproc\n"
	".cfi_personality 0x1b, prba_flight_personality\n"
	"push %rbp\n"
	".cfi_def_cfa_offset 16\n"
	".cfi_offset %rbp, -16\n"
	"mov %rsp, %rbp\n"
	".cfi_def_cfa_register %rbp\n"
	"mov %rdi, %rax\n"
	"mov %rsi, %rdi\n"
	"mov %edx, %esi\n"
	"mov %ecx, %edx\n"
	"mov %r8, %rcx\n"
	"call *%rax\n"
	"xor %eax, %eax\n"
	".cfi_remember_state\n"
	"pop %rbp\n"
	".cfi_def_cfa %rsp, 8\n"
	"ret\n"
	".cfi_restore_state\n"
	".globl prba_flight_caught\n"
	"prba_flight_caught:\n"
	"mov $1, %eax\n"
	"pop %rbp\n"
	".cfi_def_cfa %rsp, 8\n"
	"ret\n"
	".cfi_endproc\n"
	".size prba_flight_call, . - prba_flight_call\n"
	".popsection\n");
#elif defined(__aarch64__)
#define CAN_CALL 1
__asm__(".pushsection .text\n"
	".globl prba_flight_call\n"
	".type prba_flight_call, %function\n"
	"prba_flight_call:\n"
	".cfi_startproc\n"
	".cfi_personality 0x1b, prba_flight_personality\n"
	"stp x29, x30, [sp, #-16]!\n"
	".cfi_def_cfa_offset 16\n"
	".cfi_offset x29, -16\n"
	".cfi_offset x30, -8\n"
	"mov x29, sp\n"
	"mov x9, x0\n"
	"mov x8, x1\n"
	"mov w0, w2\n"
	"mov w1, w3\n"
	"mov x2, x4\n"
	"blr x9\n"
	"mov w0, #0\n"
	".cfi_remember_state\n"
	"ldp x29, x30, [sp], #16\n"
	".cfi_def_cfa_offset 0\n"
	"ret\n"
	".cfi_restore_state\n"
	".globl prba_flight_caught\n"
	"prba_flight_caught:\n"
	"mov w0, #1\n"
	"ldp x29, x30, [sp], #16\n"
	".cfi_def_cfa_offset 0\n"
	"ret\n"
	".cfi_endproc\n"
	".size prba_flight_call, . - prba_flight_call\n"
	".popsection\n");
#else
#define CAN_CALL 0
#endif

/** Any exception is caught; what it was is of no use. Its memory stays. */
int prba_flight_personality(int version, int actions, uint64_t class, void *exception,
			    void *context)
{
	(void)version, (void)class, (void)exception;
	if (actions & IS_FORCED)
		return CONTINUE_UNWIND;
	if (actions & SEARCHES)
		return HANDLER_FOUND;
	runtime.set_ip(context, (uintptr_t)prba_flight_caught);
	return INSTALL_CONTEXT;
}

/** The paths of the libraries that may have a recorder. */
struct libraries {
	char paths[LIBRARIES][PATH_SIZE];
	unsigned count;
};

static int collect(struct dl_phdr_info *info, size_t size, void *argument)
{
	struct libraries *libraries = argument;
	const char *slash = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;

	(void)size;
	if (slash && libraries->count < LIBRARIES && strlen(info->dlpi_name) < PATH_SIZE &&
	    (!strncmp(slash, "/libtorch_cpu.so", 16) || !strncmp(slash, "/libtorch_cuda.so", 17) ||
	     !strncmp(slash, "/libtorch_xpu.so", 16)))
		strcpy(libraries->paths[libraries->count++], info->dlpi_name);
	return 0;
}

/** A function of a library that is loaded already. */
static void *find(const char *library, const char *name)
{
	void *handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);

	void *found = handle ? dlsym(handle, name) : NULL;

	/* It stays loaded, as the program uses it. */
	if (handle)
		dlclose(handle);
	return found;
}

void *prba_torch_symbol(const char *name)
{
	static struct libraries libraries;
	void *found = NULL;

	libraries.count = 0;
	dl_iterate_phdr(collect, &libraries);
	for (unsigned i = 0; i < libraries.count && !found; i++)
		found = find(libraries.paths[i], name);
	return found;
}

static void send_all(struct prba_connection *c, const char *data, size_t length)
{
	while (length > 0 && !atomic_load(&c->gone)) {
		size_t part = length < PRB_WIRE_MAX_REPLY ? length : PRB_WIRE_MAX_REPLY;

		if (prba_connection_send(c, PRB_WIRE_STDOUT, c->job.request, data, part) ==
		    PRBA_FULL) {
			prba_connection_wait(c);
			continue;
		}
		data += part;
		length -= part;
	}
}

/** Asks one recorder. False if it ended with an exception. */
static bool ask(struct prba_connection *c, const void *function)
{
	struct string backend = {.data = backend.own}, answer = {};

	if (prba_flight_call(function, &answer, 1, 0, &backend))
		return false;
	if (!atomic_load(&c->job.answered)) {
		send_all(c, answer.data, answer.length);
		send_all(c, "\n", 1);
	}
	if (answer.data != answer.own)
		runtime.release(answer.data);
	return true;
}

static const char *ask_all(struct prba_connection *c)
{
	/* dump_fr_trace_json(bool, bool, const std::string &), the same of fewer arguments, and
	 * dump_nccl_trace_json(bool, bool). */
	static const char *const names[] = {
		("_ZN4c10d18dump_fr_trace_jsonEbbRKNSt7__cxx1112basic_stringIcSt11char_"
		 "traitsIcESaIcEEE"),
		"_ZN4c10d18dump_fr_trace_jsonB5cxx11Ebb",
		"_ZN4c10d20dump_nccl_trace_jsonB5cxx11Ebb",
	};
	static struct libraries libraries;
	unsigned asked = 0, failed = 0;

	libraries.count = 0;
	dl_iterate_phdr(collect, &libraries);
	if (!libraries.count)
		return "torch is not loaded in this process";
	runtime.set_ip = find("libgcc_s.so.1", "_Unwind_SetIP");
	runtime.release = find("libstdc++.so.6", "_ZdlPv");
	if (!runtime.set_ip || !runtime.release)
		return "the runtime of C++ was not found in this process";
	for (unsigned i = 0; i < libraries.count; i++)
		for (unsigned k = 0; k < sizeof(names) / sizeof(*names); k++) {
			void *function = find(libraries.paths[i], names[k]);

			if (!function)
				continue;
			asked++;
			failed += !ask(c, function);
		}
	if (!asked)
		return "this version of torch has no flight recorder that can be asked";
	return failed == asked ? "the flight recorder raised an exception" : NULL;
}

bool prba_flight_is_asked(const struct prba_connection *c)
{
	static const char word[] = "flight";
	const struct prb_wire_eval *eval = &c->job.eval;

	return c->job.asked == PRBA_EVALUATES && eval->flags == PRB_WIRE_TORCH && !c->keeps &&
	       eval->code_length == sizeof(word) - 1 && !memcmp(eval->code, word, sizeof(word) - 1);
}

void prba_flight_do(struct prba_connection *c)
{
	const char *why = "this is not supported on this processor";

	if (!prba_job_begin(c, 0)) {
		prba_job_finish(c, PRB_WIRE_INTERRUPTED, "");
		return;
	}
#if CAN_CALL
	why = ask_all(c);
#endif
	prba_job_finish(c, why ? PRB_WIRE_REFUSED : PRB_WIRE_OK, why ? why : "");
}
