/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Shared by the parts of a gateway: its connections, requests and routes. Internal to
 * gateway/.
 */
#ifndef PRB_GATEWAY_GATEWAY_PRIVATE_H
#define PRB_GATEWAY_GATEWAY_PRIVATE_H

#include <sys/socket.h>

#include "base/str.h"
#include "base/vec.h"
#include "gateway/access.h"
#include "gateway/dashboards/dashboards.h"
#include "gateway/targets/child.h"
#include "gateway/gateway.h"
#include "gateway/mhd.h"
#include "gateway/shared.h"
#include "gateway/targets/overview.h"
#include "gateway/targets/recordings.h"
#include "gateway/targets/scraper.h"
#include "gateway/targets/served.h"
#include "remote/serve/serve.h"

enum {
	PRB_GATEWAY_MAX_CONNECTIONS = 256,
	PRB_GATEWAY_MAX_STRANGERS = 96, /**< that never had the token; then the oldest has to go */
	PRB_GATEWAY_MAX_CHILDREN = 8,	/**< that run at once; others wait */
	PRB_GATEWAY_MAX_LASTING = 8,	/**< of requests that last, besides; others are refused */
	PRB_GATEWAY_MAX_BODY = 1 << 20, /**< of a request */
	PRB_GATEWAY_MAX_ANSWER = 64 << 20, /**< of what is not streamed */
	PRB_GATEWAY_HEAD = 64 << 10,	   /**< of an answer, before its status is sent */
	PRB_GATEWAY_MAX_TYPED = 64 << 10,  /**< into a terminal that does not read it */
	PRB_ROUTE_MAX_PARAMS = 8,
	PRB_ROUTE_NAME = PRB_INSTANCE_SIZE, /**< size of a name in an address */
};

struct prb_request;

enum prb_param_type { PRB_PARAM_TEXT, PRB_PARAM_FLAG, PRB_PARAM_NUMBER, PRB_PARAM_SECONDS };

/** A parameter, in the address or in the JSON object that a POST sends. */
struct prb_param {
	const char *name; /**< NULL in the entry that ends a table */
	enum prb_param_type type;
	const char *help;
	bool required;
	const char *choices; /**< the words that a text may be, with spaces between them; or NULL */
	/** Of a number, or the length of a text. 0: any; but seconds are over 0. */
	double least, most;
};

/** A kind of request, as data: the description for programs derives from the table. */
struct prb_route {
	const char *method;
	const char *path; /**< in which "{id}" stands for a target, other such words for a name */
	const char *summary;
	const char *media; /**< of the answer */
	struct prb_param params[PRB_ROUTE_MAX_PARAMS + 1];
	bool writes;   /**< it changes a target: only with --allow-write */
	bool quiet;    /**< not logged: its beginning was, by another route */
	bool alias;    /**< an address of other programs, for what another route does */
	bool made;     /**< the answer's status is 201 */
	double shared; /**< seconds for which an answer is good for other clients, too */
	const char
		*whole; /**< schema of its body, which is for `answer` to read; NULL: parameters */
	const char *schema; /**< of the answer, in schemas.json; NULL: it is no JSON */
	struct prb_error *(*answer)(struct prb_request *r);
};
extern const struct prb_route prb_routes[]; /**< ends with an entry without a path */

enum prb_request_state {
	PRB_REQUEST_RECEIVED, /**< or it is being received */
	PRB_REQUEST_QUEUED,   /**< its command is to be started */
	PRB_REQUEST_RUNS,     /**< its command runs; nothing was answered yet */
	PRB_REQUEST_ANSWERED,
	PRB_REQUEST_RESTS, /**< the next event is to be made, but not yet */
};

struct prb_connection {
	int fd;
	struct sockaddr_storage peer;
	double since; /**< it waits for a request, or is a stranger */
	bool let_in;  /**< it had the token once */
	bool busy;    /**< a request is being answered */
	bool dropped;
	bool has_nul; /**< in the address of the last request, which would hide what follows */
};

struct prb_request {
	struct prb_gateway *gateway;
	struct MHD_Connection *mhd;
	struct prb_connection *connection;
	char *method, *path;
	struct prb_access_verdict verdict;
	bool form; /**< the token is in its body */
	bool set_cookie;
	bool followed; /**< a link of another site led here, or a file that 'serve --open' made */
	struct prb_str body;
	bool too_long;
	const struct prb_route *route;
	char id[PRB_INSTANCE_SIZE];
	char name[PRB_ROUTE_NAME];	    /**< of the other thing in the address */
	char *values[PRB_ROUTE_MAX_PARAMS]; /**< of the route's params; NULL: not given */

	enum prb_request_state state;
	bool suspended;
	double left;  /**< when its client was seen to have closed its end; 0: not */
	double since; /**< its command was asked for, or has begun */
	double limit; /**< seconds that the command may take */
	struct prb_words words;
	struct prb_str input;
	bool has_input;
	struct prb_child child;
	/** Makes the reply of what the command printed, `reply`; NULL: that is the answer. */
	struct prb_error *(*finish)(struct prb_request *r);
	bool refused;	    /**< what it says was judged, and refused */
	bool tells_failure; /**< what was printed is the answer, also if the command failed */
	/** It has no command, but waits for what one that serves several prints: true once that is
	 * the reply. */
	bool (*take)(struct prb_request *r, struct prb_error **err);
	unsigned terminal;    /**< its command runs in this one; 0: in none */
	bool talks;	      /**< with terminal: it is none, but the two ends of a socket */
	struct prb_str typed; /**< what is still to be given to it */
	bool alone;	      /**< its command does not run beside another such request's */
	bool lasts;   /**< it holds something until its client leaves, and answers at once */
	double every; /**< its command runs again and again: events; 0: it is run once */
	size_t sent;  /**< of the event that is the reply */
	bool over;    /**< no event follows */

	unsigned status;
	const char *media, *policy;
	char *file;	   /**< what a browser saves it as */
	const void *fixed; /**< the whole answer, static, instead of `reply` */
	size_t fixed_length;
	bool packed; /**< that is compressed by gzip */
	const char *location;
	struct prb_str reply; /**< the answer, or the beginning of a streamed one */
};

struct prb_gateway {
	struct prb_gateway_options options;
	struct prb_access access;
	struct prb_listener listener;
	char *unix_path; /**< to be removed at the end */
	char url[128];
	struct MHD_Daemon *mhd;
	int epoll, signals;
	struct prb_served served;
	struct prb_recordings recordings;
	struct prb_overview_keeper overview;
	struct prb_scraper scraper;
	struct prb_dashboards dashboards;
	struct prb_shared shared;
	PRB_VEC(struct prb_request *) waiting; /**< those with a command */
	PRB_VEC(struct prb_connection *) connections;
	PRB_VEC(struct prb_child) dying;
	unsigned terminals; /**< that were opened so far */
	double now;
	double changed; /**< when a target may have been changed by a request */
	bool ends;	/**< no request is suspended any more */
};

/* request.c: what libmicrohttpd calls. */
enum MHD_Result prb_request_handle(void *context, struct MHD_Connection *mhd, const char *url,
				   const char *method, const char *version, const char *data,
				   size_t *size, void **place);
void *prb_request_address(void *context, const char *address, struct MHD_Connection *mhd);
void prb_request_completed(void *context, struct MHD_Connection *mhd, void **place,
			   enum MHD_RequestTerminationCode why);

/* run.c: requests with a command. */

/**
 * Waits until there is more to answer. False once the gateway ends: libmicrohttpd aborts if it is
 * stopped while a connection is suspended. Nothing else suspends one.
 */
bool prb_request_suspend(struct prb_request *r) PRB_MUST_CHECK;
void prb_request_resume(struct prb_request *r);
/** Ends the commands of all requests and resumes them; from now on none is suspended. */
void prb_requests_end(struct prb_gateway *g);
/** Begins: the answer is what the command prints. `r->words` and the like have been set. */
void prb_request_start(struct prb_request *r);
/** Answers with the overview, once there is one. */
struct prb_error *prb_answer_overview(struct prb_request *r) PRB_MUST_CHECK;
/** Answers with the metrics of the served processes, once they are read. */
struct prb_error *prb_answer_scrape(struct prb_request *r) PRB_MUST_CHECK;
/** One round for all of them, after waiting. */
void prb_requests_tend(struct prb_gateway *g);
/** It is over; ends its command if that still runs. */
void prb_request_forget(struct prb_request *r);
/** Reads what the command prints, for libmicrohttpd. */
ssize_t prb_request_read(void *context, uint64_t at, char *buffer, size_t max);

/* reply.c */

/** Sends what the request's reply says. */
enum MHD_Result prb_reply_send(struct prb_request *r);
/** Makes the error the reply. */
void prb_reply_error(struct prb_request *r, struct prb_error *err);
void prb_reply_refusal(struct prb_request *r);

/* events.c: requests whose command is run again and again, as Server-Sent Events. */

struct prb_error *prb_answer_events(struct prb_request *r) PRB_MUST_CHECK;
/** Makes what the command printed, or why it failed, the next event. */
void prb_event_make(struct prb_request *r, struct prb_error *err);
/** True if the event that it waits for is being made for another stream. */
bool prb_event_is_made(const struct prb_request *r);
/**
 * Gives the event of @p r to a stream that asks for the same and will have one soon: the next one
 * is made for both. NULL: there is no such stream, or no other one. That its event is ready is for
 * the caller to say.
 */
struct prb_request *prb_event_give(const struct prb_request *r);
/** True if its time has come. */
bool prb_event_is_due(const struct prb_request *r);
/** Gives events to libmicrohttpd. */
ssize_t prb_event_read(void *context, uint64_t at, char *buffer, size_t max);

/* routes.c */

/** The words of a command that dumps stacks. */
struct prb_error *prb_stacks_words(struct prb_request *r) PRB_MUST_CHECK;

/** Finds what is asked for; the error makes 404 or 405 the reply's status. */
struct prb_error *prb_route_find(struct prb_request *r) PRB_MUST_CHECK;
/** Appends the methods that the request's address has: "GET, POST". */
void prb_route_methods(struct prb_request *r, struct prb_str *ret);

/* params.c */

/** Takes the parameters; all that is unknown or wrong is PRB_ERROR_USAGE. */
struct prb_error *prb_params_take(struct prb_request *r) PRB_MUST_CHECK;
/** The value of a parameter, or NULL. */
const char *prb_param(const struct prb_request *r, const char *name);
bool prb_param_flag(const struct prb_request *r, const char *name);
/** What a number is at least, and at most. */
double prb_param_least(const struct prb_param *param);
double prb_param_most(const struct prb_param *param);
/** Appends "--NAME" if the flag is set; "--OPTION=VALUE" if the text is given. */
struct prb_error *prb_param_flag_word(struct prb_request *r, const char *name) PRB_MUST_CHECK;
struct prb_error *prb_param_word(struct prb_request *r, const char *name,
				 const char *option) PRB_MUST_CHECK;

/* write_routes.c */

/** True if this client may change targets. */
bool prb_may_write(const struct prb_request *r);
/** Logs on stderr a request that is about to change a target. */
void prb_write_audit(const struct prb_request *r);
struct prb_error *prb_answer_eval(struct prb_request *r) PRB_MUST_CHECK;
/** Lasts as long as its client waits: the pause ends when the client disconnects. */
struct prb_error *prb_answer_pause(struct prb_request *r) PRB_MUST_CHECK;
struct prb_error *prb_answer_config(struct prb_request *r) PRB_MUST_CHECK;
struct prb_error *prb_answer_resume(struct prb_request *r) PRB_MUST_CHECK;
struct prb_error *prb_answer_step(struct prb_request *r) PRB_MUST_CHECK;
struct prb_error *prb_answer_debugpy(struct prb_request *r) PRB_MUST_CHECK;

/* terminal.c: a prompt in a terminal, which lasts as long as its client reads. */
struct prb_error *prb_answer_terminal(struct prb_request *r) PRB_MUST_CHECK;
/** A session of the Debug Adapter Protocol, in the same way. */
struct prb_error *prb_answer_dap(struct prb_request *r) PRB_MUST_CHECK;
/** Starts its command, which is in r->words. */
struct prb_error *prb_terminal_begin(struct prb_request *r) PRB_MUST_CHECK;
/** Types, and sets the size. */
struct prb_error *prb_answer_type(struct prb_request *r) PRB_MUST_CHECK;
/** Gives the terminal as much of what was typed as it takes now. */
void prb_terminal_tend(struct prb_request *r);

/* openapi.c, page.c, recordings_routes.c, mcp_route.c, jobs_route.c */
struct prb_error *prb_answer_mcp(struct prb_request *r) PRB_MUST_CHECK;
struct prb_error *prb_answer_openapi(struct prb_request *r) PRB_MUST_CHECK;
/** A file of the page, if the path is one. */
bool prb_page_find(struct prb_request *r);
/** The page that asks for the token. */
void prb_page_login(struct prb_request *r);

/** Keeps what a daemon of another machine reports of a job. */
struct prb_error *prb_answer_report(struct prb_request *r) PRB_MUST_CHECK;

/* dashboards_routes.c */
struct prb_error *prb_answer_dashboards(struct prb_request *r) PRB_MUST_CHECK;
struct prb_error *prb_answer_dashboard(struct prb_request *r) PRB_MUST_CHECK;
struct prb_error *prb_answer_dashboard_save(struct prb_request *r) PRB_MUST_CHECK;
struct prb_error *prb_answer_dashboard_delete(struct prb_request *r) PRB_MUST_CHECK;

struct prb_error *prb_answer_record(struct prb_request *r) PRB_MUST_CHECK;
struct prb_error *prb_answer_recordings(struct prb_request *r) PRB_MUST_CHECK;
struct prb_error *prb_answer_recording(struct prb_request *r) PRB_MUST_CHECK;
struct prb_error *prb_answer_recorders(struct prb_request *r) PRB_MUST_CHECK;
struct prb_error *prb_answer_recent(struct prb_request *r) PRB_MUST_CHECK;
struct prb_error *prb_answer_recording_name(struct prb_request *r) PRB_MUST_CHECK;
struct prb_error *prb_answer_recording_stop(struct prb_request *r) PRB_MUST_CHECK;
struct prb_error *prb_answer_recording_delete(struct prb_request *r) PRB_MUST_CHECK;

#endif
