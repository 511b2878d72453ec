/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Members and classes of the enum module. */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "python/repr/core/handlers.h"

/* The name of a member, or 0 for a combination without a name. */
static struct prb_error *get_name(struct prb_repr *r, uint64_t object, uint64_t *ret)
{
	struct prb_error *err = prb_repr_attribute(r, object, "_name_", ret);

	if (prb_error_catch(&err, PRB_ERROR_NOT_FOUND) || (!err && prb_repr_is_none(r, *ret)))
		*ret = 0;
	return err;
}

static struct prb_error *put_value(struct prb_repr *r, uint64_t object)
{
	uint64_t value;

	PRB_TRY(prb_repr_attribute(r, object, "_value_", &value));
	prb_str_puts(r->out, ": ");
	PRB_TRY(prb_repr_object(r, value));
	prb_str_putc(r->out, '>');
	return NULL;
}

struct prb_error *prb_repr_handle_enum(struct prb_repr *r, uint64_t object, struct prb_type *type)
{
	uint64_t name;

	PRB_TRY(get_name(r, object, &name));
	prb_str_putc(r->out, '<');
	PRB_TRY(prb_repr_put_name(r, type));
	prb_str_putc(r->out, '.');
	if (name)
		PRB_TRY(prb_repr_put_text(r, name));
	else
		prb_str_puts(r->out, "None");
	return put_value(r, object);
}

enum { MEMBERS_MAX = 256 };

/* Members that a combination of flags is made of (up to 3.10 it has no name of its own). */
struct member {
	int64_t value;
	uint64_t object, name;
};

struct decomposition {
	struct prb_repr *r;
	int64_t value;
	PRB_VEC(struct member) members;
	struct member self; /* the entry of exactly this value */
	struct prb_error *err;
};

static void decomposition_guard(struct decomposition *d)
{
	prb_vec_free(&d->members);
}

static struct prb_error *consider(struct decomposition *d, uint64_t key, uint64_t object)
{
	struct member member = {.object = object};

	PRB_TRY(prb_repr_int(d->r, key, &member.value));
	PRB_TRY(get_name(d->r, object, &member.name));
	if (member.value == d->value)
		d->self = member;

	bool single = member.value > 0 && !(member.value & (member.value - 1));

	if (!member.value || (member.value & d->value) != member.value ||
	    (!member.name && (!single || d->value < 0)))
		return NULL;

	if (d->members.count >= MEMBERS_MAX)
		return prb_repr_bad(object, "more flags than an int has bits");

	struct member *place = prb_vec_push(&d->members);

	if (!place)
		return prb_error_nomem();
	*place = member;
	return NULL;
}

static bool visit_member(void *context, uint64_t key, uint64_t value)
{
	struct decomposition *d = context;

	d->err = consider(d, key, value);
	return !d->err;
}

static int higher_first(const void *a, const void *b)
{
	const struct member *left = a, *right = b;

	return (left->value < right->value) - (left->value > right->value);
}

static struct prb_error *put_member(struct prb_repr *r, const struct member *member)
{
	if (member->name)
		return prb_repr_put_text(r, member->name);
	prb_str_printf(r->out, "%lld", (long long)member->value);
	return NULL;
}

static struct prb_error *put_members(struct decomposition *d)
{
	struct prb_repr *r = d->r;
	struct member *member;
	bool first = true;

	if (d->members.count)
		qsort(d->members.items, d->members.count, sizeof(*d->members.items), higher_first);
	else if (d->self.object)
		return put_member(r, &d->self);
	prb_vec_each (member, &d->members) {
		/* Taken apart: the whole itself is not named again. */
		if (d->members.count > 1 && first && member == d->members.items &&
		    member->value == d->value)
			continue;
		if (!first)
			prb_str_putc(r->out, '|');
		first = false;
		PRB_TRY(put_member(r, member));
	}
	return NULL;
}

static struct prb_error *put_combination(struct prb_repr *r, uint64_t object,
					 const struct prb_type *type)
{
	__attribute__((cleanup(decomposition_guard))) struct decomposition d = {.r = r};
	uint64_t map, value;

	PRB_TRY(prb_repr_attribute(r, object, "_value_", &value));
	PRB_TRY(prb_repr_int(r, value, &d.value));
	PRB_TRY(prb_repr_lookup(r, type, "_value2member_map_", &map, NULL));

	struct prb_error *err = prb_repr_dict_each(r, map, visit_member, &d);

	if (err) {
		prb_error_destroy(d.err);
		return err;
	}
	PRB_TRY(d.err);
	return put_members(&d);
}

struct prb_error *prb_repr_handle_flag(struct prb_repr *r, uint64_t object, struct prb_type *type)
{
	uint64_t name;

	PRB_TRY(get_name(r, object, &name));
	prb_str_putc(r->out, '<');
	PRB_TRY(prb_repr_put_name(r, type));
	if (name || !r->traits->enum_value_first)
		prb_str_putc(r->out, '.');
	if (name)
		PRB_TRY(prb_repr_put_text(r, name));
	else if (!r->traits->enum_value_first)
		PRB_TRY(put_combination(r, object, type));
	return put_value(r, object);
}

/* Up to 3.10, of the flags of `re` alone: the members in the order of their definition. */
struct named_flags {
	struct prb_repr *r;
	int64_t value;
	unsigned shown;
	struct prb_error *err;
};

static bool put_named_flag(void *context, uint64_t key, uint64_t member)
{
	struct named_flags *flags = context;
	int64_t value = 0;
	uint64_t number;

	flags->err = prb_repr_attribute(flags->r, member, "_value_", &number);
	if (!flags->err)
		flags->err = prb_repr_int(flags->r, number, &value);
	if (flags->err || !(flags->value & value))
		return !flags->err;
	flags->value &= ~value;
	prb_str_puts(flags->r->out, flags->shown++ ? "|re." : "re.");
	flags->err = prb_repr_put_text(flags->r, key);
	return !flags->err;
}

static struct prb_error *put_global_flags(struct prb_repr *r, uint64_t object,
					  struct prb_type *type)
{
	struct named_flags flags = {.r = r};
	uint64_t number, map;

	PRB_TRY(prb_repr_attribute(r, object, "_value_", &number));
	PRB_TRY(prb_repr_int(r, number, &flags.value));
	PRB_TRY(prb_repr_lookup(r, type, "_member_map_", &map, NULL));
	if (flags.value <= 0)
		return prb_repr_bad(object, "without some flags");

	struct prb_error *err = prb_repr_dict_each(r, map, put_named_flag, &flags);

	if (err) {
		prb_error_destroy(flags.err);
		return err;
	}
	if (!flags.err && flags.value)
		prb_str_printf(r->out, "%s0x%llx", flags.shown ? "|" : "",
			       (unsigned long long)flags.value);
	return flags.err;
}

/* Members that are also names of their module: "re.IGNORECASE", "re.A|re.I". */
struct prb_error *prb_repr_handle_global_enum(struct prb_repr *r, uint64_t object,
					      struct prb_type *type)
{
	enum { NAME_MAX_CHARACTERS = 1000 };
	prb_auto_str struct prb_str names = {};
	prb_auto_str struct prb_str module = {};
	uint64_t name, module_name;

	PRB_TRY(get_name(r, object, &name));
	if (!name)
		return prb_repr_put_or_default(r, object, type, put_global_flags);
	PRB_TRY(prb_repr_text(r, name, NAME_MAX_CHARACTERS, &names));
	PRB_TRY(prb_repr_lookup(r, type, "__module__", &module_name, NULL));
	PRB_TRY(prb_repr_text(r, module_name, NAME_MAX_CHARACTERS, &module));

	const char *last = strrchr(prb_str_text(&module), '.');

	last = last ? last + 1 : prb_str_text(&module);
	for (const char *at = prb_str_text(&names); *at;) {
		size_t length = strcspn(at, "|");

		prb_str_printf(r->out, "%s.%.*s%s", last, (int)length, at, at[length] ? "|" : "");
		at += length + (at[length] ? 1 : 0);
	}
	return NULL;
}

struct prb_error *prb_repr_handle_enum_class(struct prb_repr *r, uint64_t object,
					     struct prb_type *type __attribute__((unused)))
{
	struct prb_type *self, *base;
	uint64_t mro[PRB_MRO_MAX];
	size_t count;
	bool flag = false;

	PRB_TRY(prb_repr_type(r, object, &self));
	PRB_TRY(prb_repr_mro(r, self, mro, &count));
	for (size_t i = 0; i < count && r->traits->enum_value_first; i++) {
		PRB_TRY(prb_repr_type(r, mro[i], &base));
		flag |= strcmp(base->name, "Flag") == 0;
	}
	prb_str_puts(r->out, flag ? "<flag '" : "<enum '");
	PRB_TRY(prb_repr_put_name(r, self));
	prb_str_puts(r->out, "'>");
	return NULL;
}
