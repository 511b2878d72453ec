/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Types as the debug information of an interpreter has them, for debuggers that hold one without.
 */
struct _typeobject;

typedef struct _object {
	long ob_refcnt;
	struct _typeobject *ob_type;
} PyObject;

typedef struct {
	PyObject ob_base;
	long ob_size;
} PyVarObject;

typedef struct {
	PyVarObject ob_base;
	int own;
} UserObject;

typedef union {
	unsigned long bits;
} _PyStackRef;

struct other {
	long ob_refcnt;
};

PyObject object;
PyVarObject var_object;
UserObject user_object;
_PyStackRef reference;
struct other other;
