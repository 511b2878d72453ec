/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Shared by the handlers of python/repr/ and by what else reads objects: the state of one
 * repr, types as read from the target, and the readers of single kinds of objects.
 *
 * A handler prints one kind of object. It returns PRB_ERROR_FAULT or PRB_ERROR_BAD_DATA for what
 * cannot be read or makes no sense; prb_repr_object() then takes back what the handler wrote and
 * puts "<unreadable at 0x…>" in its place. All other errors end the whole repr.
 */
#ifndef PRB_PYTHON_REPR_CORE_REPR_PRIVATE_H
#define PRB_PYTHON_REPR_CORE_REPR_PRIVATE_H

#include <stdbool.h>

#include "base/vec.h"
#include "python/repr/core/attributes.h"
#include "python/repr/core/repr.h"

enum {
	PRB_PY_STATIC_BUILTIN = 1 << 1, /* 3.12+ */
	PRB_PY_INLINE_VALUES = 1 << 2,
	PRB_PY_MANAGED_DICT = 1 << 4,
	PRB_PY_HEAP_TYPE = 1 << 9,
	PRB_PY_READY = 1 << 12,
	PRB_PY_INT = 1 << 24,
	PRB_PY_LIST = 1 << 25,
	PRB_PY_TUPLE = 1 << 26,
	PRB_PY_BYTES = 1 << 27,
	PRB_PY_STR = 1 << 28,
	PRB_PY_DICT = 1 << 29,
};
#define PRB_PY_TYPE (UINT64_C(1) << 31)
/** Of these bits a type has one at most: what it is derived from. */
#define PRB_PY_KINDS (UINT64_C(0xff) << 24)

/** How the hash table of a dict lies in memory. */
enum prb_dict_keys {
	PRB_KEYS_OPEN,	  /**< ≤3.5: an open table of entries, in the order of the hash */
	PRB_KEYS_COMPACT, /**< 3.6–3.10: index table and entries in the order of insertion */
	PRB_KEYS_KINDS,	  /**< 3.11+: the same, with smaller entries for str keys */
};

/** Values that lie outside of the hash table (split dicts, instances). */
enum prb_dict_values {
	PRB_VALUES_PLAIN,    /**< ≤3.10: an array in the order of the keys */
	PRB_VALUES_PREFIXED, /**< 3.11–3.12: size and order of insertion lie before the array */
	PRB_VALUES_HEADED,   /**< 3.13+: a header, the array, then the order of insertion */
};

/** Where an instance without a materialised __dict__ keeps its values. */
enum prb_managed_dict {
	PRB_MANAGED_NONE,   /**< ≤3.10 */
	PRB_MANAGED_PAIR,   /**< 3.11: pointers to values and dict before the object */
	PRB_MANAGED_TAGGED, /**< 3.12: one pointer before the object, lowest bit set for values */
	PRB_MANAGED_INLINE, /**< 3.13+: values follow the object itself */
};

/** Differences of objects between versions that are no offsets of a layout. */
struct prb_object_traits {
	uint16_t since; /**< first version, 0x030b for 3.11 */
	enum prb_dict_keys keys;
	enum prb_dict_values values;
	enum prb_managed_dict managed;
	bool hash_long;	       /**< the hash of a str is SipHash-2-4 unless chosen otherwise */
	bool int_tag;	       /**< lv_tag instead of the signed size */
	bool exception_comma;  /**< ValueError('x',) */
	bool odict_as_dict;    /**< OrderedDict({…}) instead of OrderedDict([…]) */
	bool enum_value_first; /**< unnamed flags are <Color: 8> and named ones never split */
	bool module_repr;      /**< loaders may say what their modules look like */
	bool loader_first;     /**< … and are asked before the module's spec */
	bool method_class;     /**< methods are named by the class of self */
	bool literal_names; /**< subclasses of array, bytearray, defaultdict, deque print as these
			     */
	bool weakref_full;  /**< weak references have the full name of a class */
	bool namespace_sorted;	 /**< SimpleNamespace sorts by name */
	bool bytearray_as_bytes; /**< the quotes of a bytearray are those of bytes */
	bool rlock_short;	 /**< RLocks do not show where they are */
	bool rlock_mutex;	 /**< RLocks are recursive mutexes that count from zero */
	bool fold;		 /**< times have a fold */
	bool exception_notes;	 /**< exceptions have them, behind their arguments */
	bool slots_after_items;	 /**< subclasses of tuple may have slots */
	bool timedelta_names;	 /**< timedelta(days=1) instead of timedelta(1) */
	bool queue_ring;	 /**< a SimpleQueue is a ring, and no list */
	uint8_t deque_block;	 /**< items in one block */
};

/** The traits of the newest version that is not newer than @p version. */
const struct prb_object_traits *prb_object_traits_find(uint16_t version);

struct prb_repr;
struct prb_type;
typedef struct prb_error *prb_repr_handler(struct prb_repr *r, uint64_t object,
					   struct prb_type *type);

/** The parts of its objects that a class hides; a C class has content that is no attribute. */
enum prb_hides {
	PRB_HIDES_SEEN = 1,
	PRB_HIDES_FIELDS = 2,
	PRB_HIDES_ALL = 4,
	PRB_HIDES_CONTENT = 8,
};

/** A type as read from the target; lives as long as the repr, and it may be of many objects. */
struct prb_type {
	uint64_t address;
	bool named; /**< `name` has been read, from `name_at` */
	enum { PRB_CUSTOM_UNKNOWN, PRB_CUSTOM_NO, PRB_CUSTOM_YES } custom; /**< extensions.c */
	unsigned hides;			     /**< enum prb_hides, hidden.c */
	const struct prb_known_class *known; /**< likewise */
	char name[128];			     /**< tp_name, cut off if longer */
	uint64_t name_at;		     /**< where it lies */
	uint64_t flags, base, mro, dict, repr, members;
	int64_t basicsize, itemsize, dictoffset;
	prb_repr_handler *handler; /**< NULL until it is resolved */
};

enum {
	PRB_REPR_NEST = 64, /* objects within objects, whatever max_depth says */
	PRB_MRO_MAX = 256,
	PRB_REPR_RECENT = 32, /* a power of two */
};

struct prb_repr {
	struct prb_python *py;
	struct prb_mem *mem;
	const struct prb_layout *layout;
	const struct prb_object_traits *traits;
	struct prb_repr_options max;
	struct prb_str *out;
	size_t start; /**< length of *out when we began */
	PRB_VEC(struct prb_type *) types;
	struct prb_type *recent[PRB_REPR_RECENT]; /**< by their addresses: some of the types */
	uint64_t walked;			  /**< entries of tables looked at */
	bool torn;	/**< a table had fewer entries than it said: it was being changed */
	unsigned level; /**< objects that are being printed */
	unsigned depth; /**< the containers among them */
	uint64_t nest[PRB_REPR_NEST]; /**< these containers */
	uint64_t instances;	      /**< a bit for each of them that shows its attributes */
};

/* repr.c: state, dispatch, containers */
void prb_repr_init(struct prb_repr *r, struct prb_python *py, struct prb_mem *mem,
		   const struct prb_repr_options *options, struct prb_str *out);
/** Begins with an object of @p objects: the repr to use, and the type with its handler. */
struct prb_error *prb_objects_begin(struct prb_objects *objects, uint64_t object,
				    struct prb_repr **ret, struct prb_type **type) PRB_MUST_CHECK;

/** Begins another object of the same instant, whose types are known already. */
void prb_repr_again(struct prb_repr *r, const struct prb_repr_options *options,
		    struct prb_str *out);
void prb_repr_deinit(struct prb_repr *r);
#define prb_auto_repr __attribute__((cleanup(prb_repr_deinit)))

/** Prints any object; what cannot be read shows as unreadable. */
struct prb_error *prb_repr_object(struct prb_repr *r, uint64_t object) PRB_MUST_CHECK;

/** Cuts what is over the limit of the whole, not inside of a character. */
void prb_repr_cut(struct prb_repr *r);

/** Bytes that may still be printed before the rest is left out. */
size_t prb_repr_room(const struct prb_repr *r);

/** Begins a container. False if it is being printed already; then @p again, unless NULL,
 * was printed. */
bool prb_repr_enter(struct prb_repr *r, uint64_t object, const char *again);
void prb_repr_leave(struct prb_repr *r);

/** Items of a container, separated by ", "; what the limits leave out is counted. */
struct prb_items {
	struct prb_repr *r;
	uint64_t total, done;
};

/** Begins the next item; false when the limits are reached and the rest was summed up. */
bool prb_items_next(struct prb_items *items);

/** The error of an object that makes no sense. */
PRB_MUST_CHECK static inline struct prb_error *prb_repr_bad(uint64_t object, const char *what)
{
	return prb_error_create(PRB_ERROR_BAD_DATA, "object at %#llx: %s",
				(unsigned long long)object, what);
}

/* extensions.c */
/** True if an extension of the user has texts for objects of the class. */
bool prb_repr_is_custom(struct prb_repr *r, struct prb_type *type);

/* read.c: bounded reading of plain data */
struct prb_error *prb_repr_word(struct prb_repr *r, uint64_t address, uint64_t *ret) PRB_MUST_CHECK;
struct prb_error *prb_repr_words(struct prb_repr *r, uint64_t address, size_t count,
				 uint64_t *ret) PRB_MUST_CHECK;
/** The @p index-th word after the object's header. */
struct prb_error *prb_repr_member(struct prb_repr *r, uint64_t object, unsigned index,
				  uint64_t *ret) PRB_MUST_CHECK;
/** ob_size, checked to be 0…2^48. */
struct prb_error *prb_repr_size(struct prb_repr *r, uint64_t object, uint64_t *ret) PRB_MUST_CHECK;
/** Counts entries of tables that are looked at; BAD_DATA when it is more than can make sense. */
struct prb_error *prb_repr_walk(struct prb_repr *r, uint64_t entries) PRB_MUST_CHECK;
/** A C string of at most @p size - 1 bytes; a longer one is cut off. */
struct prb_error *prb_repr_cstr(struct prb_repr *r, uint64_t address, char *ret,
				size_t size) PRB_MUST_CHECK;
/** Items of a tuple (or a subclass of it), at most @p max; *count is how many it has. */
struct prb_error *prb_repr_tuple(struct prb_repr *r, uint64_t object, uint64_t *ret, size_t max,
				 uint64_t *count) PRB_MUST_CHECK;

/* types.c */
struct prb_error *prb_repr_type(struct prb_repr *r, uint64_t address,
				struct prb_type **ret) PRB_MUST_CHECK;
/** As above, without its name, which may be unreadable, or one more request to another machine. */
struct prb_error *prb_repr_nameless_type(struct prb_repr *r, uint64_t address,
					 struct prb_type **ret) PRB_MUST_CHECK;
struct prb_error *prb_repr_type_of(struct prb_repr *r, uint64_t object,
				   struct prb_type **ret) PRB_MUST_CHECK;
/** As above, without its name, which may be one more request to another machine. */
struct prb_error *prb_repr_nameless_type_of(struct prb_repr *r, uint64_t object,
					    struct prb_type **ret) PRB_MUST_CHECK;
/** True if it is a dict, or a str; or of a class derived from that. */
struct prb_error *prb_repr_is_dict(struct prb_repr *r, uint64_t object, bool *ret) PRB_MUST_CHECK;
struct prb_error *prb_repr_is_str(struct prb_repr *r, uint64_t object, bool *ret) PRB_MUST_CHECK;
/** True if @p type is the builtin or extension type of that tp_name, not a class of that name. */
bool prb_type_is(const struct prb_type *type, const char *name);
/** prb_type_is() of the object's type; false also for what cannot be read. */
bool prb_repr_is(struct prb_repr *r, uint64_t object, const char *name);
bool prb_repr_is_none(struct prb_repr *r, uint64_t object);
/** The dict of a class, also where its interpreter keeps it; 0 if it is not known. */
struct prb_error *prb_repr_class_dict(struct prb_repr *r, const struct prb_type *type,
				      uint64_t *ret) PRB_MUST_CHECK;
struct prb_error *prb_repr_mro(struct prb_repr *r, const struct prb_type *type, uint64_t *ret,
			       size_t *count) PRB_MUST_CHECK;
/** A class attribute along the MRO; @p owner (may be NULL) is the class that has it. */
struct prb_error *prb_repr_lookup(struct prb_repr *r, const struct prb_type *type, const char *name,
				  uint64_t *ret, struct prb_type **owner) PRB_MUST_CHECK;
/** Appends type.__name__, type.__qualname__. */
struct prb_error *prb_repr_put_name(struct prb_repr *r, const struct prb_type *type) PRB_MUST_CHECK;
/** As above, or @p kind in versions whose subclasses print as the builtin type that they are of. */
struct prb_error *prb_repr_put_kind(struct prb_repr *r, const struct prb_type *type,
				    const char *kind) PRB_MUST_CHECK;
struct prb_error *prb_repr_put_qualname(struct prb_repr *r,
					const struct prb_type *type) PRB_MUST_CHECK;
/** Appends "(FUNCTION, ARGUMENTS, KEY=VALUE)": @p words are the function, the tuple of its @p count
 * arguments, and a dict of the others (0 or None: there is none). */
struct prb_error *prb_repr_put_call(struct prb_repr *r, const uint64_t words[3],
				    uint64_t count) PRB_MUST_CHECK;
/** Appends "module." unless the type is of builtins or has no module. */
struct prb_error *prb_repr_put_module(struct prb_repr *r,
				      const struct prb_type *type) PRB_MUST_CHECK;

/* builtin/generic_types.c */
/** Appends a parameter of a type: a class by its name alone, "..." and None as they are written,
 * all others as repr() prints them. */
struct prb_error *prb_repr_put_parameter(struct prb_repr *r, uint64_t object) PRB_MUST_CHECK;

/* builtin/str.c */
struct prb_error *prb_repr_text(struct prb_repr *r, uint64_t object, size_t max,
				struct prb_str *ret) PRB_MUST_CHECK;
/** Appends the text of a str as it is (for names), bounded by the limits. */
struct prb_error *prb_repr_put_text(struct prb_repr *r, uint64_t object) PRB_MUST_CHECK;
/** How far the kind of a str lies from the lowest bit of its state; compact and ASCII follow. */
unsigned prb_repr_str_state_shift(const struct prb_layout *l);
bool prb_is_ascii(const char *text);
/** True if the object is a str of exactly this ASCII text. */
struct prb_error *prb_repr_text_is(struct prb_repr *r, uint64_t object, const char *text,
				   bool *ret) PRB_MUST_CHECK;
/** As above, with NULs, and lone surrogates in the form of UTF-8, so that nothing is lost. */
struct prb_error *prb_repr_raw_text(struct prb_repr *r, uint64_t object, size_t max,
				    struct prb_str *ret) PRB_MUST_CHECK;
/** Appends a quoted literal of a prb_repr_raw_text(). */
struct prb_error *prb_repr_quote_raw(struct prb_repr *r, const struct prb_str *text) PRB_MUST_CHECK;
/** Appends a quoted literal of @p length characters of @p width bytes each, cut at the limits. */
struct prb_error *prb_repr_quote_at(struct prb_repr *r, uint64_t address, unsigned width,
				    uint64_t length) PRB_MUST_CHECK;
/** As above, for @p count characters of the str @p object from @p start on. */
struct prb_error *prb_repr_quote_part(struct prb_repr *r, uint64_t object, uint64_t start,
				      uint64_t count) PRB_MUST_CHECK;
/** Appends a quoted literal of code points as Python would print it. */
void prb_repr_quote(struct prb_repr *r, const uint32_t *text, size_t count);

/* printable.c */
bool prb_py_printable(uint32_t code_point, uint16_t version);

/* hash_tables.c, hash_lookup.c, instances.c */

enum { PRB_VALUES_HEADER = 8 /* PRB_VALUES_HEADED: capacity, size, embedded, valid */ };

/** A hash table as its header describes it. */
struct prb_dict_table {
	uint64_t entries, count; /**< address; how many entries to look at */
	uint64_t indices, size;	 /**< address of the slots, how many; 0 if entries are the slots */
	unsigned words;		 /**< per entry: (hash,) key, value */
};

struct prb_error *prb_dict_table_read(struct prb_repr *r, uint64_t keys,
				      struct prb_dict_table *ret) PRB_MUST_CHECK;
/** Bytes of one slot. */
unsigned prb_dict_index_width(uint64_t size);
/** Of a dict: how many values it has, its table, and the values (0: they are in the entries). */
struct prb_error *prb_repr_dict_open(struct prb_repr *r, uint64_t dict, uint64_t *used,
				     uint64_t *keys, uint64_t *values) PRB_MUST_CHECK;

typedef bool prb_dict_visit(void *context, uint64_t key, uint64_t value);
/** The entries of a hash table with its values outside (or 0), at most @p used. */
struct prb_error *prb_repr_table_each(struct prb_repr *r, uint64_t keys, uint64_t values,
				      uint64_t used, prb_dict_visit *visit,
				      void *context) PRB_MUST_CHECK;
/** The value of a str key; PRB_ERROR_NOT_FOUND. */
struct prb_error *prb_repr_table_get(struct prb_repr *r, uint64_t keys, uint64_t values,
				     uint64_t used, const char *name, uint64_t *ret) PRB_MUST_CHECK;
struct prb_error *prb_repr_dict_each(struct prb_repr *r, uint64_t dict, prb_dict_visit *visit,
				     void *context) PRB_MUST_CHECK;
/** As above, for a dict whose keys are ints from 0 to 2^61 - 2, each of which is its own hash:
 * these are given in place of the keys, which lie elsewhere. Of other keys it is what happens to
 * be. */
struct prb_error *prb_repr_dict_each_int(struct prb_repr *r, uint64_t dict, prb_dict_visit *visit,
					 void *context) PRB_MUST_CHECK;
struct prb_error *prb_repr_dict_size(struct prb_repr *r, uint64_t dict,
				     uint64_t *ret) PRB_MUST_CHECK;
struct prb_error *prb_repr_dict_get(struct prb_repr *r, uint64_t dict, const char *name,
				    uint64_t *ret) PRB_MUST_CHECK;
struct prb_error *prb_repr_attribute(struct prb_repr *r, uint64_t object, const char *name,
				     uint64_t *ret) PRB_MUST_CHECK;
/** As above, for what is in its __dict__ alone. */
struct prb_error *prb_repr_instance_get(struct prb_repr *r, uint64_t object, const char *name,
					uint64_t *ret) PRB_MUST_CHECK;
/** True if objects of the type have a __dict__, if only an empty one. */
bool prb_repr_has_dict(const struct prb_repr *r, const struct prb_type *type);
/** The entries of the __dict__ of an object, whether it is one or only the values of one. */
struct prb_error *prb_repr_instance_each(struct prb_repr *r, uint64_t object, prb_dict_visit *visit,
					 void *context) PRB_MUST_CHECK;

/* members.c: slots and the fields of C types */

/** A member as its class describes it. */
struct prb_member {
	char name[128];
	int kind;	  /**< T_INT and so on of CPython's structmember.h */
	bool after_items; /**< 3.15+, of subclasses of tuple: what the items take is added */
	uint64_t offset;
};

/** Calls @p visit for each member that @p class itself has, until it returns false. */
struct prb_error *prb_repr_members_each(struct prb_repr *r, const struct prb_type *class,
					bool (*visit)(void *context,
						      const struct prb_member *member),
					void *context) PRB_MUST_CHECK;
/** The member that a member descriptor stands for. PRB_ERROR_NOT_FOUND for other objects. */
struct prb_error *prb_repr_member_of(struct prb_repr *r, uint64_t descriptor,
				     struct prb_member *ret) PRB_MUST_CHECK;
/**
 * The value of a member: an object, or else (*ret is 0) its repr() is appended to @p text.
 * PRB_ERROR_NOT_FOUND if it is not set.
 */
struct prb_error *prb_repr_member_value(struct prb_repr *r, uint64_t object,
					const struct prb_member *member, uint64_t *ret,
					struct prb_str *text) PRB_MUST_CHECK;

/* builtin/frames.c */
/** The frame that the object is, or has; none (*found) of another object, and once it has ended. */
struct prb_error *prb_repr_frame_of(struct prb_repr *r, uint64_t object, struct prb_py_frame *ret,
				    bool *found) PRB_MUST_CHECK;
/** Appends the frame as repr() shows the object @p object that it has, or would have. */
struct prb_error *prb_repr_put_frame(struct prb_repr *r, const struct prb_py_frame *frame,
				     const char *name, uint64_t object) PRB_MUST_CHECK;

/* hidden.c */
/** Shown in place of a value that its own class hides. */
#define PRB_REPR_HIDDEN "<hidden>"
/** True if the class leaves that attribute, which the object itself has, out of the repr() of its
 * objects; false with `secrets`. */
bool prb_repr_hides(struct prb_repr *r, struct prb_type *type, uint64_t object, const char *name);
/** True if a class hides defaults of its fields: in all that it has. */
bool prb_repr_hides_defaults(struct prb_repr *r, uint64_t class);
/** True if it hides all that its objects keep, whatever it is derived from: attributes, the text of
 * a str, the items of a list. Every reader of values asks before it chooses by type how to read. */
bool prb_repr_hides_all(struct prb_repr *r, struct prb_type *type);
/** True if it hides an item: all, or one that an attribute gives, too, as of named tuples. */
bool prb_repr_hides_items(struct prb_repr *r, struct prb_type *type);
/** Prints an object that hides all. */
struct prb_error *prb_repr_put_hidden(struct prb_repr *r, uint64_t object,
				      struct prb_type *type) PRB_MUST_CHECK;

/* attributes.c */
/** As prb_object_attributes(); whether it is torn is in r->torn. */
struct prb_error *prb_repr_attributes(struct prb_repr *r, uint64_t object, unsigned kinds,
				      prb_attribute_visit *visit, void *context) PRB_MUST_CHECK;

/* builtin/lists_and_sets.c */
/** The keys of a set or frozenset, until @p visit returns false. */
struct prb_error *prb_repr_set_each(struct prb_repr *r, uint64_t object,
				    bool (*visit)(void *context, uint64_t key),
				    void *context) PRB_MUST_CHECK;

/** The items of a deque, until @p visit returns false. */
struct prb_error *prb_repr_deque_each(struct prb_repr *r, uint64_t object,
				      bool (*visit)(void *context, uint64_t item),
				      void *context) PRB_MUST_CHECK;
/** Item @p index, which it has, of a deque. */
struct prb_error *prb_repr_deque_item(struct prb_repr *r, uint64_t object, uint64_t index,
				      uint64_t *ret) PRB_MUST_CHECK;

/* arrays/numpy.c */
/** The memory of an array. */
struct prb_ndarray_memory {
	uint64_t data, bytes;
	bool owned;   /**< it frees the data */
	bool objects; /**< the elements are pointers to objects */
};
struct prb_error *prb_repr_ndarray_memory(struct prb_repr *r, uint64_t object,
					  struct prb_ndarray_memory *ret) PRB_MUST_CHECK;

/* builtin/numbers.c */
struct prb_error *prb_repr_int(struct prb_repr *r, uint64_t object, int64_t *ret) PRB_MUST_CHECK;
struct prb_error *prb_repr_uint128(struct prb_repr *r, uint64_t object,
				   unsigned __int128 *ret) PRB_MUST_CHECK;
/** ob_size without sign, or the digit count of lv_tag for ints: how many items a var object has. */
struct prb_error *prb_repr_item_count(struct prb_repr *r, uint64_t object,
				      const struct prb_type *type, uint64_t *ret) PRB_MUST_CHECK;
/** Appends the shortest text that reads back as the same double, as float.__repr__ does. */
void prb_repr_put_double(struct prb_repr *r, double value);

#endif
