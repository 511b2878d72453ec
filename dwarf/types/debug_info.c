/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "dwarf/types/debug_info.h"

#include <stdlib.h>

#include "base/checked.h"
#include "base/cleanup.h"

/* Blocks in blocks, inlined calls in inlined calls: some tens in real code. */
enum { MAX_NESTING = 256 };

/* Sections that types can need. libdwarf expects section 0 to be empty, as in ELF. */
static const char *const section_names[] = {
	"",
	".debug_info",
	".debug_abbrev",
	".debug_str",
	".debug_line_str",
	".debug_str_offsets",
	".debug_addr",
};

struct prb_debug_info {
	struct prb_elf *elf;
	Dwarf_Debug dbg;
#ifdef DW_LIBDWARF_VERSION
	Dwarf_Obj_Access_Interface_a access;
#else
	Dwarf_Obj_Access_Interface access;
#endif
};

static bool section(struct prb_elf *elf, uint64_t index, uint64_t *size, const void **data)
{
	uint64_t address;

	/* One without content in the file (SHT_NOBITS) has a size, but nothing to read. */
	if (index == 0 || index >= PRB_ARRAY_SIZE(section_names) ||
	    !prb_elf_has_section(elf, section_names[index]))
		return false;

	prb_auto_error struct prb_error *err =
		prb_elf_section(elf, section_names[index], &address, size, data);
	return !err;
}

static int load_section(void *object, uint64_t index, Dwarf_Small **ret)
{
	uint64_t size;
	const void *data;

	if (!section(object, index, &size, &data) || size == 0)
		return DW_DLV_NO_ENTRY;
	*ret = (Dwarf_Small *)data;
	return DW_DLV_OK;
}

static Dwarf_Unsigned section_count(void *object)
{
	(void)object;
	return PRB_ARRAY_SIZE(section_names);
}

static Dwarf_Small pointer_size(void *object)
{
	(void)object;
	return 8;
}

static Dwarf_Small length_size(void *object)
{
	(void)object;
	return 4;
}

#ifdef DW_LIBDWARF_VERSION

static int get_section_info(void *object, Dwarf_Unsigned index, Dwarf_Obj_Access_Section_a *ret,
			    int *error)
{
	uint64_t size = 0;

	(void)error;
	if (index >= PRB_ARRAY_SIZE(section_names))
		return DW_DLV_NO_ENTRY;
	if (!section(object, index, &size, NULL))
		size = 0;
	*ret = (Dwarf_Obj_Access_Section_a){
		.as_name = section_names[index],
		.as_size = size,
	};
	return DW_DLV_OK;
}

static int get_section_data(void *object, Dwarf_Unsigned index, Dwarf_Small **ret, int *error)
{
	(void)error;
	return load_section(object, index, ret);
}

static Dwarf_Small byte_order(void *object)
{
	(void)object;
	return DW_END_little;
}

/* Only an upper limit of section sizes, which prb_elf has checked. */
static Dwarf_Unsigned file_size(void *object)
{
	(void)object;
	return INT64_MAX;
}

static const Dwarf_Obj_Access_Methods_a methods = {
	.om_get_section_info = get_section_info,
	.om_get_byte_order = byte_order,
	.om_get_length_size = length_size,
	.om_get_pointer_size = pointer_size,
	.om_get_filesize = file_size,
	.om_get_section_count = section_count,
	.om_load_section = get_section_data,
};

static int start(struct prb_debug_info *info, Dwarf_Error *error)
{
	info->access.ai_object = info->elf;
	info->access.ai_methods = &methods;
	return dwarf_object_init_b(&info->access, NULL, NULL, DW_GROUPNUMBER_ANY, &info->dbg,
				   error);
}

static void finish(struct prb_debug_info *info)
{
	dwarf_object_finish(info->dbg);
}

#else /* before 0.2 (2021): versions are dates */

static int get_section_info(void *object, Dwarf_Half index, Dwarf_Obj_Access_Section *ret,
			    int *error)
{
	uint64_t size = 0;

	(void)error;
	if (index >= PRB_ARRAY_SIZE(section_names))
		return DW_DLV_NO_ENTRY;
	if (!section(object, index, &size, NULL))
		size = 0;
	*ret = (Dwarf_Obj_Access_Section){
		.name = section_names[index],
		.size = size,
	};
	return DW_DLV_OK;
}

static int get_section_data(void *object, Dwarf_Half index, Dwarf_Small **ret, int *error)
{
	(void)error;
	return load_section(object, index, ret);
}

static Dwarf_Endianness byte_order(void *object)
{
	(void)object;
	return DW_OBJECT_LSB;
}

static const Dwarf_Obj_Access_Methods methods = {
	.get_section_info = get_section_info,
	.get_byte_order = byte_order,
	.get_length_size = length_size,
	.get_pointer_size = pointer_size,
	.get_section_count = section_count,
	.load_section = get_section_data,
};

static int start(struct prb_debug_info *info, Dwarf_Error *error)
{
	info->access.object = info->elf;
	info->access.methods = &methods;
	return dwarf_object_init_b(&info->access, NULL, NULL, DW_GROUPNUMBER_ANY, &info->dbg,
				   error);
}

static void finish(struct prb_debug_info *info)
{
	Dwarf_Error error = NULL;

	dwarf_object_finish(info->dbg, &error);
}

#endif

/* True on DW_DLV_OK; frees the memory of an error. */
static bool ok(struct prb_debug_info *info, int rc, Dwarf_Error *error)
{
	if (rc == DW_DLV_ERROR) {
		dwarf_dealloc_error(info->dbg, *error);
		*error = NULL;
	}
	return rc == DW_DLV_OK;
}

static struct prb_error *bad_dwarf(struct prb_debug_info *info, Dwarf_Error error)
{
	struct prb_error *err =
		prb_error_create(PRB_ERROR_BAD_DATA, "bad DWARF in %s: %s", prb_elf_name(info->elf),
				 error ? dwarf_errmsg(error) : "no reason");

	dwarf_dealloc_error(info->dbg, error);
	return err;
}

struct prb_error *prb_debug_info_open(struct prb_elf *elf, struct prb_debug_info **ret)
{
	if (!prb_elf_has_section(elf, ".debug_info"))
		return prb_error_create(PRB_ERROR_NOT_FOUND, "%s has no debug information",
					prb_elf_name(elf));

	prb_auto_free struct prb_debug_info *info = calloc(1, sizeof(*info));
	if (!info)
		return prb_error_nomem();
	info->elf = elf;

	Dwarf_Error error = NULL;
	int rc = start(info, &error);
	if (rc == DW_DLV_ERROR)
		return bad_dwarf(info, error);
	if (rc == DW_DLV_NO_ENTRY)
		return prb_error_create(PRB_ERROR_NOT_FOUND, "%s has no debug information",
					prb_elf_name(elf));
	*ret = prb_steal(&info);
	return NULL;
}

void prb_debug_info_close(struct prb_debug_info *info)
{
	if (!info)
		return;
	finish(info);
	free(info);
}

struct prb_error *prb_debug_info_next_unit(struct prb_debug_info *info, Dwarf_Die *ret)
{
	Dwarf_Unsigned length, type_offset, next;
	Dwarf_Half version, address_size, offset_size, extension_size, kind;
	Dwarf_Off abbreviations;
	Dwarf_Sig8 signature;
	Dwarf_Error error = NULL;

	*ret = NULL;
	for (;;) {
		int rc = dwarf_next_cu_header_d(info->dbg, true, &length, &version, &abbreviations,
						&address_size, &offset_size, &extension_size,
						&signature, &type_offset, &next, &kind, &error);
		if (rc == DW_DLV_NO_ENTRY)
			return NULL;
		if (rc == DW_DLV_ERROR)
			return bad_dwarf(info, error);

		Dwarf_Die die = NULL;
		rc = dwarf_siblingof_b(info->dbg, NULL, true, &die, &error);
		if (rc == DW_DLV_ERROR)
			return bad_dwarf(info, error);
		if (rc == DW_DLV_OK && prb_die_tag(info, die) == DW_TAG_compile_unit) {
			*ret = die;
			return NULL;
		}
		prb_die_free(die);
	}
}

Dwarf_Die prb_die_at(struct prb_debug_info *info, uint64_t offset)
{
	Dwarf_Die die = NULL;
	Dwarf_Error error = NULL;

	return ok(info, dwarf_offdie_b(info->dbg, offset, true, &die, &error), &error) ? die : NULL;
}

void prb_die_free(Dwarf_Die die)
{
	if (die)
		dwarf_dealloc_die(die);
}

/* Replaces *die by the next one, and frees the old one. */
static int step(struct prb_debug_info *info, Dwarf_Die parent, Dwarf_Die *die)
{
	Dwarf_Die next = NULL;
	Dwarf_Error error = NULL;
	int rc;

	if (!*die)
		rc = dwarf_child(parent, &next, &error);
	else
		rc = dwarf_siblingof_b(info->dbg, *die, true, &next, &error);
	bool found = ok(info, rc, &error);
	prb_die_free(*die);
	*die = found ? next : NULL;
	return rc;
}

/*
 * True if libdwarf will reach its end. To pass a DIE without DW_AT_sibling, libdwarf walks all its
 * children. Up to 20210528 it loops endlessly if one of them names itself or an earlier DIE as its
 * sibling.
 */
static bool can_be_passed(struct prb_debug_info *info, Dwarf_Die die, unsigned depth)
{
	uint64_t sibling;
	bool passed = depth < MAX_NESTING;
	Dwarf_Die inner = NULL;

	if (prb_die_has(info, die, DW_AT_sibling))
		return prb_die_reference(info, die, DW_AT_sibling, &sibling) &&
		       sibling > prb_die_offset(info, die);
	int rc = DW_DLV_OK;
	while (passed && (rc = step(info, die, &inner)) == DW_DLV_OK)
		passed = can_be_passed(info, inner, depth + 1);
	prb_die_free(inner);
	return passed && rc == DW_DLV_NO_ENTRY;
}

bool prb_die_next_child(struct prb_debug_info *info, Dwarf_Die parent, Dwarf_Die *die)
{
	if (!*die || can_be_passed(info, *die, 0))
		return step(info, parent, die) == DW_DLV_OK;
	prb_die_free(*die);
	*die = NULL;
	return false;
}

unsigned prb_die_tag(struct prb_debug_info *info, Dwarf_Die die)
{
	Dwarf_Half tag = 0;
	Dwarf_Error error = NULL;

	return ok(info, dwarf_tag(die, &tag, &error), &error) ? tag : 0;
}

uint64_t prb_die_offset(struct prb_debug_info *info, Dwarf_Die die)
{
	Dwarf_Off offset = 0;
	Dwarf_Error error = NULL;

	return ok(info, dwarf_dieoffset(die, &offset, &error), &error) ? offset : UINT64_MAX;
}

const char *prb_die_name(struct prb_debug_info *info, Dwarf_Die die)
{
	char *name = NULL;
	Dwarf_Error error = NULL;

	return ok(info, dwarf_diename(die, &name, &error), &error) ? name : NULL;
}

bool prb_die_has(struct prb_debug_info *info, Dwarf_Die die, unsigned attribute)
{
	Dwarf_Bool has = false;
	Dwarf_Error error = NULL;

	return ok(info, dwarf_hasattr(die, (Dwarf_Half)attribute, &has, &error), &error) && has;
}

static Dwarf_Attribute attribute_of(struct prb_debug_info *info, Dwarf_Die die, unsigned which)
{
	Dwarf_Attribute attribute = NULL;
	Dwarf_Error error = NULL;
	int rc = dwarf_attr(die, (Dwarf_Half)which, &attribute, &error);

	return ok(info, rc, &error) ? attribute : NULL;
}

static bool constant(struct prb_debug_info *info, Dwarf_Attribute attribute, bool want_signed,
		     int64_t *ret)
{
	Dwarf_Unsigned unsigned_value = 0;
	Dwarf_Signed signed_value = 0;
	Dwarf_Error error = NULL;

	if (!want_signed && ok(info, dwarf_formudata(attribute, &unsigned_value, &error), &error)) {
		*ret = (int64_t)unsigned_value;
		return true;
	}
	if (!ok(info, dwarf_formsdata(attribute, &signed_value, &error), &error))
		return false;
	*ret = signed_value;
	return want_signed || signed_value >= 0;
}

static bool number(struct prb_debug_info *info, Dwarf_Die die, unsigned which, bool want_signed,
		   int64_t *ret)
{
	Dwarf_Attribute attribute = attribute_of(info, die, which);

	if (!attribute)
		return false;

	bool found = constant(info, attribute, want_signed, ret);
	dwarf_dealloc_attribute(attribute);
	return found;
}

bool prb_die_signed(struct prb_debug_info *info, Dwarf_Die die, unsigned attribute, int64_t *ret)
{
	return number(info, die, attribute, true, ret);
}

bool prb_die_unsigned(struct prb_debug_info *info, Dwarf_Die die, unsigned attribute, uint64_t *ret)
{
	return number(info, die, attribute, false, (int64_t *)ret);
}

bool prb_die_reference(struct prb_debug_info *info, Dwarf_Die die, unsigned which, uint64_t *ret)
{
	Dwarf_Attribute attribute = attribute_of(info, die, which);
	Dwarf_Half form = 0;
	Dwarf_Off offset = 0;
	Dwarf_Error error = NULL;
	bool found = false;

	if (!attribute)
		return false;
	if (ok(info, dwarf_whatform(attribute, &form, &error), &error)) {
		switch (form) {
		case DW_FORM_ref1:
		case DW_FORM_ref2:
		case DW_FORM_ref4:
		case DW_FORM_ref8:
		case DW_FORM_ref_udata:
		case DW_FORM_ref_addr:
			found = ok(info, dwarf_global_formref(attribute, &offset, &error), &error);
			break;
		default:
			break;
		}
	}
	dwarf_dealloc_attribute(attribute);
	*ret = offset;
	return found;
}

/* DW_OP_plus_uconst N is how DWARF 2 says "at N"; DW_OP_constu N, DW_OP_plus means the same. */
static bool simple_expression(const uint8_t *bytes, uint64_t length, uint64_t *ret)
{
	uint64_t value = 0;
	unsigned shift = 0;

	if (length < 2 || (bytes[0] != DW_OP_plus_uconst && bytes[0] != DW_OP_constu))
		return false;
	for (uint64_t i = 1; i < length && shift < 63; i++, shift += 7) {
		value |= (uint64_t)(bytes[i] & 0x7f) << shift;
		if (!(bytes[i] & 0x80)) {
			*ret = value;
			return bytes[0] == DW_OP_plus_uconst
				       ? i + 1 == length
				       : i + 2 == length && bytes[i + 1] == DW_OP_plus;
		}
	}
	return false;
}

static bool expression(struct prb_debug_info *info, Dwarf_Attribute attribute, uint64_t *ret)
{
	Dwarf_Unsigned length = 0;
	Dwarf_Ptr bytes = NULL;
	Dwarf_Block *block = NULL;
	Dwarf_Error error = NULL;

	if (ok(info, dwarf_formexprloc(attribute, &length, &bytes, &error), &error))
		return simple_expression(bytes, length, ret);
	if (!ok(info, dwarf_formblock(attribute, &block, &error), &error))
		return false;

	bool found = simple_expression(block->bl_data, block->bl_len, ret);
	dwarf_dealloc(info->dbg, block, DW_DLA_BLOCK);
	return found;
}

bool prb_die_member_location(struct prb_debug_info *info, Dwarf_Die die, uint64_t *ret)
{
	Dwarf_Attribute attribute = attribute_of(info, die, DW_AT_data_member_location);

	if (!attribute)
		return false;

	int64_t value = 0;
	bool found = constant(info, attribute, false, &value);

	*ret = (uint64_t)value;
	if (!found)
		found = expression(info, attribute, ret);
	dwarf_dealloc_attribute(attribute);
	return found;
}
