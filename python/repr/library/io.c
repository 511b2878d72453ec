/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Files and sockets: their descriptors lead on to process.fds, which has the position of files that
 * have no buffer, and the peer. */
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "python/repr/core/handlers.h"

/* The layer below: where its class describes it (up to 3.13), and its word in the object. */
static const struct layer {
	const char *type, *below;
	unsigned word;
} layers[] = {
	{"_io.TextIOWrapper", "buffer", 2},
	{"_io.BufferedRandom", "raw", 0},
	{"_io.BufferedReader", "raw", 0},
	{"_io.BufferedWriter", "raw", 0},
};

/* Goes to the object below; stays if there is none of _io. */
static struct prb_error *go_down(struct prb_repr *r, const struct layer *layer, uint64_t *object)
{
	struct prb_type *type;
	uint64_t below;
	struct prb_error *err = prb_repr_attribute(r, *object, layer->below, &below);

	if (prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
		err = prb_repr_member(r, *object, layer->word, &below);
	if (!err && below)
		err = prb_repr_type_of(r, below, &type);
	if (!err && below && !strncmp(type->name, "_io.", 4))
		*object = below;
	prb_error_catch(&err, PRB_ERROR_BAD_DATA);
	return err;
}

/* Text above buffer above raw file. */
static struct prb_error *find_raw(struct prb_repr *r, uint64_t object, uint64_t *ret)
{
	*ret = object;
	for (size_t i = 0; i < PRB_ARRAY_SIZE(layers); i++)
		if (prb_repr_is(r, *ret, layers[i].type))
			PRB_TRY(go_down(r, &layers[i], ret));
	return NULL;
}

static struct prb_error *put_named(struct prb_repr *r, uint64_t object, const char *attribute,
				   const char *name)
{
	uint64_t value;
	struct prb_error *err = prb_repr_attribute(r, object, attribute, &value);

	if (prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
		return NULL;
	PRB_TRY(err);
	prb_str_printf(r->out, " %s=", name);
	return prb_repr_object(r, value);
}

/*
 * A buffer, in all versions: the file below it, five ints, then the position in that file or -1,
 * the memory, and positions in it: the reader's, the file's, the ends of the data that was read and
 * that is to be written (or -1), with the start of that between them.
 */
struct buffer {
	uint64_t raw;
	int32_t ok, detached, readable, writable;
	uint64_t flags;
	int64_t file_position;
	uint64_t memory;
	int64_t position, file_at, read_end, write_from, write_end;
};

static bool is_buffer(struct prb_repr *r, uint64_t object)
{
	for (size_t i = 1; i < PRB_ARRAY_SIZE(layers); i++)
		if (prb_repr_is(r, object, layers[i].type))
			return true;
	return false;
}

/* The result of tell() of a buffer; -1 if unknown. */
static struct prb_error *buffer_position(struct prb_repr *r, uint64_t object, int64_t *tell,
					 int64_t *of_file)
{
	struct buffer buffer;
	bool valid;

	*tell = *of_file = -1;
	PRB_TRY(prb_mem_read(r->mem, object + (uint64_t)r->layout->object_size, &buffer,
			     sizeof(buffer)));
	if (buffer.ok != 1 || buffer.detached || buffer.file_position < 0 || !buffer.memory)
		return NULL;
	*of_file = *tell = buffer.file_position;
	valid = (buffer.readable && buffer.read_end != -1) ||
		(buffer.writable && buffer.write_end != -1);
	if (valid && buffer.file_at >= 0)
		*tell -= buffer.file_at - buffer.position;
	return NULL;
}

/* Of a text, the decoder alone knows how much of the buffer it has made characters of. */
static struct prb_error *put_position(struct prb_repr *r, uint64_t object)
{
	bool text = prb_repr_is(r, object, layers[0].type);
	int64_t tell, of_file;

	if (text)
		PRB_TRY(go_down(r, &layers[0], &object));
	if (!is_buffer(r, object))
		return NULL;
	PRB_TRY(buffer_position(r, object, &tell, &of_file));
	if (!text && tell >= 0)
		prb_str_printf(r->out, " pos=%lld", (long long)tell);
	else if (of_file >= 0)
		prb_str_printf(r->out, " fd_pos=%lld", (long long)of_file);
	return NULL;
}

/* The descriptor, and bits that follow it: of two of them it is known whether one can seek. */
static struct prb_error *put_descriptor(struct prb_repr *r, uint64_t object, uint64_t raw)
{
	enum { SEEKABLE_SHIFT = 4, SEEKABLE_MASK = 3, SEEKABLE = 1 };
	uint32_t words[2];

	PRB_TRY(prb_mem_read(r->mem, raw + (uint64_t)r->layout->object_size, words, sizeof(words)));
	if ((int32_t)words[0] < 0) {
		prb_str_puts(r->out, " closed");
		return NULL;
	}
	prb_str_printf(r->out, " fd=%d", (int32_t)words[0]);
	return (words[1] >> SEEKABLE_SHIFT & SEEKABLE_MASK) == SEEKABLE ? put_position(r, object)
									: NULL;
}

struct prb_error *prb_repr_handle_file(struct prb_repr *r, uint64_t object, struct prb_type *type)
{
	uint64_t raw;

	PRB_TRY(find_raw(r, object, &raw));
	prb_str_putc(r->out, '<');
	PRB_TRY(prb_repr_put_module(r, type));
	PRB_TRY(prb_repr_put_qualname(r, type));
	PRB_TRY(put_named(r, raw, "name", "name"));
	PRB_TRY(put_named(r, object, "mode", "mode"));
	PRB_TRY(put_named(r, object, "encoding", "encoding"));
	if (prb_repr_is(r, raw, "_io.FileIO"))
		PRB_TRY(put_descriptor(r, object, raw));
	prb_str_putc(r->out, '>');
	return NULL;
}

/* Numbers of Linux. */
static const char *const families[] = {
	[1] = "AF_UNIX",     [2] = "AF_INET",	 [10] = "AF_INET6",
	[16] = "AF_NETLINK", [17] = "AF_PACKET",
};
static const char *const kinds[] = {
	[1] = "SOCK_STREAM",
	[2] = "SOCK_DGRAM",
	[3] = "SOCK_RAW",
	[5] = "SOCK_SEQPACKET",
};

static void put_number(struct prb_repr *r, const char *name, int32_t number,
		       const char *const *names, size_t count)
{
	if (number > 0 && (size_t)number < count && names[number])
		prb_str_printf(r->out, ", %s=%s", name, names[number]);
	else
		prb_str_printf(r->out, ", %s=%d", name, number);
}

/* The descriptor is the first member of the C type, then come family, type and protocol. */
struct prb_error *prb_repr_handle_socket(struct prb_repr *r, uint64_t object, struct prb_type *type)
{
	int32_t words[4];

	PRB_TRY(prb_mem_read(r->mem, object + (uint64_t)r->layout->object_size, words,
			     sizeof(words)));
	prb_str_putc(r->out, '<');
	PRB_TRY(prb_repr_put_module(r, type));
	PRB_TRY(prb_repr_put_qualname(r, type));
	prb_str_printf(r->out, "%s fd=%d", words[0] < 0 ? " [closed]" : "", words[0]);
	put_number(r, "family", words[1], families, PRB_ARRAY_SIZE(families));
	put_number(r, "type", words[2], kinds, PRB_ARRAY_SIZE(kinds));
	prb_str_printf(r->out, ", proto=%d>", words[3]);
	return NULL;
}
