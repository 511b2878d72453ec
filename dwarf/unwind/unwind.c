/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "dwarf/unwind/unwind.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "dwarf/unwind/cfi.h"
#include "dwarf/unwind/module_cfi.h"
#include "dwarf/unwind/recover.h"
#include "dwarf/unwind/row_cache.h"
#include "dwarf/unwind/unknown.h"
#include "target/architecture.h"

/* How often one walk may go to a lower or equal frame address: signal stacks, coroutines. */
enum { MAX_BACKWARD = 16 };

struct prb_unwinder {
	struct prb_modules *modules;
	uint64_t pac_mask;
	bool prefer_files, allow_guesses;
	PRB_VEC(struct prb_module_cfi *) tables;
	struct prb_row_cache rows;

	/* The walk in progress: its position and how often it went back. */
	uint64_t pc, sp;
	unsigned backward;

	char reason[256];
};

/* The kernel's own mappings show how many bits an address has. */
static uint64_t default_pac_mask(const struct prb_target *target)
{
	const struct prb_map *map;
	uint64_t highest = 1ULL << 38;

	prb_vec_each (map, &target->maps.list) {
		if (map->end <= 1ULL << 52 && map->end - 1 > highest)
			highest = map->end - 1;
	}
	return ~0ULL << (64 - __builtin_clzll(highest));
}

struct prb_error *prb_unwinder_create(struct prb_modules *modules, struct prb_unwinder **ret)
{
	struct prb_unwinder *unwinder = calloc(1, sizeof(*unwinder));

	if (!unwinder)
		return prb_error_nomem();
	unwinder->modules = modules;
	unwinder->pac_mask = default_pac_mask(modules->target);
	*ret = unwinder;
	return NULL;
}

void prb_unwinder_destroy(struct prb_unwinder *unwinder)
{
	struct prb_module_cfi **cfi;

	if (!unwinder)
		return;
	prb_vec_each (cfi, &unwinder->tables) {
		prb_module_cfi_deinit(*cfi);
		free(*cfi);
	}
	prb_vec_free(&unwinder->tables);
	prb_row_cache_deinit(&unwinder->rows);
	free(unwinder);
}

void prb_unwinder_set_pac_mask(struct prb_unwinder *unwinder, uint64_t mask)
{
	unwinder->pac_mask = mask;
}

/* Reading through prb_mem: what is not just missing memory is kept to be reported. */
struct reading {
	struct prb_mem *mem;
	struct prb_error *err;
};

static bool was_read(struct reading *reading, struct prb_error *err)
{
	if (!err)
		return true;
	if (err->code == PRB_ERROR_FAULT || reading->err)
		prb_error_destroy(err);
	else
		reading->err = err;
	return false;
}

static bool read_memory(void *context, uint64_t address, void *buffer, size_t length)
{
	struct reading *reading = context;

	return was_read(reading, prb_mem_read(reading->mem, address, buffer, length));
}

static bool peek_memory(void *context, uint64_t address, void *buffer, size_t length)
{
	struct reading *reading = context;

	return was_read(reading, prb_mem_peek(reading->mem, address, buffer, length));
}

static struct prb_error *use_file(struct prb_unwinder *unwinder, struct prb_module_cfi *cfi)
{
	struct reading reading = {.mem = unwinder->modules->target->mem};
	struct prb_cfi_memory memory = {.read = read_memory, .context = &reading};
	struct prb_error *err = prb_module_cfi_use_file(cfi, &memory);

	prb_error_destroy(reading.err);
	return err;
}

static struct prb_error *module_tables(struct prb_unwinder *unwinder, struct prb_module *module,
				       struct prb_module_cfi **ret)
{
	struct prb_module_cfi **cfi;

	prb_vec_each (cfi, &unwinder->tables) {
		if ((*cfi)->module == module) {
			*ret = *cfi;
			return NULL;
		}
	}
	cfi = prb_vec_push(&unwinder->tables);
	if (!cfi)
		return prb_error_nomem();
	*cfi = malloc(sizeof(**cfi));
	if (!*cfi) {
		unwinder->tables.count--;
		return prb_error_nomem();
	}
	prb_module_cfi_init(*cfi, module);
	*ret = *cfi;
	return unwinder->prefer_files ? use_file(unwinder, *cfi) : NULL;
}

struct prb_error *prb_unwinder_use_file(struct prb_unwinder *unwinder, uint64_t address)
{
	struct prb_module *module = prb_modules_find(unwinder->modules, address);
	struct prb_module_cfi *cfi;

	if (!module)
		return NULL;
	PRB_TRY(module_tables(unwinder, module, &cfi));
	return use_file(unwinder, cfi);
}

void prb_unwinder_prefer_files(struct prb_unwinder *unwinder)
{
	unwinder->prefer_files = true;
}

struct prb_error *prb_unwinder_function(struct prb_unwinder *unwinder, uint64_t address,
					uint64_t *ret)
{
	struct prb_module *module = prb_modules_find(unwinder->modules, address);
	struct reading reading = {.mem = unwinder->modules->target->mem};
	struct prb_cfi_memory memory = {.read = read_memory, .context = &reading};
	enum prb_cfi_status status;
	struct prb_module_cfi *cfi;
	uint64_t end;

	*ret = 0;
	if (!module)
		return NULL;
	PRB_TRY(module_tables(unwinder, module, &cfi));
	struct prb_error *err = prb_module_cfi_function(cfi, &memory, address, ret, &end, &status);
	/* A process that has ended is one more reason to find nothing. */
	prb_error_destroy(reading.err);
	if (!err && status != PRB_CFI_OK)
		*ret = 0;
	return err;
}

/* A row, from the cache or the tables of its module, and what its expressions lie in. */
struct found_row {
	const struct prb_cfi_row *row;
	const struct prb_cfi_section *section;
	struct prb_cfi_row fresh;
};

static struct prb_error *find_row(struct prb_unwinder *unwinder,
				  const struct prb_cfi_memory *memory, uint16_t machine,
				  uint64_t pc, struct found_row *found, enum prb_cfi_status *status)
{
	struct prb_module *module;
	struct prb_module_cfi *cfi;

	*status = PRB_CFI_OK;
	found->row = prb_row_cache_find(&unwinder->rows, pc, &found->section);
	if (found->row)
		return NULL;
	*status = PRB_CFI_NOT_FOUND;
	module = prb_modules_find(unwinder->modules, pc);
	if (!module)
		return NULL;
	PRB_TRY(module_tables(unwinder, module, &cfi));
	PRB_TRY(prb_module_cfi_row(cfi, memory, machine, pc, &found->fresh, &found->section,
				   status));
	if (*status == PRB_CFI_OK)
		prb_row_cache_put(&unwinder->rows, pc, found->section, &found->fresh);
	found->row = &found->fresh;
	return NULL;
}

/*
 * Nothing executable at the pc: the call has come here, and no instruction has run since. So the
 * return address is where a call leaves it. It must lead into a module, else it was a jump.
 */
static enum prb_cfi_status leave_bad_call(struct prb_unwinder *unwinder,
					  const struct prb_cfi_memory *memory,
					  struct prb_regs *regs, uint64_t *cfa)
{
	const struct prb_architecture *machine = prb_architecture_find(regs->machine);
	const struct prb_map *map = prb_maps_find(&unwinder->modules->target->maps, regs->pc);
	struct prb_cfi_row row = {
		.cfa = {.kind = PRB_CFI_REGISTER,
			.reg = machine->sp,
			.value = machine->pushes ? 8 : 0},
		.ra = machine->ra,
	};
	struct prb_cfi_section none = {};
	struct prb_regs caller = *regs;
	enum prb_cfi_status status;

	if (map && map->exec)
		return PRB_CFI_NOT_FOUND;
	if (machine->pushes) {
		row.mask = 1ULL << machine->ra;
		row.rules[row.count++] = (struct prb_cfi_rule){.kind = PRB_CFI_OFFSET, .value = -8};
	}
	status = prb_cfi_apply(&none, memory, &row, 0, &caller, cfa);
	if (status != PRB_CFI_OK || !prb_modules_find(unwinder->modules, caller.pc - 1))
		return PRB_CFI_NOT_FOUND;
	*regs = caller;
	return PRB_CFI_OK;
}

/* True if the walk must not go on: its frame addresses went backward too often. */
static bool goes_in_circles(struct prb_unwinder *unwinder, bool exact_pc, bool signal_frame,
			    const struct prb_regs *before, const struct prb_regs *after,
			    uint64_t cfa)
{
	unsigned number = prb_regs_sp(before->machine);
	uint64_t sp = 0, new_sp = 0;
	bool known = prb_regs_get(before, number, &sp);

	prb_regs_get(after, number, &new_sp);
	if (!known || before->pc != unwinder->pc || sp != unwinder->sp)
		unwinder->backward = 0;
	unwinder->pc = after->pc;
	unwinder->sp = new_sp;
	if (!known || cfa > sp)
		return false;
	/* A leaf function on aarch64 need not have a frame. */
	if (cfa == sp && exact_pc && !signal_frame && after->pc != before->pc)
		return false;
	return ++unwinder->backward > MAX_BACKWARD;
}

static void PRB_PRINTF(4, 5) stop(struct prb_unwinder *unwinder, struct prb_unwind_step *ret,
				  const char *trouble, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(unwinder->reason, sizeof(unwinder->reason), format, args);
	va_end(args);
	prb_log("unwind", 2, "%s", unwinder->reason);
	ret->reason = unwinder->reason;
	ret->trouble = trouble;
}

static void stop_by_status(struct prb_unwinder *unwinder, enum prb_cfi_status status,
			   const struct prb_regs *regs, const struct prb_module *module,
			   struct prb_unwind_step *ret)
{
	/* Only a thread that was not stopped is without its frame pointer. */
	bool asleep = !(regs->known >> prb_regs_fp(regs->machine) & 1);
	const char *name = "", *where = "outside any module";

	if (module) {
		name = strrchr(module->path, '/') ? strrchr(module->path, '/') + 1 : module->path;
		where = *name ? "in " : "in a module that has no file";
	}
	stop(unwinder, ret, prb_cfi_status_text(status), "%s for code at 0x%llx %s%s%s",
	     prb_cfi_status_text(status), (unsigned long long)regs->pc, where, name,
	     status == PRB_CFI_UNKNOWN_REGISTER && asleep ? "; --freeze reads the registers" : "");
}

/*
 * The unwinder's data for recovery. It looks through stacks, which may hold anything: that is
 * peeked at. Call frame information is read as ever, since rows are kept for later.
 */
struct recovering {
	struct prb_unwinder *unwinder;
	const struct prb_cfi_memory *memory, *peek;
	uint16_t machine;
	struct prb_error *err;
};

static bool find_function(void *context, uint64_t pc, struct prb_code_range *ret)
{
	struct recovering *r = context;
	struct prb_module *module = prb_modules_find(r->unwinder->modules, pc);
	struct prb_module_cfi *cfi;
	enum prb_cfi_status status = PRB_CFI_NOT_FOUND;

	if (!module || r->err)
		return false;
	r->err = module_tables(r->unwinder, module, &cfi);
	if (!r->err)
		r->err = prb_module_cfi_function(cfi, r->memory, pc, &ret->start, &ret->end,
						 &status);
	return !r->err && status == PRB_CFI_OK;
}

static bool leave_call(void *context, struct prb_regs *regs, uint64_t *cfa, bool *end)
{
	struct recovering *r = context;
	enum prb_cfi_status status;
	struct found_row found;

	if (r->err)
		return false;
	r->err = find_row(r->unwinder, r->memory, r->machine, regs->pc - 1, &found, &status);
	if (!r->err && status == PRB_CFI_NOT_FOUND)
		return prb_cfi_leave_trampoline(r->peek, regs, cfa) == PRB_CFI_OK;
	if (r->err || status != PRB_CFI_OK)
		return false;
	status = prb_cfi_apply(found.section, r->peek, found.row, r->unwinder->pac_mask, regs, cfa);
	*end = status == PRB_CFI_END || (status == PRB_CFI_OK && regs->pc == 0);
	return status == PRB_CFI_OK || *end;
}

/*
 * The frame pointer that a frame at @pc must have. A snapshot keeps the answer, "-" if there is
 * none: what it was found from may not be in there.
 */
static struct prb_error *recover_frame_pointer(struct prb_unwinder *unwinder,
					       const struct prb_cfi_memory *memory, uint64_t pc,
					       const struct prb_cfi_row *row, struct prb_regs *regs,
					       enum prb_cfi_status *status)
{
	struct prb_cfi_memory peek = {.read = peek_memory, .context = memory->context};
	struct recovering recovering = {unwinder, memory, &peek, regs->machine, NULL};
	struct prb_recovery recovery = {&peek, unwinder->pac_mask, &recovering, find_function,
					leave_call};
	struct prb_target *target = unwinder->modules->target;
	unsigned number = prb_regs_fp(regs->machine);
	prb_auto_str struct prb_str known = {};
	uint64_t sp = 0, value = 0;
	char key[64], text[32], *end;

	prb_regs_get(regs, prb_regs_sp(regs->machine), &sp);
	snprintf(key, sizeof(key), "frame-pointer:%" PRIx64 ":%" PRIx64, pc, sp);
	if (prb_target_recall(target, key, &known)) {
		value = strtoull(prb_str_text(&known), &end, 16);
		*status = end == prb_str_text(&known) ? PRB_CFI_UNKNOWN_REGISTER : PRB_CFI_OK;
		if (*status == PRB_CFI_OK)
			prb_regs_set(regs, number, value);
		return NULL;
	}

	*status = prb_recover_frame_pointer(&recovery, row, pc, regs);
	PRB_TRY(recovering.err);
	if (*status == PRB_CFI_OK && prb_regs_get(regs, number, &value))
		snprintf(text, sizeof(text), "%" PRIx64, value);
	else
		snprintf(text, sizeof(text), "-");
	prb_target_remember(target, key, text, strlen(text));
	return NULL;
}

/* Applies a row; where only the frame pointer of a sleeping thread is missing, with what it must
 * be. */
static struct prb_error *apply_row(struct prb_unwinder *unwinder,
				   const struct prb_cfi_memory *memory, uint64_t pc,
				   const struct found_row *found, struct prb_regs *caller,
				   uint64_t *cfa, enum prb_cfi_status *status)
{
	struct prb_cfi_row row;

	*status =
		prb_cfi_apply(found->section, memory, found->row, unwinder->pac_mask, caller, cfa);
	if (*status != PRB_CFI_UNKNOWN_REGISTER)
		return NULL;
	row = *found->row; /* looking for others may move it */
	PRB_TRY(recover_frame_pointer(unwinder, memory, pc, &row, caller, status));
	if (*status == PRB_CFI_OK)
		*status = prb_cfi_apply(found->section, memory, &row, unwinder->pac_mask, caller,
					cfa);
	return NULL;
}

void prb_unwinder_allow_guesses(struct prb_unwinder *unwinder)
{
	unwinder->allow_guesses = true;
}

/* The registers of the caller into @caller, or a status with the reason why there are none. */
static struct prb_error *leave_frame(struct prb_unwinder *unwinder,
				     const struct prb_cfi_memory *memory, bool exact_pc,
				     struct prb_regs *caller, struct prb_unwind_step *ret,
				     enum prb_cfi_status *status)
{
	/* A return address may be the first byte of another function: the call lies before it. */
	uint64_t pc = exact_pc ? caller->pc : caller->pc - 1;
	struct found_row found;

	PRB_TRY(find_row(unwinder, memory, caller->machine, pc, &found, status));
	if (*status == PRB_CFI_NOT_FOUND) {
		*status = prb_cfi_sigreturn(memory, caller, &ret->cfa);
		ret->signal_frame = *status == PRB_CFI_OK;
		if (*status == PRB_CFI_NOT_FOUND && exact_pc)
			*status = leave_bad_call(unwinder, memory, caller, &ret->cfa);
		if (*status == PRB_CFI_NOT_FOUND && !exact_pc) {
			*status = prb_cfi_leave_trampoline(memory, caller, &ret->cfa);
			ret->trampoline = *status == PRB_CFI_OK;
		}
		if (*status != PRB_CFI_NOT_FOUND || !exact_pc ||
		    prb_cfi_leave_stub(memory, caller) != PRB_CFI_OK)
			return NULL;
		PRB_TRY(find_row(unwinder, memory, caller->machine, caller->pc, &found, status));
	}
	if (*status != PRB_CFI_OK)
		return NULL;
	ret->signal_frame = found.row->signal_frame;
	PRB_TRY(apply_row(unwinder, memory, pc, &found, caller, &ret->cfa, status));
	ret->signal_frame = ret->signal_frame && *status == PRB_CFI_OK;
	return NULL;
}

struct prb_error *prb_unwind_step(struct prb_unwinder *unwinder, struct prb_mem *mem, bool exact_pc,
				  struct prb_regs *regs, struct prb_unwind_step *ret)
{
	struct reading reading = {.mem = mem};
	struct prb_cfi_memory memory = {.read = read_memory, .context = &reading};
	struct prb_regs caller = *regs;
	enum prb_cfi_status status;
	struct prb_error *err;

	*ret = (struct prb_unwind_step){};
	if (!prb_architecture_find(regs->machine)) {
		stop(unwinder, ret, "no unwinding for this machine", "no unwinding for machine %u",
		     regs->machine);
		return NULL;
	}
	if (regs->pc == 0 && !exact_pc) {
		ret->end = true;
		return NULL;
	}
	err = leave_frame(unwinder, &memory, exact_pc, &caller, ret, &status);
	if (!err && status == PRB_CFI_NOT_FOUND && unwinder->allow_guesses)
		status = prb_cfi_leave_unknown(&memory, exact_pc, &caller, &ret->cfa, &ret->guess);
	if (reading.err) {
		prb_error_destroy(err);
		err = reading.err;
	}
	if (err)
		return prb_error_prefix(err, "unwinding at 0x%llx", (unsigned long long)regs->pc);

	if (status == PRB_CFI_END || (status == PRB_CFI_OK && caller.pc == 0 && !ret->signal_frame))
		ret->end = true;
	else if (status != PRB_CFI_OK)
		stop_by_status(unwinder, status, regs,
			       prb_modules_find(unwinder->modules, regs->pc - !exact_pc), ret);
	else if (goes_in_circles(unwinder, exact_pc, ret->signal_frame, regs, &caller, ret->cfa))
		stop(unwinder, ret, "no progress",
		     "no progress: frame address 0x%llx again or lower",
		     (unsigned long long)ret->cfa);
	else
		*regs = caller;
	return NULL;
}
