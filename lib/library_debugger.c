/* SPDX-License-Identifier: GPL-3.0-or-later */
/* libprobing: a target that is read through a debugger. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "target/debugger/debugger.h"
#include "lib/library_private.h"
#include "target/architecture.h"

struct prb_library_debugger {
	struct prb_library_debugger *next;
	struct probing_debugger functions; /* the caller's */
};

static size_t read_memory(void *context, uint64_t address, void *buffer, size_t length)
{
	const struct prb_library_debugger *d = context;

	return d->functions.read(d->functions.context, address, buffer, length);
}

static int read_fact(void *context, const char *name, prb_debugger_put *put, void *to)
{
	const struct prb_library_debugger *d = context;

	return d->functions.fact(d->functions.context, name, put, to);
}

static uint64_t thread_pointer(const struct probing_registers *registers, uint32_t machine)
{
	const struct prb_architecture *found = prb_architecture_find(machine);
	unsigned number = found ? found->thread_pointer : 0;

	return found && registers->known >> number & 1 ? registers->value[number] : 0;
}

static int read_registers(void *context, pid_t tid, struct prb_regs *ret)
{
	const struct prb_library_debugger *d = context;
	struct probing_registers registers = {};

	if (d->functions.registers(d->functions.context, tid, &registers))
		return 1;
	ret->pc = registers.pc;
	ret->known = registers.known;
	memcpy(ret->value, registers.value, sizeof(ret->value));
	ret->thread_pointer = thread_pointer(&registers, d->functions.machine);
	return 0;
}

/* As much of the caller's struct as both sides know. */
static struct prb_error *copy(const struct probing_debugger *from, struct probing_debugger *to)
{
	if (from->size < offsetof(struct probing_debugger, read))
		return prb_error_create(PRB_ERROR_USAGE,
					"struct probing_debugger has no size of its own in it");
	memcpy(to, from, PRB_MIN(from->size, sizeof(*to)));
	if (to->pid < 0 || to->pid > INT_MAX)
		return prb_error_create(PRB_ERROR_USAGE, "%lld is not a process id",
					(long long)to->pid);
	if (to->read ? !to->fact : !to->pid)
		return prb_error_create(PRB_ERROR_USAGE,
					"a debugger has to tell a pid, or memory and facts");
	return NULL;
}

static struct prb_error *open_debugger(struct probing *p, const char *name,
				       struct prb_library_debugger *d)
{
	const struct probing_debugger *f = &d->functions;
	struct prb_target *target;

	PRB_TRY(prb_target_open_debugger(
		&(struct prb_debugger){
			.context = d,
			.pid = (pid_t)f->pid,
			.machine = (uint16_t)f->machine,
			.held = f->held,
			.read = f->read ? read_memory : NULL,
			.fact = f->read ? read_fact : NULL,
			.registers = f->registers ? read_registers : NULL,
		},
		&target));
	return prb_session_add_target(p->session, name, target);
}

struct probing_error *probing_open_debugger(struct probing *p, const char *name,
					    const struct probing_debugger *debugger)
{
	struct prb_library_debugger *d = calloc(1, sizeof(*d));
	struct prb_error *err = d ? copy(debugger, &d->functions) : prb_error_nomem();

	if (!err)
		err = open_debugger(p, name, d);
	if (err) {
		free(d);
		return prb_public_error(err);
	}
	d->next = p->debuggers;
	p->debuggers = d;
	return NULL;
}

void prb_library_debuggers_destroy(struct prb_library_debugger *debuggers)
{
	while (debuggers) {
		struct prb_library_debugger *next = debuggers->next;

		free(debuggers);
		debuggers = next;
	}
}

void probing_on_poll(struct probing *p, probing_poll_handler *handler, void *context)
{
	prb_session_on_poll(p->session, handler, context);
}
