/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A process of a server that has waited for a compiler of kernels for long. */
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "judge/server/private.h"

static bool is_compiler(const char *comm)
{
	static const char *const names[] = {"nvcc",	 "cicc",  "ptxas", "cudafe++",
					    "fatbinary", "ninja", "hipcc", "clang",
					    "cc1plus",	 "c++",	  "g++"};

	for (size_t i = 0; comm && i < PRB_ARRAY_SIZE(names); i++)
		if (!strcmp(comm, names[i]))
			return true;
	return false;
}

/** The compiler that a process, or a helper below it, has run for the longest time. */
static const struct prb_server_helper *find_compiler(const struct prb_server *server, pid_t pid,
						     unsigned depth)
{
	const struct prb_server_helper *helper, *found = NULL;

	prb_vec_each (helper, &server->helpers) {
		const struct prb_server_helper *below = NULL;

		if (helper->ppid != pid || helper->ended)
			continue;
		if (is_compiler(helper->comm))
			below = helper;
		else if (depth < 4)
			below = find_compiler(server, helper->pid, depth + 1);
		if (below && (!found || below->started < found->started))
			found = below;
	}
	return found;
}

struct prb_error *prb_server_judge_compiling(struct prb_server_verdict *v,
					     const struct prb_server_process *p, size_t waiting)
{
	const struct prb_server_helper *compiler = find_compiler(&v->looks->now, p->pid, 0);
	struct prb_str *text;
	double age;

	if (!compiler)
		return NULL;
	age = v->looks->time - compiler->started;
	if (age < prb_limit(PRB_LIMIT_LOOP))
		return NULL;
	PRB_TRY(prb_server_found(v, PRB_CONFIDENCE_HIGH, "compiles a kernel"));
	v->finding->lasted = age;
	text = &v->finding->sentence;
	prb_server_put(text, p);
	prb_str_puts(text, " has been compiling for ");
	prb_text_duration(text, age);
	prb_str_puts(text, " with ");
	prb_text_escape(text, compiler->comm);
	prb_str_printf(text, " (pid %d), ", (int)compiler->pid);
	prb_server_put_doing(text, p);
	prb_str_puts(text, "; ");
	prb_server_put_count(text, waiting, "request");
	prb_str_puts(text, " wait");
	PRB_TRY(prb_server_evidence(v, p));
	prb_str_puts(&v->finding->wrong_if, "the compiler ends in a moment");
	return NULL;
}
