/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Short forms of demangled names. Most are symbols of libstdc++, libtorch and Rust programs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "dwarf/lines/demangle.h"
#include "dwarf/lines/short_name.h"

#define STRING "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >"

struct test_case {
	const char *name, *brief; /**< brief NULL: no shorter form */
};

static void check(const struct test_case *cases, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		prb_auto_free char *brief = NULL;

		assert_null(prb_short_name(cases[i].name, &brief));
		if (!cases[i].brief != !brief || (brief && strcmp(brief, cases[i].brief) != 0))
			fail_msg("%s: %s", cases[i].name, brief ? brief : "NULL");
	}
}

static void shortens_classes_of_the_standard_library(void **state)
{
	static const struct test_case cases[] = {
		{STRING "::push_back(char)", "std::string::push_back(char)"},
		{"std::__cxx11::basic_string<wchar_t, std::char_traits<wchar_t>, "
		 "std::allocator<wchar_t> >::size() const",
		 "std::wstring::size() const"},
		{"std::basic_string_view<char16_t, std::char_traits<char16_t> >::size() const",
		 "std::u16string_view::size() const"},
		{"std::basic_ostream<char, std::char_traits<char> >::flush()",
		 "std::ostream::flush()"},
		{"std::__cxx11::basic_ostringstream<char, std::char_traits<char>, "
		 "std::allocator<char> >::str() const",
		 "std::ostringstream::str() const"},
		{"std::vector<" STRING ", std::allocator<" STRING " > >::reserve(unsigned long)",
		 "std::vector<std::string>::reserve(unsigned long)"},
		{"std::map<" STRING ", int, std::less<" STRING
		 " >, std::allocator<std::pair<" STRING " const, int> > >::at(" STRING " const&)",
		 "std::map<std::string, int>::at(std::string const&)"},
		{"std::unordered_map<long, c10::IValue, std::hash<long>, std::equal_to<long>, "
		 "std::allocator<std::pair<long const, c10::IValue> > >::clear()",
		 "std::unordered_map<long, c10::IValue>::clear()"},
		{"std::set<char const*, std::less<char const*>, std::allocator<char const*> "
		 ">::end()",
		 "std::set<char const*>::end()"},
		{"std::unique_ptr<at::Generator, std::default_delete<at::Generator> >::reset(at::"
		 "Generator*)",
		 "std::unique_ptr<at::Generator>::reset(at::Generator*)"},
		{"std::priority_queue<int, std::vector<int, std::allocator<int> >, std::less<int> >"
		 "::pop()",
		 "std::priority_queue<int>::pop()"},
		{"std::queue<int, std::deque<int, std::allocator<int> > >::push(int&&)",
		 "std::queue<int>::push(int&&)"},
		{"std::__1::vector<std::__1::basic_string<char, std::__1::char_traits<char>, "
		 "std::__1::allocator<char> >, std::__1::allocator<std::__1::basic_string<char, "
		 "std::__1::char_traits<char>, std::__1::allocator<char> > > >::clear()",
		 "std::vector<std::string>::clear()"},
		{"std::vector<int, std::allocator<int>>::clear()", "std::vector<int>::clear()"},
	};

	(void)state;
	check(cases, PRB_ARRAY_SIZE(cases));
}

static void keeps_arguments_that_were_written(void **state)
{
	static const struct test_case cases[] = {
		{"std::vector<int, my::Arena<int> >::clear()",
		 "std::vector<int, my::Arena<int>>::clear()"},
		{"std::map<int, T, std::greater<int>, std::allocator<std::pair<int const, T> > "
		 ">::end()",
		 "std::map<int, T, std::greater<int>>::end()"},
		{"std::set<int, std::less<int>, my::Arena<int> >::end()",
		 "std::set<int, std::less<int>, my::Arena<int>>::end()"},
		{"my::vector<int, std::allocator<int> >::clear()",
		 "my::vector<int, std::allocator<int>>::clear()"},
		{"std::vector<int, std::allocator<long> >::clear()",
		 "std::vector<int, std::allocator<long>>::clear()"},
		{"std::vector<a, b, c, d, e, f>::x()", NULL},
		{"std::basic_string<T, std::char_traits<T>, std::allocator<T> >::size()",
		 "std::basic_string<T>::size()"},
		{"std::unique_ptr<_IO_FILE, int (*)(_IO_FILE*)>::get() const", NULL},
		{"std::string::string()", NULL},
	};

	(void)state;
	check(cases, PRB_ARRAY_SIZE(cases));
}

static void drops_inline_namespaces_and_tags(void **state)
{
	static const struct test_case cases[] = {
		{"std::chrono::_V2::steady_clock::now()", "std::chrono::steady_clock::now()"},
		{"std::filesystem::__cxx11::path::filename() const",
		 "std::filesystem::path::filename() const"},
		{"std::ios_base::failure[abi:cxx11]::what() const",
		 "std::ios_base::failure::what() const"},
		{"fmt::v9::vprint(int)", "fmt::vprint(int)"},
		{"absl::lts_20230125::Mutex::Lock()", "absl::Mutex::Lock()"},
		{"nlohmann::json_abi_v3_11_2::detail::lexer()", "nlohmann::detail::lexer()"},
		{"my::__cxx11::thing()", NULL},
		{"fmt::vector::x()", NULL},
		{"fmt::v::x()", NULL},
		{"c10::detail::torchCheckFail(char const*)", NULL},
	};

	(void)state;
	check(cases, PRB_ARRAY_SIZE(cases));
}

static void reads_operators(void **state)
{
	static const struct test_case cases[] = {
		{"std::basic_ostream<char, std::char_traits<char> >& std::operator<< "
		 "<std::char_traits<char> >(std::basic_ostream<char, std::char_traits<char> >&, "
		 "char const*)",
		 "std::ostream& std::operator<< <std::char_traits<char>>(std::ostream&, char "
		 "const*)"},
		{"bool std::operator< <int, std::allocator<int> >(std::vector<int, "
		 "std::allocator<int> > const&)",
		 "bool std::operator< <int, std::allocator<int>>(std::vector<int> const&)"},
		{"at::Tensor::operator->() const", NULL},
		{"bool operator<(" STRING " const&, int)",
		 "bool operator<(std::string const&, int)"},
		{"operator>>(A&, " STRING "&)", "operator>>(A&, std::string&)"},
		{"A::operator<=>(A const&) const", NULL},
		{"A::operator " STRING "() const", "A::operator std::string() const"},
		{"f<&A::operator->, &A::operator> >(std::vector<int, std::allocator<int> >)",
		 "f<&A::operator->, &A::operator> >(std::vector<int>)"},
		{"f<&A::operator,, int>(" STRING ")", "f<&A::operator,, int>(std::string)"},
		{"A::operator()<std::vector<int, std::allocator<int> > >(int)",
		 "A::operator()<std::vector<int>>(int)"},
		{"A::operator-><3>() const", NULL},
		{"operator\"\" _kb(unsigned long long)", NULL},
		{"operator new[](unsigned long)", NULL},
		{"my_operator<std::vector<int, std::allocator<int> > >()",
		 "my_operator<std::vector<int>>()"},
	};

	(void)state;
	check(cases, PRB_ARRAY_SIZE(cases));
}

static void reads_lambdas_and_expressions(void **state)
{
	static const struct test_case cases[] = {
		{"void c10::function_ref<void (char**, long const*, long, long)>::callback_fn<at::"
		 "native::(anonymous namespace)::add(at::TensorIteratorBase&)::{lambda()#1}::"
		 "operator()() const::{lambda(char**, long const*, long, long)#1}>(long, char**)",
		 NULL},
		{"std::_Function_handler<void (" STRING " const&), torch::jit::run::{lambda(auto:1 "
		 "const&)#2}>::_M_invoke(std::_Any_data const&)",
		 "std::_Function_handler<void (std::string const&), "
		 "torch::jit::run::{lambda(auto:1 "
		 "const&)#2}>::_M_invoke(std::_Any_data const&)"},
		{"c10::guts::lambda<c10::impl::wrap<at::Tensor (at::Tensor const&, c10::ArrayRef<"
		 "std::optional<std::vector<long, std::allocator<long> > > >)> >()",
		 "c10::guts::lambda<c10::impl::wrap<at::Tensor (at::Tensor const&, c10::ArrayRef<"
		 "std::optional<std::vector<long>>>)>>()"},
		{"std::enable_if<(((4)>(2))&&((1)<(3))), std::vector<int, std::allocator<int> > >::"
		 "type f<int>(int)",
		 "std::enable_if<(((4)>(2))&&((1)<(3))), std::vector<int>>::type f<int>(int)"},
		{"decltype ((declval<T>())->size()) f<T>(std::vector<T, std::allocator<T> >)",
		 "decltype ((declval<T>())->size()) f<T>(std::vector<T>)"},
		{"vtable for std::vector<int, std::allocator<int> >",
		 "vtable for std::vector<int>"},
		{"f(" STRING ") [clone .cold]", "f(std::string) [clone .cold]"},
		{"f(std::vector<int, std::allocator<int> > (*)(int))",
		 "f(std::vector<int> (*)(int))"},
		{"f(int (&) [3], std::vector<int, std::allocator<int> >&&)",
		 "f(int (&) [3], std::vector<int>&&)"},
	};

	(void)state;
	check(cases, PRB_ARRAY_SIZE(cases));
}

static void shortens_names_of_rust(void **state)
{
	static const struct test_case cases[] = {
		{"<alloc::vec::Vec<core::option::Option<alloc::string::String>> as "
		 "core::ops::drop::Drop>::drop",
		 "<Vec<Option<…>> as Drop>::drop"},
		{"<rustc_demangle::v0::Printer>::print_sep_list::<<rustc_demangle::v0::Printer>::"
		 "print_const::{closure#2}>",
		 "Printer::print_sep_list::<<Printer>::print_const::{closure#2}>"},
		{"addr2line::line::render_file::<gimli::read::slice::Slice<gimli::"
		 "order::LittleEndian>>",
		 "addr2line::line::render_file::<Slice<…>>"},
		{"<[u8]>::copy_within::<core::ops::range::RangeInclusive<usize>>",
		 "<[u8]>::copy_within::<RangeInclusive<…>>"},
		{"<hashbrown::raw::RawTable<(alloc::string::String, u64)>>::reserve_rehash::"
		 "<hashbrown::map::make_hasher<alloc::string::String, u64>::{closure#0}>",
		 "RawTable<(String, u64)>::reserve_rehash::<make_hasher<…>::{closure#0}>"},
		{"core::ptr::drop_in_place<hashbrown::scopeguard::ScopeGuard<&mut "
		 "hashbrown::raw::RawTableInner,hashbrown::raw::RawTableInner::rehash_in_place::"
		 "{{closure}}>>",
		 "core::ptr::drop_in_place<ScopeGuard<…>>"},
		{"<fn(u8) -> core::option::Option<u8> as core::ops::function::FnOnce<(u8,)>>::"
		 "call_once",
		 "<fn(u8) -> Option<u8> as FnOnce<(u8,)>>::call_once"},
		{"<alloc::vec::Vec<T,A> as core::ops::drop::Drop>::drop",
		 "<Vec<T,A> as Drop>::drop"},
		{"<T as core::convert::Into<U>>::into", "<T as Into<U>>::into"},
		{"<&mut F as core::ops::function::FnOnce<A>>::call_once",
		 "<&mut F as FnOnce<A>>::call_once"},
		{"core::ptr::drop_in_place<[alloc::string::String]>",
		 "core::ptr::drop_in_place<[String]>"},
		{"r::drive::h0123456789abcdef", "r::drive"},
		{"r::drive::h0123456789abcdef [clone .llvm.16864605153652375965]", "r::drive"},
		{"r::drive::h0123456789abcde", NULL},
		{"<core[f846ed4b]::fmt::Formatter>::pad", "Formatter::pad"},
		{"core::fmt::write", NULL},
		{"core::Pool<std::vector<int, std::allocator<int> > >::get() const",
		 "core::Pool<std::vector<int>>::get() const"},
		{"core::get(std::vector<int, std::allocator<int> >) [clone .cold]",
		 "core::get(std::vector<int>) [clone .cold]"},
		{"alloc::Pool<std::vector<int, std::allocator<int> > >::get() &",
		 "alloc::Pool<std::vector<int>>::get() &"},
		{"f(std::vector<int, std::allocator<int> >) [clone .llvm.1]",
		 "f(std::vector<int>) [clone .llvm.1]"},
		{"core::ptr::drop_in_place<fn(u8) -> core::option::Option<u8>>",
		 "core::ptr::drop_in_place<fn(u8) -> Option<…>>"},
		{"core::ptr::drop_in_place<dyn core::ops::Fn() + core::marker::Send>",
		 "core::ptr::drop_in_place<dyn Fn() + Send>"},
		{"serde::Serialize::<", NULL},
		{"<a as b>>::c", NULL},
	};

	(void)state;
	check(cases, PRB_ARRAY_SIZE(cases));
}

/* A class in a namespace that is called like a crate of Rust. */
static void shortens_names_of_classes(void **state)
{
	const char *name = "core::Pool<std::vector<int, std::allocator<int> > >";
	prb_auto_free char *brief = NULL;

	(void)state;
	assert_null(prb_cxx_short_name(name, &brief));
	assert_string_equal(brief, "core::Pool<std::vector<int>>");
}

static void leaves_other_text_alone(void **state)
{
	static const struct test_case cases[] = {
		{"", NULL},
		{"main", NULL},
		{"<signal handler called>", NULL},
		{"<module>", NULL},
		{"Trainer.train.<locals>.<lambda>", NULL},
		{"a < b, c > d", NULL},
		{"x->y", NULL},
		{"f<", NULL},
		{"f<a", NULL},
		{"std::vector<int, std::allocator<int>", NULL},
		{"f(int", NULL},
		{"f)", NULL},
		{"f>", NULL},
		{"[abi:", NULL},
		{"operator", NULL},
		{"::", NULL},
		{"libfoo.so+0x1234", NULL},
		{"core::fmt::Write::write_fmt", NULL},
		{"std::panicking::try::do_call::<main::{closure#0}, ()>", NULL},
		{"<dyn Fn(u8) -> bool as T>::f", NULL},
		{"foo.bar!(int).bar(int)", NULL},
	};

	(void)state;
	check(cases, PRB_ARRAY_SIZE(cases));
}

static void shortens_what_is_demangled(void **state)
{
	static const struct test_case cases[] = {
		{"_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE9push_backEc",
		 "std::string::push_back(char)"},
		{"_ZStlsISt11char_traitsIcEERSt13basic_ostreamIcT_ES5_PKc",
		 "std::ostream& std::operator<< <std::char_traits<char>>(std::ostream&, char "
		 "const*)"},
		{"_ZNSt6vectorISsSaISsEE7reserveEm", "std::vector<std::string>::reserve(unsigned "
						     "long)"},
		{"_ZNSt6vectorIS_IiSaIiEESaIS1_EE5clearEv",
		 "std::vector<std::vector<int>>::clear()"},
		{"_ZN3c106detail14torchCheckFailEPKcS2_jRKNSt7__cxx1112basic_stringIcSt11char_"
		 "traitsIcESaIcEEE",
		 "c10::detail::torchCheckFail(char const*, char const*, unsigned int, std::string "
		 "const&)"},
	};

	(void)state;
	for (size_t i = 0; i < PRB_ARRAY_SIZE(cases); i++) {
		prb_auto_free char *name = prb_demangle(cases[i].name), *brief = NULL;

		assert_non_null(name);
		assert_null(prb_short_name(name, &brief));
		assert_string_equal(brief ? brief : name, cases[i].brief);
	}
}

static void bounds_depth_and_length(void **state)
{
	prb_auto_str struct prb_str deep = {}, wide = {};
	prb_auto_free char *brief = NULL;

	(void)state;
	for (int i = 0; i < 10000; i++)
		prb_str_puts(&deep, "a<");
	for (int i = 0; i < 10000; i++)
		prb_str_putc(&deep, '>');
	assert_null(prb_short_name(prb_str_text(&deep), &brief));
	assert_null(brief);
	prb_str_puts(&wide, STRING);
	while (wide.length < 1 << 16)
		prb_str_puts(&wide, "(");
	assert_null(prb_short_name(prb_str_text(&wide), &brief));
	assert_null(brief);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shortens_classes_of_the_standard_library),
		cmocka_unit_test(keeps_arguments_that_were_written),
		cmocka_unit_test(drops_inline_namespaces_and_tags),
		cmocka_unit_test(reads_operators),
		cmocka_unit_test(reads_lambdas_and_expressions),
		cmocka_unit_test(shortens_names_of_rust),
		cmocka_unit_test(shortens_names_of_classes),
		cmocka_unit_test(leaves_other_text_alone),
		cmocka_unit_test(shortens_what_is_demangled),
		cmocka_unit_test(bounds_depth_and_length),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
