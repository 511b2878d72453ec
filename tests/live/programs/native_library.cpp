// SPDX-License-Identifier: GPL-3.0-or-later
// C++ among Python functions: names to be demangled, functions that are inlined.
struct object;
extern "C" object *PyObject_CallFunctionObjArgs(object *callable, ...);

namespace shapes {

template <typename Kind> struct Holder {
	object *callable;

	__attribute__((always_inline)) object *inlined(int times) const
	{
		object *result = PyObject_CallFunctionObjArgs(callable, nullptr);
		__asm__ volatile("" ::"r"(times) : "memory");
		return result;
	}

	__attribute__((noinline)) object *call(const Kind &times) const
	{
		object *result = inlined(times);
		__asm__ volatile("" ::: "memory");
		return result;
	}
};

} // namespace shapes

extern "C" object *native_plus(object *callable)
{
	shapes::Holder<int> holder = {callable};
	object *result = holder.call(1);
	__asm__ volatile("" ::: "memory");
	return result;
}
