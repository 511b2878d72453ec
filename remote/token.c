/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "remote/token.h"

#include <errno.h>
#include <fcntl.h>
#include <nettle/hmac.h>
#include <nettle/memops.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/new_file.h"
#include "base/own_file.h"

/** Bytes of a token that is made here; it has two letters for each. */
enum { TOKEN_BYTES = 16 };

static const char VARIABLE[] = "PROBING_AUTH_TOKEN";

static struct prb_error *fill_random(void *at, size_t length)
{
	if (getrandom(at, length, 0) != (ssize_t)length)
		return prb_error_os(errno, "cannot get random numbers");
	return NULL;
}

struct prb_error *prb_token_nonce(uint8_t nonce[PRB_REMOTE_NONCE_SIZE])
{
	return fill_random(nonce, PRB_REMOTE_NONCE_SIZE);
}

static struct prb_error *make(struct prb_token *ret)
{
	uint8_t bytes[TOKEN_BYTES];

	PRB_TRY(fill_random(bytes, sizeof(bytes)));
	for (size_t i = 0; i < TOKEN_BYTES; i++)
		snprintf(ret->text + 2 * i, 3, "%02x", bytes[i]);
	ret->known = false;
	return NULL;
}

/** Takes a token that the user chose; @p where names its source. */
static struct prb_error *take(const char *text, size_t length, const char *where,
			      struct prb_token *ret)
{
	if (length < PRB_TOKEN_MIN || length > PRB_TOKEN_MAX)
		return prb_error_hint(prb_error_create(PRB_ERROR_USAGE,
						       "the token in %s has %zu characters", where,
						       length),
				      "it needs %d to %d: shorter ones can be brute-forced from "
				      "one captured connection",
				      PRB_TOKEN_MIN, PRB_TOKEN_MAX);
	for (size_t i = 0; i < length; i++)
		if (text[i] <= ' ' || text[i] > '~')
			return prb_error_create(PRB_ERROR_USAGE,
						"the token in %s has a character that is not a "
						"letter, digit or punctuation mark",
						where);
	memcpy(ret->text, text, length);
	ret->text[length] = 0;
	ret->known = true;
	return NULL;
}

/** A token in a file that others may read is none. */
static struct prb_error *check_file(int fd, const char *path)
{
	struct stat st;

	if (fstat(fd, &st))
		return prb_error_os(errno, "cannot look at %.200s", path);
	if (!S_ISREG(st.st_mode))
		return prb_error_create(PRB_ERROR_USAGE, "%.200s is no file", path);
	if (st.st_uid != geteuid() && st.st_uid != 0)
		return prb_error_hint(
			prb_error_create(PRB_ERROR_PERMISSION,
					 "the token's file %.200s belongs to another user", path),
			"make one of your own: 'chmod 600' makes it yours alone");
	if (st.st_mode & 077)
		return prb_error_hint(prb_error_create(PRB_ERROR_PERMISSION,
						       "other users may read or write the token's "
						       "file %.200s",
						       path),
				      "'chmod 600' makes it yours alone; take another token if "
				      "they may have read this one");
	return NULL;
}

static struct prb_error *read_file(int fd, const char *path, struct prb_token *ret)
{
	char text[PRB_TOKEN_MAX + 3];
	ssize_t length;

	PRB_TRY(check_file(fd, path));
	length = read(fd, text, sizeof(text));
	if (length < 0)
		return prb_error_os(errno, "cannot read %.200s", path);
	while (length && (text[length - 1] == '\n' || text[length - 1] == '\r'))
		length--;
	return take(text, (size_t)length, path, ret);
}

/** Puts a fresh token into a file that was not there. */
static struct prb_error *make_file(const char *path, struct prb_token *ret)
{
	prb_auto_close int fd = prb_own_file_new(AT_FDCWD, path, O_WRONLY, 0600);
	char line[PRB_TOKEN_MAX + 2];

	if (fd < 0)
		return prb_error_os(errno, "cannot make the token's file %.200s", path);
	PRB_TRY(make(ret));
	ret->known = true;

	int length = snprintf(line, sizeof(line), "%s\n", ret->text);

	if (write(fd, line, (size_t)length) == length)
		return NULL;
	struct prb_error *err = prb_error_os(errno, "cannot write %.200s", path);
	unlink(path);
	return err;
}

struct prb_error *prb_token_choose(const char *file, struct prb_token *ret)
{
	const char *said = getenv(VARIABLE);

	if (said && *said)
		return take(said, strlen(said), VARIABLE, ret);
	if (!file)
		return make(ret);

	PRB_TRY(prb_new_file_check_way(file));
	prb_auto_close int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd >= 0)
		return read_file(fd, file, ret);
	if (errno != ENOENT)
		return prb_error_os(errno, "cannot open the token's file %.200s", file);
	return make_file(file, ret);
}

struct prb_error *prb_token_find(const char *file, struct prb_token *ret)
{
	const char *said = getenv(VARIABLE);

	if (file) {
		prb_auto_close int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

		if (fd < 0)
			return prb_error_os(errno, "cannot open the token's file %.200s", file);
		return read_file(fd, file, ret);
	}
	if (said && *said)
		return take(said, strlen(said), VARIABLE, ret);
	return prb_error_hint(
		prb_error_create(PRB_ERROR_PERMISSION, "a served process needs its token"),
		"put what was printed when it was served into %s, or into a file "
		"that --token-file names",
		VARIABLE);
}

void prb_token_prove(const struct prb_token *token, enum prb_token_side side,
		     const uint8_t client[PRB_REMOTE_NONCE_SIZE],
		     const uint8_t server[PRB_REMOTE_NONCE_SIZE],
		     uint8_t ret[PRB_REMOTE_PROOF_SIZE])
{
	static const char *const SIDES[] = {
		[PRB_TOKEN_CLIENT] = "probing client 1",
		[PRB_TOKEN_SERVER] = "probing server 1",
		[PRB_TOKEN_COOKIE] = "probing cookie 1",
	};
	const char *who = SIDES[side];
	struct hmac_sha256_ctx hmac;

	hmac_sha256_set_key(&hmac, strlen(token->text), (const uint8_t *)token->text);
	hmac_sha256_update(&hmac, strlen(who), (const uint8_t *)who);
	hmac_sha256_update(&hmac, PRB_REMOTE_NONCE_SIZE, client);
	hmac_sha256_update(&hmac, PRB_REMOTE_NONCE_SIZE, server);
	hmac_sha256_digest(&hmac, PRB_REMOTE_PROOF_SIZE, ret);
}

bool prb_token_equal(const uint8_t one[PRB_REMOTE_PROOF_SIZE],
		     const uint8_t other[PRB_REMOTE_PROOF_SIZE])
{
	return memeql_sec(one, other, PRB_REMOTE_PROOF_SIZE);
}
