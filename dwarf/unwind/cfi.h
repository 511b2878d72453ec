/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The core of the unwinder: call frame information (CFI) from `.eh_frame` and `.debug_frame`
 * as bytes, and what it says about one frame.
 *
 * How a step is made: prb_cfi_index_find() finds the FDE of a pc in `.eh_frame_hdr`,
 * prb_cfi_fde_read() reads it with its CIE, prb_cfi_row_at() runs its program up to the pc and
 * gives a row (where the CFA is, where each register was saved), prb_cfi_apply() turns the
 * registers of the frame into those of its caller. Rows depend on the pc alone and may be kept.
 *
 * Everything works by numbers and bytes for both machines on any host: sections lie in our memory
 * (`data`) or are read through a callback, as the stack is. Nothing is allocated, locked or called
 * but memcpy and the callback, so it can run in a signal handler; about 4 KiB of stack are used.
 *
 * The bytes are hostile: every length is checked, programs and expressions are bounded.
 * All functions say by their status why they could not answer; outputs are then undefined.
 */
#ifndef PRB_DWARF_UNWIND_CFI_H
#define PRB_DWARF_UNWIND_CFI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "target/regs.h"

enum prb_cfi_status {
	PRB_CFI_OK,
	PRB_CFI_END,		  /**< the outermost frame; or no further entry */
	PRB_CFI_NOT_FOUND,	  /**< no entry covers the pc */
	PRB_CFI_UNREADABLE,	  /**< bytes of the CFI cannot be read */
	PRB_CFI_UNREADABLE_STACK, /**< a saved value that is needed cannot be read */
	PRB_CFI_BAD,		  /**< the CFI contradicts itself or exceeds a bound */
	PRB_CFI_UNSUPPORTED,	  /**< a version, augmentation or operation we do not know */
	PRB_CFI_UNKNOWN_REGISTER, /**< a rule needs a register whose value is not known */
	PRB_CFI_NO_RULE,	  /**< nothing is said about the return address */
};

/** The meaning of a status: static text that can follow "the walk ends: ". */
const char *prb_cfi_status_text(enum prb_cfi_status status);

/** How memory of the target is read; `read` gives false unless all bytes were read. */
struct prb_cfi_memory {
	bool (*read)(void *context, uint64_t address, void *buffer, size_t length);
	void *context;
};

/** A section with CFI, or with the search table of one. */
struct prb_cfi_section {
	uint64_t address; /**< at run time in the target */
	uint64_t size;	  /**< may be too large where `data` is NULL and the end is not known */
	const void *data; /**< `size` bytes of ours, or NULL: read through prb_cfi_memory */
	bool debug_frame; /**< the format of `.debug_frame`, not of `.eh_frame` */
	uint64_t bias;	  /**< added to absolute pointers: the module's bias if the bytes are as in
			       the file, 0 if the dynamic linker has relocated them */
	uint64_t text_base, data_base; /**< for DW_EH_PE_textrel and _datarel; 0 if unknown */
};

/** The search table of `.eh_frame_hdr`. */
struct prb_cfi_index {
	struct prb_cfi_section section; /**< the header itself */
	uint64_t eh_frame;		/**< run-time address of `.eh_frame` */
	uint64_t table;			/**< address of the first entry */
	uint64_t count;			/**< entries; 0 if there is no table that can be searched */
	uint8_t encoding;		/**< DW_EH_PE_* of both words of an entry */
	uint8_t width;			/**< bytes of one word */
};

/**
 * Reads the head of `.eh_frame_hdr`. A header without a table, or with one that is not
 * binary-searchable, is PRB_CFI_OK with count 0.
 */
enum prb_cfi_status prb_cfi_index_read(const struct prb_cfi_section *header,
				       const struct prb_cfi_memory *memory,
				       struct prb_cfi_index *ret) PRB_MUST_CHECK;

/** Address of the last FDE that starts at or before @p pc (it may end before it, too). */
enum prb_cfi_status prb_cfi_index_find(const struct prb_cfi_index *index,
				       const struct prb_cfi_memory *memory, uint64_t pc,
				       uint64_t *fde_address) PRB_MUST_CHECK;

struct prb_cfi_cie {
	uint64_t address;	       /**< of the entry; 0: nothing read yet */
	uint64_t program, program_end; /**< addresses of the initial instructions */
	uint64_t code_align;
	int64_t data_align;
	uint32_t ra;	   /**< column of the return address */
	uint8_t encoding;  /**< of pointers in its FDEs */
	bool sized;	   /**< its FDEs have augmentation data with a length */
	bool signal_frame; /**< the pc of such a frame's caller is exact */
};

struct prb_cfi_fde {
	uint64_t address;	       /**< of the entry */
	uint64_t start, end;	       /**< run-time pc range [start, end) */
	uint64_t program, program_end; /**< addresses of the instructions */
	struct prb_cfi_cie cie;
};

/**
 * Reads the FDE at @p address with its CIE. A CIE in @p ret from an earlier call with the same
 * section is reused; zero it before the first call.
 */
enum prb_cfi_status prb_cfi_fde_read(const struct prb_cfi_section *section,
				     const struct prb_cfi_memory *memory, uint64_t address,
				     struct prb_cfi_fde *ret) PRB_MUST_CHECK;

/**
 * Reads the next FDE at or after *@p address, and sets *@p address behind it; CIEs are passed
 * over, and so are FDEs that we cannot read when their length is good. PRB_CFI_END after the last.
 */
enum prb_cfi_status prb_cfi_fde_next(const struct prb_cfi_section *section,
				     const struct prb_cfi_memory *memory, uint64_t *address,
				     struct prb_cfi_fde *ret) PRB_MUST_CHECK;

enum prb_cfi_kind {
	PRB_CFI_UNSPECIFIED,	/**< no rule: what the ABI says */
	PRB_CFI_UNDEFINED,	/**< lost */
	PRB_CFI_SAME,		/**< unchanged */
	PRB_CFI_OFFSET,		/**< saved at CFA + value */
	PRB_CFI_VAL_OFFSET,	/**< is CFA + value */
	PRB_CFI_REGISTER,	/**< is (for the CFA: plus value) in register `reg` */
	PRB_CFI_EXPRESSION,	/**< saved at the address that an expression gives */
	PRB_CFI_VAL_EXPRESSION, /**< is what an expression gives */
};

struct prb_cfi_rule {
	uint8_t kind;	 /**< enum prb_cfi_kind; the CFA has REGISTER or VAL_EXPRESSION */
	uint8_t reg;	 /**< of REGISTER */
	uint16_t length; /**< of an expression in bytes */
	union {
		int32_t value;	     /**< offset in bytes */
		uint32_t expression; /**< where it starts, bytes from the section's start */
	};
};

enum { PRB_CFI_SIGNED = 1, PRB_CFI_SIGNED_WITH_PC = 2 };

/** All that holds for the pcs [start, end). Rules past `count` are not part of it. */
struct prb_cfi_row {
	uint64_t start, end;
	uint64_t mask; /**< bit N: register N has a rule */
	struct prb_cfi_rule cfa;
	uint8_t ra;	    /**< column of the return address */
	uint8_t sign_state; /**< aarch64: PRB_CFI_SIGNED if the return address is signed */
	bool signal_frame;
	uint8_t count;				  /**< of rules: as many as bits in mask */
	struct prb_cfi_rule rules[PRB_REG_COUNT]; /**< of the bits in mask, lowest first */
};

/** Rule of register @p number, kind PRB_CFI_UNSPECIFIED if there is none. */
struct prb_cfi_rule prb_cfi_row_rule(const struct prb_cfi_row *row, unsigned number);

/** Runs the program of @p fde up to @p pc. PRB_CFI_NOT_FOUND if the FDE does not cover it. */
enum prb_cfi_status prb_cfi_row_at(const struct prb_cfi_section *section,
				   const struct prb_cfi_memory *memory,
				   const struct prb_cfi_fde *fde, uint16_t machine, uint64_t pc,
				   struct prb_cfi_row *ret) PRB_MUST_CHECK;

/**
 * The registers of the caller. Registers without a rule are kept if the ABI makes functions
 * preserve them, and forgotten otherwise; the stack pointer becomes the CFA. Unreadable registers
 * are forgotten, unless it is the CFA or the return address. @p section holds the expressions. @p
 * pac_mask: bits that a signature occupies in a signed return address (aarch64). PRB_CFI_END: there
 * is no caller; @p regs unchanged but on PRB_CFI_OK.
 */
enum prb_cfi_status prb_cfi_apply(const struct prb_cfi_section *section,
				  const struct prb_cfi_memory *memory,
				  const struct prb_cfi_row *row, uint64_t pac_mask,
				  struct prb_regs *regs, uint64_t *cfa) PRB_MUST_CHECK;

/**
 * Value of the expression of @p rule. @p initial is on the stack at the start (the CFA), or NULL.
 * Register 16 (x86_64) and 32 (aarch64) are the pc.
 */
enum prb_cfi_status prb_cfi_evaluate(const struct prb_cfi_section *section,
				     const struct prb_cfi_memory *memory,
				     const struct prb_cfi_rule *rule, const struct prb_regs *regs,
				     const uint64_t *initial, uint64_t *ret) PRB_MUST_CHECK;

/**
 * Leaves a signal trampoline that has no CFI: if the instructions at regs->pc return from a signal
 * handler, takes the interrupted registers from the frame that the kernel has pushed.
 * PRB_CFI_NOT_FOUND if they are not.
 */
enum prb_cfi_status prb_cfi_sigreturn(const struct prb_cfi_memory *memory, struct prb_regs *regs,
				      uint64_t *cfa) PRB_MUST_CHECK;

/**
 * Leaves a trampoline that CPython makes for perf (-X perf, x86_64), for a pc that is a return
 * address: if the instructions around it are those. PRB_CFI_NOT_FOUND if they are not.
 */
enum prb_cfi_status prb_cfi_leave_trampoline(const struct prb_cfi_memory *memory,
					     struct prb_regs *regs, uint64_t *cfa) PRB_MUST_CHECK;

/**
 * Leaves a linker's stub (an entry of the PLT) that has no CFI, for a pc that is exact: carries
 * out its instructions on @p regs up to the function it jumps to; the frame stays the same one.
 * PRB_CFI_NOT_FOUND, with @p regs unchanged, if the code is anything else.
 */
enum prb_cfi_status prb_cfi_leave_stub(const struct prb_cfi_memory *memory,
				       struct prb_regs *regs) PRB_MUST_CHECK;

#endif
