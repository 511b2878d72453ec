/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The page on a terminal, and keys. */
#include "cli/commands/top/top.h"

#include <errno.h>
#include <locale.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define NCURSES_WIDECHAR 1
#include <curses.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"

struct screen {
	struct prb_top *top;
	struct prb_top_page page;
	size_t rows;	      /* of the table */
	size_t first, chosen; /* rows */
	bool over, typing;
	struct prb_str typed;
};

static const double windows[] = {0, 10, 60, 1e-9};

/* Line @number of the page, or NULL. */
static const char *line_at(const struct prb_top_page *page, size_t number)
{
	const char *p = prb_str_text(&page->text);

	for (; number && *p; number--)
		p += strcspn(p, "\n") + 1;
	return *p ? p : NULL;
}

/* As much of a line as there are columns for; where something is missing it ends with "…". */
static void draw_line(int y, const char *text, int attributes)
{
	prb_auto_str struct prb_str out = {};
	size_t width = 0, columns = (size_t)COLS;

	while (*text && *text != '\n') {
		uint32_t c;
		size_t used = prb_text_decode(text, &c), wide = prb_text_char_width(c);

		if (width + wide + (text[used] && text[used] != '\n') > columns) {
			prb_str_puts(&out, "…");
			width++;
			break;
		}
		prb_str_append(&out, text, used);
		width += wide;
		text += used;
	}
	if (attributes & A_REVERSE)
		prb_text_spaces(&out, columns > width ? columns - width : 0);
	attrset(attributes);
	mvaddstr(y, 0, prb_str_text(&out));
	attrset(A_NORMAL);
	clrtoeol();
}

static size_t table_height(const struct screen *s)
{
	return (size_t)LINES > s->page.head + 1 ? (size_t)LINES - s->page.head - 1 : 1;
}

static void draw_last_line(const struct screen *s)
{
	prb_auto_str struct prb_str text = {};

	if (s->typing) {
		prb_str_putc(&text, '/');
		prb_text_escape(&text, prb_str_text(&s->typed));
	} else if (s->top->message.length) {
		prb_text_escape(&text, prb_str_text(&s->top->message));
	} else {
		prb_str_puts(&text,
			     "? keys  Tab threads  / filter  s sort  m mode  w window  q quit");
	}
	draw_line(LINES - 1, prb_str_text(&text), A_BOLD);
}

static struct prb_error *draw(struct screen *s)
{
	const char *line;
	size_t height, number = 0;

	prb_str_truncate(&s->page.text, 0);
	PRB_TRY(prb_top_page(s->top, 0, &s->page));
	for (const char *p = prb_str_text(&s->page.text); *p; p++)
		number += *p == '\n';
	s->rows = number > s->page.head ? number - s->page.head : 0;
	height = table_height(s);
	s->chosen = PRB_MIN(s->chosen, s->rows ? s->rows - 1 : 0);
	s->first = PRB_MIN(s->first, s->chosen);
	s->first = PRB_MAX(s->first, s->chosen >= height ? s->chosen - height + 1 : 0);
	erase();
	for (size_t y = 0; y < s->page.head && y + 1 < (size_t)LINES; y++) {
		line = line_at(&s->page, y);
		if (line)
			draw_line((int)y, line, y + 1 == s->page.head ? A_REVERSE : A_BOLD);
	}
	line = line_at(&s->page, s->page.head + s->first);
	for (size_t y = 0; y < height && line && *line; y++) {
		draw_line((int)(s->page.head + y), line,
			  s->first + y == s->chosen ? A_UNDERLINE : 0);
		line += strcspn(line, "\n") + 1;
	}
	draw_last_line(s);
	refresh();
	return NULL;
}

static void choose(struct screen *s, long by)
{
	long row = (long)s->chosen + by;

	row = PRB_MIN(row, (long)s->rows - 1);
	s->chosen = (size_t)PRB_MAX(row, 0L);
}

/* Shows an error of a file or a pattern in the last line. */
static void tell(struct prb_top *top, struct prb_error *err)
{
	if (!err)
		return;
	prb_str_truncate(&top->message, 0);
	prb_str_puts(&top->message, err->message);
	prb_error_destroy(err);
}

/* Functions of the chosen thread alone, or its stack. */
static void follow(struct screen *s, enum prb_top_view view)
{
	const char *line = line_at(&s->page, s->page.head + s->chosen);
	pid_t tid;

	if (s->top->view != PRB_TOP_THREADS || !line)
		return;
	tid = prb_top_tid_in(line);
	if (!tid)
		return;
	if (view == PRB_TOP_STACK)
		s->top->stack_of = tid;
	else
		s->top->tid = tid;
	s->top->view = view;
	if (view == PRB_TOP_STACK)
		tell(s->top, prb_top_read_stack(s->top));
	s->chosen = 0;
}

static void show_view(struct screen *s, enum prb_top_view view)
{
	s->top->view = view;
	s->chosen = s->first = 0;
}

static enum prb_top_view next_view(enum prb_top_view view)
{
	return view == PRB_TOP_FUNCTIONS ? PRB_TOP_TREE
	       : view == PRB_TOP_TREE	 ? PRB_TOP_THREADS
					 : PRB_TOP_FUNCTIONS;
}

static void next_window(struct prb_top *top)
{
	size_t i = 0;

	while (i + 1 < PRB_ARRAY_SIZE(windows) && top->window != windows[i])
		i++;
	top->window = windows[(i + 1) % PRB_ARRAY_SIZE(windows)];
}

static void use_mouse(struct screen *s)
{
	MEVENT event;

	if (getmouse(&event) != OK)
		return;
	if (event.bstate & BUTTON4_PRESSED)
		choose(s, -3);
	else if (event.bstate & BUTTON5_PRESSED)
		choose(s, 3);
	else if (event.bstate & (BUTTON1_CLICKED | BUTTON1_PRESSED) && event.y >= (int)s->page.head)
		s->chosen = s->first + (size_t)event.y - s->page.head;
}

static void type(struct screen *s, int key)
{
	if (key == '\n' || key == KEY_ENTER) {
		s->typing = false;
		tell(s->top, prb_top_set_filter(s->top, prb_str_text(&s->typed)));
	} else if (key == 27) {
		s->typing = false;
	} else if ((key == KEY_BACKSPACE || key == 127 || key == 8) && s->typed.length) {
		prb_str_truncate(&s->typed, s->typed.length - 1);
	} else if (key >= ' ' && key < 256 && key != 127) {
		prb_str_putc(&s->typed, (char)key);
	}
}

static bool move_to_row(struct screen *s, int key)
{
	long height = (long)table_height(s);

	switch (key) {
	case KEY_UP:
	case 'k':
		choose(s, -1);
		return true;
	case KEY_DOWN:
	case 'j':
		choose(s, 1);
		return true;
	case KEY_PPAGE:
		choose(s, -height);
		return true;
	case KEY_NPAGE:
		choose(s, height);
		return true;
	case KEY_HOME:
		s->chosen = 0;
		return true;
	case KEY_END:
		choose(s, (long)s->rows);
		return true;
	case KEY_MOUSE:
		use_mouse(s);
		return true;
	default:
		return false;
	}
}

static void change(struct screen *s, int key)
{
	struct prb_top *top = s->top;

	switch (key) {
	case 'm':
		top->weight = (enum prb_weight)((top->weight + 1) % PRB_WEIGHTS);
		break;
	case 's':
		top->sort = (enum prb_top_sort)((top->sort + 1) % PRB_TOP_SORTS);
		break;
	case 'l':
		top->lines = !top->lines;
		break;
	case 'w':
		next_window(top);
		break;
	case 'a':
		top->tid = 0;
		break;
	case ' ':
		top->held = top->held ? 0 : top->parts.count;
		break;
	case 'n':
		*top->native = !*top->native;
		prb_top_reset(top);
		break;
	case 'r':
		prb_top_reset(top);
		break;
	case 'S':
		tell(top, prb_top_save(top));
		break;
	default:
		break;
	}
}

static void press(struct screen *s, int key)
{
	if (s->typing) {
		type(s, key);
		return;
	}
	prb_str_truncate(&s->top->message, 0);
	if (s->top->view == PRB_TOP_HELP && key != KEY_RESIZE && key != 'q' && key != 3) {
		show_view(s, PRB_TOP_FUNCTIONS);
		return;
	}
	if (move_to_row(s, key))
		return;
	if (key == 'q' || key == 3)
		s->over = true;
	else if (key == '?')
		show_view(s, PRB_TOP_HELP);
	else if (key == '\t')
		show_view(s, next_view(s->top->view));
	else if (key == 'f')
		show_view(s, PRB_TOP_FUNCTIONS);
	else if (key == 'c')
		show_view(s, PRB_TOP_TREE);
	else if (key == 't')
		show_view(s, PRB_TOP_THREADS);
	else if (key == '\n' || key == KEY_ENTER)
		follow(s, PRB_TOP_FUNCTIONS);
	else if (key == 'v')
		follow(s, PRB_TOP_STACK);
	else if (key == '/') {
		s->typing = true;
		prb_str_truncate(&s->typed, 0);
	} else
		change(s, key);
}

/* A terminal that is gone is an end like any other. */
static struct prb_error *wait_for_event(struct screen *s)
{
	struct pollfd wait[] = {{.fd = STDIN_FILENO, .events = POLLIN},
				{.fd = prb_live_fd(s->top->live), .events = POLLIN}};
	bool is_new;
	int key;

	if (poll(wait, PRB_ARRAY_SIZE(wait), -1) < 0 && errno != EINTR)
		return prb_error_os(errno, "cannot wait for keys");
	s->over |= wait[0].revents & (POLLHUP | POLLERR | POLLNVAL);
	/* The effect of a key depends on the page that the previous key led to. */
	while (!s->over && (key = getch()) != ERR) {
		press(s, key);
		PRB_TRY(draw(s));
	}
	PRB_TRY(prb_top_take(s->top, &is_new));
	if (is_new && s->top->view == PRB_TOP_STACK && !s->top->held)
		tell(s->top, prb_top_read_stack(s->top));
	return NULL;
}

/* Keys come as they are: nothing that is typed stops us while a thread of the target is held. */
static struct prb_error *begin(SCREEN **ret)
{
	if (!setlocale(LC_CTYPE, "C.UTF-8"))
		setlocale(LC_CTYPE, "");
	*ret = newterm(NULL, stdout, stdin);
	if (!*ret)
		return prb_error_hint(prb_error_create(PRB_ERROR_UNSUPPORTED,
						       "this terminal's type ($TERM) is unknown"),
				      "'top --batch' prints lines instead");
	raw();
	noecho();
	nodelay(stdscr, true);
	keypad(stdscr, true);
	set_escdelay(50);
	curs_set(0);
	mousemask(BUTTON1_CLICKED | BUTTON1_PRESSED | BUTTON4_PRESSED | BUTTON5_PRESSED, NULL);
	return NULL;
}

struct prb_error *prb_top_screen(struct prb_top *top, const volatile bool *over,
				 const volatile sig_atomic_t *signal)
{
	struct screen s = {.top = top};
	struct prb_error *err = NULL;
	SCREEN *terminal;

	PRB_TRY(begin(&terminal));
	while (!err && !s.over && !*over && !*signal) {
		err = draw(&s);
		if (!err)
			err = wait_for_event(&s);
	}
	endwin();
	delscreen(terminal);
	prb_str_deinit(&s.page.text);
	prb_str_deinit(&s.typed);
	return err;
}
