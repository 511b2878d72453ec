/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A recorder's face towards a target: ops that hand on to the target's own and note each answer. */
#include <stddef.h>

#include "base/cleanup.h"
#include "target/snapshot/recorder.h"
#include "target/snapshot/snapshot.h"

/* The ops of a target that is recorded are those within its recorder. */
static struct prb_recorder *of(const struct prb_target *t)
{
	return (struct prb_recorder *)((uintptr_t)t->ops - offsetof(struct prb_recorder, ops));
}

typedef struct prb_error *text_op(struct prb_target *t, const char *name, struct prb_str *ret);

static struct prb_error *ask(struct prb_target *t, text_op *op, char kind, const char *name,
			     struct prb_str *ret)
{
	size_t before = ret->length;
	struct prb_error *err = op(t, name, ret);

	if (!err && ret->failed)
		err = prb_error_nomem();
	prb_recorder_note(of(t), kind, name, prb_str_text(ret) + before, ret->length - before, err);
	return err;
}

static struct prb_error *record_file(struct prb_target *t, const char *name, struct prb_str *ret)
{
	return ask(t, of(t)->source->read_file, 'f', name, ret);
}

static struct prb_error *record_link(struct prb_target *t, const char *name, struct prb_str *ret)
{
	return ask(t, of(t)->source->read_link, 'l', name, ret);
}

static struct prb_error *record_list(struct prb_target *t, const char *name, struct prb_str *ret)
{
	return ask(t, of(t)->source->list, 'd', name, ret);
}

static struct prb_error *record_registers(struct prb_target *t, pid_t tid, struct prb_regs *ret)
{
	PRB_TRY(of(t)->source->registers(t, tid, ret));
	prb_recorder_registers(of(t), tid, ret);
	return NULL;
}

static bool record_recalled(struct prb_target *t, const char *key, struct prb_str *ret)
{
	if (!of(t)->source->recall(t, key, ret))
		return false;
	prb_recorder_note(of(t), 'k', key, prb_str_text(ret), ret->length, NULL);
	return true;
}

static void record_derived(struct prb_target *t, const char *key, const void *value, size_t length)
{
	prb_recorder_note(of(t), 'k', key, value, length, NULL);
}

static void record_taken_registers(struct prb_target *t, pid_t tid, const struct prb_regs *regs)
{
	prb_recorder_registers(of(t), tid, regs);
}

static void record_pages(struct prb_target *t, pid_t tid, const struct prb_view *view)
{
	prb_recorder_pages(of(t), tid, view);
}

static void give_back_ops(struct prb_recorder *r)
{
	r->target->ops = r->source;
	r->target = NULL;
}

/* Its memory is gone already. */
static void record_end(struct prb_target *t)
{
	give_back_ops(of(t));
	t->ops->destroy(t);
}

void prb_recorder_attach(struct prb_recorder *r, struct prb_target *t)
{
	const struct prb_target_ops *source = t->ops;

	r->target = t;
	r->source = source;
	r->source_kept = t->mem->kept;
	r->ops = *source; /* opening files is not recorded, nor what the target cannot do */
	r->ops.read_file = source->read_file ? record_file : NULL;
	r->ops.read_link = source->read_link ? record_link : NULL;
	r->ops.list = source->list ? record_list : NULL;
	r->ops.registers = source->registers ? record_registers : NULL;
	r->ops.recall = source->recall ? record_recalled : NULL;
	r->ops.remember = record_derived;
	r->ops.note_registers = record_taken_registers;
	r->ops.note_pages = record_pages;
	r->ops.destroy = record_end;
	t->ops = &r->ops;
	t->mem->kept = false;
}

void prb_recorder_detach(struct prb_recorder *r)
{
	if (!r->target)
		return;
	r->target->mem->kept = r->source_kept;
	give_back_ops(r);
}
