/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/commands/serve/open_browser.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/new_file.h"
#include "base/own_file.h"
#include "base/str.h"
#include "command/exit.h"
#include "command/start.h"

/* The address is our own; but for a host, which its user chose. */
static void put_attribute(struct prb_str *s, const char *text)
{
	for (; *text; text++) {
		const char *end = strchr("&<>\"'", *text);

		if (end)
			prb_str_printf(s, "&#%d;", *text);
		else
			prb_str_putc(s, *text);
	}
}

static void put_page(struct prb_str *s, const char *address)
{
	prb_str_puts(s, "<!DOCTYPE html>\n<meta charset=\"utf-8\">\n"
			"<meta name=\"referrer\" content=\"no-referrer\">\n"
			"<meta http-equiv=\"refresh\" content=\"0; url=");
	put_attribute(s, address);
	prb_str_puts(s, "\">\n<title>Probing</title>\n<a href=\"");
	put_attribute(s, address);
	prb_str_puts(s, "\">Probing</a>\n");
}

/** Writes the file, mode 0600, in our own folder; *ret is its path. */
static struct prb_error *write_page(const char *address, char **ret)
{
	prb_auto_new_file struct prb_new_file file = {.fd = -1, .replaces_links = true};
	prb_auto_free char *folder = NULL, *path = NULL;
	prb_auto_close int fd = prb_run_folder_make(&folder);
	prb_auto_str struct prb_str page = {};

	if (fd < 0)
		return prb_error_hint(prb_error_create(PRB_ERROR_FAILED,
						       "there is no folder for what the browser is "
						       "to open: /tmp/probing-%u is not this "
						       "user's alone",
						       (unsigned)geteuid()),
				      "open the address yourself, without --open");
	path = prb_format("%s/open-%d.html", folder, (int)getpid());
	put_page(&page, address);
	if (!path || page.failed)
		return prb_error_nomem();
	PRB_TRY(prb_new_file_open(&file, path));
	if (write(file.fd, page.data, page.length) != (ssize_t)page.length)
		return prb_error_os(errno ? errno : EIO, "cannot write %s", path);
	PRB_TRY(prb_new_file_finish(&file));
	*ret = prb_steal(&path);
	return NULL;
}

static void start_browser(const char *what)
{
	sigset_t none;
	pid_t pid = fork();

	if (pid) {
		if (pid > 0)
			waitpid(pid, NULL, 0);
		return;
	}
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setsid();
	if (fork())
		_exit(0);
	prb_start_become((char *[]){"xdg-open", (char *)what, NULL});
	prb_warn("there is no xdg-open here: open the address yourself");
	_exit(1);
}

struct prb_error *prb_serve_open(const char *address, char **file)
{
	PRB_TRY(write_page(address, file));
	start_browser(*file);
	return NULL;
}
