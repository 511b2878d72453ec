/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "python/repr/arrays/pillow.h"

#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "python/repr/core/handlers.h"

/* A mode of images whose bytes are what is seen, or indexes into a palette. */
struct mode {
	const char *name, *dtype;
	char code;
	uint8_t size;  /* bytes of a number */
	uint8_t pixel; /* bytes of a pixel */
	uint8_t bands;
	uint8_t apart; /* bytes from one band to the next */
	bool palette;
};
static const struct mode MODES[] = {
	{"1", "uint8", 'B', 1, 1, 1, 1},
	{"L", "uint8", 'B', 1, 1, 1, 1},
	{"P", "uint8", 'B', 1, 1, 1, 1, .palette = true},
	{"LA", "uint8", 'B', 1, 4, 2, 3}, /* the first three bytes are the same */
	{"RGB", "uint8", 'B', 1, 4, 3, 1},
	{"RGBA", "uint8", 'B', 1, 4, 4, 1},
	{"CMYK", "uint8", 'B', 1, 4, 4, 1},
	{"I", "int32", 'i', 4, 4, 1, 4},
	{"F", "float32", 'f', 4, 4, 1, 4},
	{"I;16", "uint16", 'H', 2, 2, 1, 2},
};

/* Offsets in struct ImagingMemoryInstance: of 12.0 and newer, where the mode is a number, and of
 * older versions, where it is a text. */
struct layout {
	uint8_t bands, xsize, ysize, palette, image8, image32, image, pixelsize, linesize;
};
static const struct layout LAYOUTS[] = {{12, 16, 20, 24, 32, 40, 48, 72, 76},
					{16, 20, 24, 32, 40, 48, 56, 80, 84}};
enum { STRUCTURE = 88, PALETTE_BANDS = 3 };

struct image {
	uint64_t mode; /* a text */
	int64_t width, height;
};

static struct prb_error *either(struct prb_repr *r, uint64_t object, const char *name,
				const char *before, uint64_t *ret)
{
	struct prb_error *err = prb_repr_instance_get(r, object, name, ret);

	return prb_error_catch(&err, PRB_ERROR_NOT_FOUND)
		       ? prb_repr_instance_get(r, object, before, ret)
		       : err;
}

static struct prb_error *read_image(struct prb_repr *r, uint64_t object, struct image *ret)
{
	uint64_t size, sides[2], count;

	PRB_TRY(either(r, object, "_mode", "mode", &ret->mode));
	PRB_TRY(prb_repr_instance_get(r, object, "_size", &size));
	PRB_TRY(prb_repr_tuple(r, size, sides, 2, &count));
	if (count != 2)
		return prb_repr_bad(object, "an image without a size");
	PRB_TRY(prb_repr_int(r, sides[0], &ret->width));
	return prb_repr_int(r, sides[1], &ret->height);
}

static struct prb_error *put_image(struct prb_repr *r, uint64_t object, struct prb_type *type)
{
	struct image image;

	PRB_TRY(read_image(r, object, &image));
	prb_str_putc(r->out, '<');
	PRB_TRY(prb_repr_put_module(r, type));
	PRB_TRY(prb_repr_put_name(r, type));
	prb_str_puts(r->out, " image mode=");
	PRB_TRY(prb_repr_put_text(r, image.mode));
	prb_str_printf(r->out, " size=%lldx%lld at 0x%llX>", (long long)image.width,
		       (long long)image.height, (unsigned long long)object);
	return NULL;
}

struct prb_error *prb_repr_handle_image(struct prb_repr *r, uint64_t object, struct prb_type *type)
{
	return prb_repr_put_or_default(r, object, type, put_image);
}

static struct prb_error *find_mode(struct prb_repr *r, const struct image *image,
				   const struct mode **ret)
{
	bool is_it = false;

	for (size_t i = 0; i < PRB_ARRAY_SIZE(MODES) && !is_it; i++) {
		PRB_TRY(prb_repr_text_is(r, image->mode, MODES[i].name, &is_it));
		*ret = &MODES[i];
	}
	if (is_it)
		return NULL;
	return prb_error_create(
		PRB_ERROR_UNSUPPORTED,
		"only images of the modes 1, L, P, LA, RGB, RGBA, CMYK, I, F and I;16 can be read");
}

static int32_t number_at(const uint8_t *bytes, uint8_t offset)
{
	int32_t number;

	memcpy(&number, bytes + offset, sizeof(number));
	return number;
}

static uint64_t pointer_at(const uint8_t *bytes, uint8_t offset)
{
	uint64_t pointer;

	memcpy(&pointer, bytes + offset, sizeof(pointer));
	return pointer;
}

/** Whether the structure, read by the layout, is one of that image. */
static bool fits(const struct layout *l, const uint8_t *bytes, const struct image *image,
		 const struct mode *mode)
{
	uint64_t rows = pointer_at(bytes, l->image);
	bool wide = mode->pixel == 4;

	return number_at(bytes, l->xsize) == image->width &&
	       number_at(bytes, l->ysize) == image->height && image->width > 0 &&
	       image->height > 0 && number_at(bytes, l->bands) == mode->bands &&
	       number_at(bytes, l->pixelsize) == mode->pixel &&
	       number_at(bytes, l->linesize) / mode->pixel >= image->width && rows &&
	       rows % sizeof(rows) == 0 && pointer_at(bytes, l->image8) == (wide ? 0 : rows) &&
	       pointer_at(bytes, l->image32) == (wide ? rows : 0);
}

/*
 * The colours that indexes stand for, four bytes for each. Before them: the name of their order,
 * and their number since Pillow 9.1; both are numbers since 12.0. Without one, there is a colour's
 * opaque last byte at its place.
 */
static struct prb_error *read_palette(struct prb_repr *r, const struct layout *l, uint64_t palette,
				      struct prb_elements *ret)
{
	enum { NUMBER = 8, BEHIND_NUMBERS = 8, BEHIND_NUMBER = 12, WITHOUT = 7, MOST = 256 };
	uint64_t head[2], colours = BEHIND_NUMBERS;

	PRB_TRY(prb_repr_words(r, palette, PRB_ARRAY_SIZE(head), head));
	if (l != &LAYOUTS[0])
		colours = (uint32_t)number_at((const uint8_t *)head, NUMBER) <= MOST ? BEHIND_NUMBER
										     : WITHOUT;
	ret->has_palette = true;
	return prb_mem_read(r->mem, palette + colours, ret->palette, sizeof(ret->palette));
}

/* A palette that was set takes effect when the image is used next. */
static struct prb_error *check_palette(struct prb_repr *r, uint64_t object)
{
	uint64_t palette, dirty;
	int64_t is_dirty = 0;

	PRB_TRY(prb_repr_instance_get(r, object, "palette", &palette));
	struct prb_error *err = prb_repr_instance_get(r, palette, "dirty", &dirty);

	if (prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
		return NULL;
	if (!err)
		err = prb_repr_int(r, dirty, &is_dirty);
	return err || !is_dirty ? err
				: prb_error_create(PRB_ERROR_UNSUPPORTED,
						   "the image's new palette is not loaded yet");
}

struct prb_error *prb_repr_open_image(struct prb_repr *r, uint64_t object, struct prb_elements *ret)
{
	const struct mode *mode = NULL;
	uint64_t core, structure, words[STRUCTURE / 8];
	struct image image;

	PRB_TRY(read_image(r, object, &image));
	PRB_TRY(find_mode(r, &image, &mode));
	if (mode->palette)
		PRB_TRY(check_palette(r, object));
	PRB_TRY(either(r, object, "_im", "im", &core));
	if (!prb_repr_is(r, core, "ImagingCore"))
		return prb_error_create(
			PRB_ERROR_UNSUPPORTED,
			"the image has no pixels in memory: it is not loaded yet, or closed");
	PRB_TRY(prb_repr_word(r, core + (uint64_t)r->layout->object_size, &structure));
	PRB_TRY(prb_repr_words(r, structure, PRB_ARRAY_SIZE(words), words));
	for (size_t i = 0; i < PRB_ARRAY_SIZE(LAYOUTS); i++) {
		const struct layout *l = &LAYOUTS[i];

		if (!fits(l, (const uint8_t *)words, &image, mode))
			continue;
		ret->dtype = mode->dtype;
		ret->code = mode->code;
		ret->size = mode->size;
		ret->rows = pointer_at((const uint8_t *)words, l->image);
		ret->dimensions = mode->bands > 1 || mode->palette ? 3 : 2;
		ret->shape[0] = (uint64_t)image.height;
		ret->shape[1] = (uint64_t)image.width;
		ret->shape[2] = mode->palette ? PALETTE_BANDS : mode->bands;
		ret->strides[1] = mode->pixel;
		ret->strides[2] = mode->palette ? 0 : mode->apart;
		return mode->palette
			       ? read_palette(r, l, pointer_at((const uint8_t *)words, l->palette),
					      ret)
			       : NULL;
	}
	return prb_error_create(PRB_ERROR_UNSUPPORTED,
				"the layout of this image in memory is unknown: another version of "
				"Pillow, or damaged");
}
