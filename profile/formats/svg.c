/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A flame graph as a picture without scripts: callers below what they call, the heaviest calls on
 * the left. Browsers show what a box stands for when the pointer is on it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "profile/formats/format.h"

enum {
	WIDTH = 1200,
	MARGIN = 10,
	ROW = 18,
	HEAD = 62,
	FOOT = 34,
	COLOURS = 8,
	LETTER = 7, /* no letter of the font is wider */
};
static const double narrowest = 0.2; /* pixels; narrower boxes are left out and counted */

struct node {
	uint32_t stack, caller; /* as folded */
	int64_t weight;
};

struct picture {
	const struct prb_recording *recording;
	const struct prb_profile_choice *choice;
	struct prb_sink *sink;
	uint32_t *folded;
	int64_t *weights; /* of stacks, with all that they call */
	double *left;	  /* of stacks, in pixels */
	double *filled;	  /* where the next call of a stack begins */
	PRB_VEC(struct node) nodes;
	double scale; /* pixels per nanosecond */
	int height;
	size_t left_out;
};

static void picture_deinit(struct picture *p)
{
	free(p->folded);
	free(p->weights);
	free(p->left);
	free(p->filled);
	prb_vec_free(&p->nodes);
}

/* Callers first; of one caller the heaviest call first. */
static int compare_nodes(const void *a, const void *b)
{
	const struct node *x = a, *y = b;

	if (x->caller != y->caller)
		return x->caller < y->caller ? -1 : 1;
	if (x->weight != y->weight)
		return x->weight < y->weight ? 1 : -1;
	return (x->stack > y->stack) - (x->stack < y->stack);
}

static void weigh(struct picture *p)
{
	const struct prb_tree *tree = p->recording->tree;
	const struct prb_run *run;

	prb_vec_each (run, &p->recording->runs)
		p->weights[p->folded[run->stack]] += prb_run_weight(run, p->choice);
	for (size_t i = tree->stacks.count; i-- > 1;)
		if (p->folded[i] == i)
			p->weights[p->folded[tree->stacks.items[i].parent]] += p->weights[i];
}

static struct prb_error *choose_nodes(struct picture *p)
{
	const struct prb_tree *tree = p->recording->tree;
	uint32_t deepest = 0;

	for (uint32_t i = 1; i < tree->stacks.count; i++) {
		uint32_t depth = tree->stacks.items[i].depth;
		struct node *node;

		if (p->folded[i] != i || p->weights[i] <= 0)
			continue;
		if ((double)p->weights[i] * p->scale < narrowest) {
			p->left_out++;
			continue;
		}
		node = prb_vec_push(&p->nodes);
		if (!node)
			return prb_error_nomem();
		*node = (struct node){i, p->folded[tree->stacks.items[i].parent], p->weights[i]};
		deepest = depth > deepest ? depth : deepest;
	}
	if (p->nodes.count)
		qsort(p->nodes.items, p->nodes.count, sizeof(*p->nodes.items), compare_nodes);
	p->height = HEAD + (int)deepest * ROW + FOOT;
	return NULL;
}

static struct prb_error *lay_out(struct picture *p)
{
	size_t stacks = p->recording->tree->stacks.count;

	p->weights = calloc(stacks, sizeof(*p->weights));
	p->left = calloc(stacks, sizeof(*p->left));
	p->filled = calloc(stacks, sizeof(*p->filled));
	if (!p->weights || !p->left || !p->filled)
		return prb_error_nomem();
	PRB_TRY(prb_fold_stacks(p->recording->tree, p->choice->lines, &p->folded));
	weigh(p);
	p->scale = p->weights[0] > 0 ? (WIDTH - 2.0 * MARGIN) / (double)p->weights[0] : 0;
	return choose_nodes(p);
}

/* Text that no XML reader takes for anything else; @p most characters, "…" for the others. */
static void put_xml(struct prb_str *s, const char *text, size_t most)
{
	prb_auto_str struct prb_str plain = {};
	const char *at;

	prb_text_escape(&plain, text);
	s->failed |= plain.failed;
	at = prb_str_text(&plain);
	for (uint32_t c; *at && most; most--) {
		size_t length = prb_text_decode(at, &c);

		if (most == 1 && at[length])
			prb_str_puts(s, "…");
		else if (c < 0x80 && strchr("&<>\"'", (int)c))
			prb_str_printf(s, "&#%u;", c);
		else if (c == 0xfffe || c == 0xffff) /* no characters, says XML */
			prb_str_printf(s, "\\u%04x", c);
		else
			prb_str_append(s, at, length);
		at += length;
	}
}

static void put_weight(const struct picture *p, int64_t weight)
{
	if (p->recording->bytes)
		prb_text_bytes(&p->sink->text, (double)weight);
	else
		prb_text_duration(&p->sink->text, (double)weight / 1e9);
}

/* One colour for each file. */
static unsigned colour_of(const struct prb_tree_function *function)
{
	uint32_t hash = 2166136261u;

	if (function->kind == PRB_FUNCTION_NOTE)
		return COLOURS;
	for (const char *c = function->file ? function->file : ""; *c; c++)
		hash = (hash ^ (unsigned char)*c) * 16777619u;
	return (hash ^ hash >> 15) % COLOURS;
}

static void put_title(struct picture *p, struct prb_place place, int64_t weight)
{
	struct prb_str *s = &p->sink->text;
	prb_auto_str struct prb_str label = {};

	prb_profile_label(&label, place);
	s->failed |= label.failed;
	prb_str_puts(s, "<title>");
	put_xml(s, prb_str_text(&label), SIZE_MAX);
	prb_str_puts(s, "\n");
	put_weight(p, weight);
	prb_str_printf(s, ", %.2f %%</title>", 100 * (double)weight / (double)p->weights[0]);
}

static void put_box(struct picture *p, struct prb_place place, double left, double width, int top)
{
	struct prb_str *s = &p->sink->text;
	size_t letters = (size_t)(width / LETTER);

	prb_str_printf(s, "<rect class=\"c%u\" x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\"/>",
		       colour_of(place.function), left, top, width, ROW - 1);
	if (letters < 3)
		return;
	prb_str_printf(s, "<text x=\"%.2f\" y=\"%d\">", left + 3, top + 13);
	put_xml(s, place.function->name, letters);
	prb_str_puts(s, "</text>");
}

static struct prb_error *put_node(struct picture *p, const struct node *node)
{
	const struct prb_tree *tree = p->recording->tree;
	uint32_t depth = tree->stacks.items[node->stack].depth;
	struct prb_place place = prb_place_get(tree, p->choice->lines,
					       prb_place_of(tree, p->choice->lines, node->stack));
	double width = (double)node->weight * p->scale;
	double left = p->left[node->caller] + p->filled[node->caller];

	p->left[node->stack] = left;
	p->filled[node->caller] += width;
	prb_str_puts(&p->sink->text, "<g>");
	put_title(p, place, node->weight);
	put_box(p, place, MARGIN + left, width, p->height - FOOT - (int)depth * ROW);
	prb_str_puts(&p->sink->text, "</g>\n");
	return prb_sink_flush(p->sink, false);
}

/*
 * Hues that colour-blind readers can tell apart; the last one is for boxes that are no functions.
 */
static void put_style(struct prb_str *s)
{
	static const char *const colours[2][COLOURS + 1] = {
		{"#f6b26b", "#8ecae6", "#7bd1b0", "#f4d35e", "#a9b8f5", "#f19a8e", "#dba8d4",
		 "#c9cf7f", "#d3d6db"},
		{"#a8641c", "#2b6f92", "#1f7a5c", "#8a7316", "#4d5fb3", "#a54a3d", "#87507f",
		 "#6b7126", "#4a4f58"}};

	prb_str_puts(s, "<style>text{font:11px ui-monospace,Menlo,Consolas,monospace;fill:#16181d}"
			".h{font:600 16px system-ui,sans-serif}.m{font:12px system-ui,sans-serif;"
			"fill:#5b6270}.b{fill:#fff}rect{stroke:#fff;stroke-width:.4}"
			"g:hover rect{stroke:#16181d;stroke-width:1}");
	for (unsigned i = 0; i <= COLOURS; i++)
		prb_str_printf(s, ".c%u{fill:%s}", i, colours[0][i]);
	prb_str_puts(s, "@media(prefers-color-scheme:dark){text{fill:#f2f4f8}.m{fill:#9aa3b2}"
			".b{fill:#14171c}rect{stroke:#14171c}g:hover rect{stroke:#fff}");
	for (unsigned i = 0; i <= COLOURS; i++)
		prb_str_printf(s, ".c%u{fill:%s}", i, colours[1][i]);
	prb_str_puts(s, "}</style>\n");
}

static void put_head(struct picture *p)
{
	const struct prb_recording *r = p->recording;
	struct prb_str *s = &p->sink->text;

	prb_str_printf(
		s,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
		"height=\"%d\" role=\"img\">\n<title>",
		WIDTH, p->height, WIDTH, p->height);
	put_xml(s, r->command ? r->command : "?", SIZE_MAX);
	prb_str_puts(s, "</title>\n");
	put_style(s);
	prb_str_printf(s,
		       "<rect class=\"b\" width=\"100%%\" height=\"100%%\"/>\n"
		       "<text class=\"h\" x=\"%d\" y=\"27\">",
		       MARGIN);
	put_xml(s, r->command ? r->command : "?", 120);
	prb_str_printf(s, "</text>\n<text class=\"m\" x=\"%d\" y=\"47\">%d · Python ", MARGIN,
		       (int)r->pid);
	put_xml(s, r->python ? r->python : "?", 40);
	prb_str_puts(s, " · ");
	prb_text_duration(s, (double)r->duration / 1e9);
	prb_str_puts(s, " · ");
	put_weight(p, p->weights[0]);
	prb_str_printf(s, " %s", r->bytes ? "allocated" : prb_weight_words[p->choice->weight].what);
	if (prb_profile_end_text(r->end))
		prb_str_printf(s, " · %s", prb_profile_end_text(r->end));
	prb_str_puts(s, "</text>\n");
}

static void put_foot(struct picture *p)
{
	struct prb_str *s = &p->sink->text;

	prb_str_printf(s, "<text class=\"m\" x=\"%d\" y=\"%d\">probing " PRB_VERSION, MARGIN,
		       p->height - 10);
	if (!p->weights[0])
		prb_str_printf(s, " · %s",
			       p->recording->bytes ? "no allocation was sampled"
						   : prb_weight_words[p->choice->weight].none);
	if (p->left_out)
		prb_str_printf(s, " · %zu more, narrower than %.1f pixels, are not drawn",
			       p->left_out, narrowest);
	prb_str_puts(s, "</text>\n</svg>\n");
}

static struct prb_error *write_svg(const struct prb_recording *recording,
				   const struct prb_profile_choice *choice, struct prb_sink *sink)
{
	__attribute__((cleanup(picture_deinit))) struct picture p = {recording, choice, sink};
	const struct node *node;

	PRB_TRY(lay_out(&p));
	put_head(&p);
	prb_vec_each (node, &p.nodes)
		PRB_TRY(put_node(&p, node));
	put_foot(&p);
	return prb_sink_flush(sink, true);
}

const struct prb_profile_format prb_format_svg = {
	.name = "svg",
	.extensions = {".svg"},
	.any_order = true,
	.bytes = true,
	.does = "a flame graph as a picture",
	.write = write_svg,
};
