/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A description of a descriptor, from its link under /proc/PID/fd. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "target/proc/text.h"
#include "dump/waits/wait_private.h"

uint64_t prb_link_inode(const char *link, const char *kind)
{
	size_t length = strlen(kind);

	if (strncmp(link, kind, length) || strncmp(link + length, ":[", 2))
		return 0;
	return strtoull(link + length + 2, NULL, 10);
}

static void put_pipe(struct prb_wait_context *c, int fd, const char *link,
		     enum prb_direction direction, struct prb_str *s)
{
	prb_auto_str struct prb_str other = {};

	prb_str_printf(s, "pipe %d", fd);
	if (link[0] == '/') {
		/* Whoever knows the name can open it; 'probing run' asks for its own tree alone. */
		if (c->search)
			prb_enders_outside(c);
		prb_str_putc(s, ' ');
		prb_put_path(c, link, s);
	}
	if (direction == PRB_EITHER_WAY)
		return;
	prb_describe_holders(c, link, direction == PRB_INCOMING ? PRB_CAN_WRITE : PRB_CAN_READ, 0,
			     &other);
	if (other.length)
		prb_str_printf(s, " %s %s", direction == PRB_INCOMING ? "←" : "→",
			       prb_str_text(&other));
	s->failed |= other.failed;
}

static bool is_below(const char *path, const char *folder, size_t length)
{
	return !strncmp(path, folder, length) && path[length] == '/';
}

void prb_put_path(struct prb_wait_context *c, const char *path, struct prb_str *s)
{
	static const char unreachable[] = "(unreachable)";

	if (!c->root_known) {
		c->root_known = true;
		if (!prb_wait_ok(s, prb_target_read_link(c->target, &c->root, "root")))
			prb_str_truncate(&c->root, 0);
	}
	/* A root outside of ours: the kernel gives the path below its mount's root. */
	if (!strncmp(path, unreachable, sizeof(unreachable) - 1))
		path += sizeof(unreachable) - 1;
	else if (c->root.length > 1 && is_below(path, c->root.data, c->root.length))
		path += c->root.length;
	prb_text_escape_bytes(s, path, strlen(path));
}

/*
 * A path that a thread sleeps on interruptibly is a fifo or a device, so stat() is safe. For a file
 * on a dead server it would hang us too.
 */
static bool is_fifo(struct prb_wait_context *c, int fd)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", c->target->pid, fd);
	return c->state == 'S' && !stat(path, &st) && S_ISFIFO(st.st_mode);
}

static void put_file(struct prb_wait_context *c, int fd, const char *link,
		     enum prb_direction direction, struct prb_str *s)
{
	bool device = !strncmp(link, "/dev/", 5) && strncmp(link, "/dev/shm/", 9);
	bool terminal = !strncmp(link, "/dev/pts/", 9) || !strncmp(link, "/dev/tty", 8) ||
			!strncmp(link, "/dev/console", 12);
	/* Whoever knows its name can open the other end. */
	bool master = !strcmp(link, "/dev/ptmx") || !strcmp(link, "/dev/pts/ptmx");

	if (!device && is_fifo(c, fd)) {
		put_pipe(c, fd, link, direction, s);
		return;
	}
	if (terminal || master)
		prb_enders_outside(c);
	prb_str_printf(s, "%s %d ", terminal ? "terminal" : device ? "device" : "file", fd);
	prb_put_path(c, link, s);
}

void prb_put_signals(uint64_t mask, struct prb_str *s)
{
	enum { MOST = 4 };
	unsigned count = 0;

	for (int number = 1; number <= 64; number++) {
		const char *name;

		if (!(mask >> (number - 1) & 1))
			continue;
		if (++count > MOST)
			continue;
		name = sigabbrev_np(number);
		prb_str_puts(s, count > 1 ? ", " : "");
		if (name)
			prb_str_printf(s, "SIG%s", name);
		else
			prb_str_printf(s, "signal %d", number);
	}
	if (count > MOST)
		prb_str_printf(s, " and %u more", count - MOST);
}

static void put_timer(struct prb_wait_context *c, const char *info, struct prb_str *s)
{
	const char *value = prb_text_field(info, "it_value");
	unsigned long long seconds, nanoseconds;

	if (!value || sscanf(value, "(%llu, %llu)", &seconds, &nanoseconds) != 2)
		return;
	if (!seconds && !nanoseconds) {
		prb_str_puts(s, ", not set");
		return;
	}
	prb_enders_limited(c);
	prb_str_puts(s, ", fires in ");
	prb_put_seconds(s, (double)seconds + (double)nanoseconds / 1e9);
}

static unsigned count_lines(const char *text, const char *start)
{
	unsigned count = 0;

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		count += !strncmp(line, start, strlen(start));
		if (!*line)
			break;
	}
	return count;
}

static void put_watches(struct prb_wait_context *c, const char *info, struct prb_str *s)
{
	unsigned count = count_lines(info, "inotify wd:");

	prb_enders_outside(c);
	if (count)
		prb_str_printf(s, " watching %u %s", count, count == 1 ? "file" : "files");
}

static void put_sigmask(struct prb_wait_context *c, const char *info, struct prb_str *s)
{
	const char *mask = prb_text_field(info, "sigmask");

	prb_enders_outside(c);
	if (!mask)
		return;
	prb_str_puts(s, " for ");
	prb_put_signals(strtoull(mask, NULL, 16), s);
}

static const struct {
	const char *link, *words;
	void (*more)(struct prb_wait_context *c, const char *info, struct prb_str *s);
} anonymous[] = {
	{"[eventpoll]", "epoll", NULL},
	{"[timerfd]", "timerfd", put_timer},
	{"[signalfd]", "signalfd", put_sigmask},
	{"inotify", "inotify", put_watches},
};

static void put_anonymous(struct prb_wait_context *c, int fd, const char *name, struct prb_str *s)
{
	prb_auto_str struct prb_str info = {};

	for (size_t i = 0; i < PRB_ARRAY_SIZE(anonymous); i++) {
		if (strcmp(name, anonymous[i].link))
			continue;
		prb_str_printf(s, "%s %d", anonymous[i].words, fd);
		if (anonymous[i].more &&
		    prb_wait_ok(s, prb_target_read_file(c->target, &info, "fdinfo/%d", fd)))
			anonymous[i].more(c, prb_str_text(&info), s);
		return;
	}
	/* "[eventfd]", "[io_uring]", "[fanotify]" and so on: the kernel's name is clear enough. */
	name += name[0] == '[';
	prb_text_escape_bytes(s, name, strcspn(name, "]"));
	prb_str_printf(s, " %d", fd);
}

static void put_pidfd(struct prb_wait_context *c, int fd, struct prb_str *s)
{
	prb_auto_str struct prb_str info = {};
	const char *pid = NULL;

	if (prb_wait_ok(s, prb_target_read_file(c->target, &info, "fdinfo/%d", fd)))
		pid = prb_text_field(prb_str_text(&info), "Pid");
	prb_str_printf(s, "pidfd %d", fd);
	if (!pid || atoi(pid) <= 0)
		return;
	prb_enders_add(c, atoi(pid));
	prb_enders_all(c, true);
	prb_str_puts(s, " of process ");
	prb_describe_process(atoi(pid), s);
}

static bool is_pidfd(const char *link)
{
	return prb_link_inode(link, "pidfd") || !strcmp(link, "anon_inode:[pidfd]");
}

static const char *kind_of(const char *link)
{
	return prb_link_inode(link, "socket") ? "socket"
	       : prb_link_inode(link, "pipe") ? "pipe"
	       : is_pidfd(link)		      ? "process"
					      : NULL;
}

void prb_describe_fd(struct prb_wait_context *c, int fd, enum prb_direction direction,
		     struct prb_str *s)
{
	static const char anon[] = "anon_inode:", eventfd[] = "anon_inode:[eventfd";
	prb_auto_str struct prb_str text = {};

	if (!prb_wait_ok(s, prb_target_read_link(c->target, &text, "fd/%d", fd))) {
		prb_enders_object(c, NULL);
		prb_str_printf(s, "descriptor %d", fd);
		return;
	}

	const char *link = prb_str_text(&text);
	uint64_t inode = prb_link_inode(link, "socket");
	bool is_eventfd = !strncmp(link, eventfd, sizeof(eventfd) - 1);
	if ((inode || is_eventfd) &&
	    prb_describe_zeromq(c, fd, is_eventfd ? "eventfd" : "socket", s))
		return;
	prb_enders_object(c, kind_of(link));
	if (inode)
		prb_describe_socket(c, fd, inode, s);
	else if (prb_link_inode(link, "pipe"))
		put_pipe(c, fd, link, direction, s);
	else if (is_pidfd(link))
		put_pidfd(c, fd, s);
	else if (!strncmp(link, anon, sizeof(anon) - 1))
		put_anonymous(c, fd, link + sizeof(anon) - 1, s);
	else
		put_file(c, fd, link, direction, s);
}
