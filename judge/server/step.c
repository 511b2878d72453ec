/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A step of a scheduler that does not end: in its own process, or in those of its workers. */
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "judge/server/private.h"

enum { MOST_LINES = 8 };

/** Appends " and has not read 10 messages of the ring in shared memory", if it has not. */
static struct prb_error *put_unread(const struct prb_server_verdict *v,
				    const struct prb_server_process *s,
				    const struct prb_server_process *worker)
{
	struct prb_str *text = &v->finding->sentence;
	int64_t unread;

	/* All objects of both are searched: not for a suspicion. */
	if (!v->looks->twice)
		return NULL;
	PRB_TRY(prb_server_unread(s, worker, &unread));
	if (unread <= 0)
		return NULL;
	prb_str_puts(text, " and has not read ");
	prb_server_put_count(text, (size_t)unread, "message");
	prb_str_puts(text, " of the ring in shared memory");
	return NULL;
}

/** How old requests may be before what this process does is a reason for it. */
static double patience(const struct prb_server_process *p)
{
	return prb_limit(p->activity == PRB_ENGINE_LOAD ? PRB_LIMIT_LOADING : PRB_LIMIT_REQUEST);
}

/** Its workers, by what they do. */
struct team {
	struct prb_server_ranks busy; /* in a step */
	size_t count, idle, unknown;
	bool loads; /* one of them */
};

static struct team list_team(const struct prb_server *server, const struct prb_server_process *s)
{
	const struct prb_server_process *worker = NULL;
	struct team team = {};

	while ((worker = prb_server_next(server, PRB_ENGINE_WORKER, worker))) {
		if (!prb_server_serves(server, worker, s))
			continue;
		team.count++;
		team.idle += worker->activity == PRB_ENGINE_IDLE;
		team.unknown += worker->activity == PRB_ENGINE_UNKNOWN || worker->unreadable;
		team.loads = team.loads || worker->activity == PRB_ENGINE_LOAD;
		if ((worker->activity == PRB_ENGINE_STEP || worker->activity == PRB_ENGINE_LOAD) &&
		    team.busy.count < PRB_SERVER_PROCESSES_MAX)
			team.busy.list[team.busy.count++] = worker;
	}
	return team;
}

/** The worker that the scheduler waits for; NULL: several may be it. */
static const struct prb_server_process *find_late(const struct team *team)
{
	return team->busy.count == 1 ? team->busy.list[0] : prb_server_odd_rank(&team->busy);
}

static const char WRONG_IF[] =
	"a step takes that long; where a GPU kernel spins, the Python frame is its victim";

/** "worker TP1 (442) does not answer: it is in …; engine core (430) waits for it" */
static struct prb_error *put_late(struct prb_server_verdict *v, const struct prb_server_process *s,
				  const struct prb_server_process *late, const struct team *team)
{
	struct prb_str *text = &v->finding->sentence;

	prb_server_put(text, late);
	prb_str_puts(text, v->finding->confidence == PRB_CONFIDENCE_LOW ? " has not answered yet"
									: " does not answer");
	PRB_TRY(put_unread(v, s, late));
	prb_str_puts(text, ": it is ");
	prb_server_put_doing(text, late);
	if (v->looks->twice)
		prb_server_put_spinning(text, late);
	prb_str_puts(text, "; ");
	prb_server_put(text, s);
	prb_str_puts(text, " waits for it");
	if (team->busy.count > 1)
		prb_server_put_others(text, &team->busy, late, "other worker");
	if (team->idle)
		prb_str_printf(text, ", and %zu of %zu workers wait for work", team->idle,
			       team->count);
	return NULL;
}

/** "3 workers of engine core (430) do not answer: all are in …" */
static void put_several(struct prb_server_verdict *v, const struct prb_server_process *s,
			const struct team *team)
{
	struct prb_str *text = &v->finding->sentence;

	prb_server_put_count(text, team->busy.count, "worker");
	prb_str_puts(text, " of ");
	prb_server_put(text, s);
	prb_str_puts(text, v->finding->confidence == PRB_CONFIDENCE_LOW ? " have not answered yet: "
									: " do not answer: ");
	prb_server_put_places(text, &team->busy);
	if (v->looks->twice)
		prb_server_put_spinning(text, team->busy.list[0]);
	if (team->idle)
		prb_str_printf(text, ", and %zu of %zu workers wait for work", team->idle,
			       team->count);
}

static struct prb_error *put_team(struct prb_server_verdict *v, const struct prb_server_process *s,
				  const struct team *team)
{
	const struct prb_server_process *late = find_late(team);
	struct prb_str *text = &v->finding->sentence;

	if (late) {
		PRB_TRY(put_late(v, s, late, team));
	} else if (team->busy.count) {
		put_several(v, s, team);
	} else {
		prb_str_puts(text, "a reply was lost: ");
		prb_server_put(text, s);
		prb_str_printf(text, " waits for its workers, and all %zu wait for work",
			       team->count);
	}
	if (team->busy.count)
		prb_str_puts(&v->finding->wrong_if, WRONG_IF);
	return NULL;
}

struct prb_error *prb_server_judge_reply(struct prb_server_verdict *v,
					 const struct prb_server_process *s,
					 const struct prb_server_load *load)
{
	const struct prb_server_process *worker = NULL;
	const struct team team = list_team(&v->looks->now, s);
	enum prb_confidence sure = prb_server_confidence(v->looks);

	if (s->activity != PRB_ENGINE_REPLY || !team.count || team.unknown ||
	    load->oldest < prb_limit(team.loads ? PRB_LIMIT_LOADING : PRB_LIMIT_REQUEST))
		return NULL;
	/* Workers on other machines are not seen: then one of those may be meant. */
	if (!team.busy.count && s->workers.count != team.count)
		return NULL;
	PRB_TRY(prb_server_found(v, sure,
				 !team.busy.count	      ? "a reply was lost"
				 : sure == PRB_CONFIDENCE_LOW ? "a worker is in a step"
							      : "a worker does not answer"));
	v->finding->lasted = prb_server_silence(v->looks);
	PRB_TRY(put_team(v, s, &team));
	prb_str_puts(&v->finding->sentence, "; the oldest request is ");
	prb_text_duration(&v->finding->sentence, load->oldest);
	prb_str_puts(&v->finding->sentence, " old");
	PRB_TRY(prb_server_evidence(v, s));
	while ((worker = prb_server_next(&v->looks->now, PRB_ENGINE_WORKER, worker)))
		if (prb_server_serves(&v->looks->now, worker, s) &&
		    v->finding->evidence.count < MOST_LINES)
			PRB_TRY(prb_server_evidence(v, worker));
	return NULL;
}

static bool has_request(const struct prb_server_process *s, const char *id)
{
	const struct prb_server_request *request;

	prb_vec_each (request, &s->requests)
		if (request->id && !strcmp(request->id, id))
			return true;
	return false;
}

/** The schedulers that have the oldest request, too: all ranks of a model do. */
static struct prb_server_ranks list_ranks(const struct prb_server *server,
					  const struct prb_server_process *s,
					  const struct prb_server_load *load)
{
	struct prb_server_ranks ranks = {.list = {s}, .count = 1};
	const struct prb_server_process *other = NULL;

	while (load->eldest && load->eldest->id &&
	       (other = prb_server_next(server, PRB_ENGINE_SCHEDULER, other)))
		if (other != s && has_request(other, load->eldest->id) &&
		    ranks.count < PRB_SERVER_PROCESSES_MAX)
			ranks.list[ranks.count++] = other;
	return ranks;
}

bool prb_server_is_in_one_step(const struct prb_server_looks *looks,
			       const struct prb_server_process *s,
			       const struct prb_server_load *load)
{
	const struct prb_dump_thread *main = prb_server_main(s);
	const struct prb_server_process *before = prb_server_find(&looks->before, s->pid);

	if (s->activity != PRB_ENGINE_STEP || !load->running || !main)
		return false;
	if (main->idle_seconds >= prb_limit(PRB_LIMIT_LOOP))
		return true;
	return before && before->activity == PRB_ENGINE_STEP &&
	       prb_server_are_together(&(struct prb_server_ranks){{before, s}, 2});
}

static void put_steps(struct prb_server_verdict *v, const struct prb_server_process *late,
		      const struct prb_server_ranks *ranks)
{
	bool guess = v->finding->confidence == PRB_CONFIDENCE_LOW;
	struct prb_str *text = &v->finding->sentence;

	if (!late) {
		prb_server_put_count(text, ranks->count, "scheduler");
		prb_str_puts(text, guess ? " have not ended a step yet: "
					 : " do not get to the end of a step: ");
		prb_server_put_places(text, ranks);
	} else {
		prb_server_put(text, late);
		prb_str_puts(text, guess ? " has not ended a step yet: it is "
					 : " does not get to the end of a step: it is ");
		prb_server_put_doing(text, late);
	}
	if (v->looks->twice)
		prb_server_put_spinning(text, late ? late : ranks->list[0]);
	if (late && ranks->count > 1)
		prb_server_put_others(text, ranks, late, "other scheduler");
}

struct prb_error *prb_server_judge_step(struct prb_server_verdict *v,
					const struct prb_server_process *s,
					const struct prb_server_load *load)
{
	const struct prb_server_ranks ranks = list_ranks(&v->looks->now, s, load);
	const struct prb_server_process *late = ranks.count > 1 ? prb_server_odd_rank(&ranks) : s;
	double silent = prb_server_silent(v->looks);
	enum prb_confidence sure = prb_server_confidence(v->looks);
	struct prb_str *text;

	if ((s->activity != PRB_ENGINE_STEP && s->activity != PRB_ENGINE_LOAD) ||
	    load->oldest < patience(s))
		return NULL;
	/* Its steps have nothing to do. */
	if (load->held && !load->running && !load->waiting)
		return NULL;
	PRB_TRY(prb_server_found(v, sure,
				 sure == PRB_CONFIDENCE_LOW ? "a step has not ended yet"
							    : "a step does not end"));
	v->finding->lasted = prb_server_silence(v->looks);
	text = &v->finding->sentence;
	put_steps(v, late, &ranks);
	if (silent >= 0) {
		prb_str_puts(text, "; no token was made for ");
		prb_text_duration(text, silent);
	}
	prb_str_puts(text, "; ");
	prb_server_put_count(text, load->running + load->waiting + load->held, "request");
	prb_str_puts(text, " wait, the oldest for ");
	prb_text_duration(text, load->oldest);
	prb_str_puts(&v->finding->wrong_if, WRONG_IF);
	for (size_t i = 0; i < ranks.count && i < MOST_LINES; i++)
		PRB_TRY(prb_server_evidence(v, ranks.list[i]));
	return NULL;
}
