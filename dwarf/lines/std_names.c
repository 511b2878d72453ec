/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Default template arguments, aliases and inline namespaces of the C++ standard library. */
#include <ctype.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "dwarf/lines/short_name.h"

enum { MOST_DEFAULTS = 3 };

/** Namespaces that compilers print and programmers omit; a '#' stands for digits and '_'. */
static const struct {
	const char *scope, *name;
} inline_namespaces[] = {
	{"std::", "__cxx11"}, {"std::", "_V#"}, {"std::", "__#"},    {"std::", "__ndk#"},
	{"std::", "__Cr"},    {"fmt::", "v#"},	{"absl::", "lts_#"}, {"nlohmann::", "json_abi_v#"},
};

/** In defaults, $0 and $1 are the first two arguments. */
static const struct {
	const char *name;
	size_t required; /**< arguments without a default */
	const char *defaults[MOST_DEFAULTS];
} classes[] = {
	{"std::vector", 1, {"std::allocator<$0>"}},
	{"std::deque", 1, {"std::allocator<$0>"}},
	{"std::list", 1, {"std::allocator<$0>"}},
	{"std::forward_list", 1, {"std::allocator<$0>"}},
	{"std::set", 1, {"std::less<$0>", "std::allocator<$0>"}},
	{"std::multiset", 1, {"std::less<$0>", "std::allocator<$0>"}},
	{"std::map", 2, {"std::less<$0>", "std::allocator<std::pair<$0 const, $1>>"}},
	{"std::multimap", 2, {"std::less<$0>", "std::allocator<std::pair<$0 const, $1>>"}},
	{"std::unordered_set", 1, {"std::hash<$0>", "std::equal_to<$0>", "std::allocator<$0>"}},
	{"std::unordered_multiset",
	 1,
	 {"std::hash<$0>", "std::equal_to<$0>", "std::allocator<$0>"}},
	{"std::unordered_map",
	 2,
	 {"std::hash<$0>", "std::equal_to<$0>", "std::allocator<std::pair<$0 const, $1>>"}},
	{"std::unordered_multimap",
	 2,
	 {"std::hash<$0>", "std::equal_to<$0>", "std::allocator<std::pair<$0 const, $1>>"}},
	{"std::unique_ptr", 1, {"std::default_delete<$0>"}},
	{"std::stack", 1, {"std::deque<$0>"}},
	{"std::queue", 1, {"std::deque<$0>"}},
	{"std::priority_queue", 1, {"std::vector<$0>", "std::less<$0>"}},
	{"std::match_results", 1, {"std::allocator<std::sub_match<$0>>"}},
	{"std::basic_regex", 1, {"std::regex_traits<$0>"}},
	{"std::basic_string", 1, {"std::char_traits<$0>", "std::allocator<$0>"}},
	{"std::basic_stringbuf", 1, {"std::char_traits<$0>", "std::allocator<$0>"}},
	{"std::basic_stringstream", 1, {"std::char_traits<$0>", "std::allocator<$0>"}},
	{"std::basic_istringstream", 1, {"std::char_traits<$0>", "std::allocator<$0>"}},
	{"std::basic_ostringstream", 1, {"std::char_traits<$0>", "std::allocator<$0>"}},
	{"std::basic_string_view", 1, {"std::char_traits<$0>"}},
	{"std::basic_ios", 1, {"std::char_traits<$0>"}},
	{"std::basic_istream", 1, {"std::char_traits<$0>"}},
	{"std::basic_ostream", 1, {"std::char_traits<$0>"}},
	{"std::basic_iostream", 1, {"std::char_traits<$0>"}},
	{"std::basic_streambuf", 1, {"std::char_traits<$0>"}},
	{"std::basic_filebuf", 1, {"std::char_traits<$0>"}},
	{"std::basic_fstream", 1, {"std::char_traits<$0>"}},
	{"std::basic_ifstream", 1, {"std::char_traits<$0>"}},
	{"std::basic_ofstream", 1, {"std::char_traits<$0>"}},
	{"std::istreambuf_iterator", 1, {"std::char_traits<$0>"}},
	{"std::ostreambuf_iterator", 1, {"std::char_traits<$0>"}},
};

/** Aliases that the standard gives to instances for one type of character. */
static const struct {
	const char *name, *argument, *alias;
} aliases[] = {
	{"std::basic_string", "char", "std::string"},
	{"std::basic_string", "wchar_t", "std::wstring"},
	{"std::basic_string", "char8_t", "std::u8string"},
	{"std::basic_string", "char16_t", "std::u16string"},
	{"std::basic_string", "char32_t", "std::u32string"},
	{"std::basic_string_view", "char", "std::string_view"},
	{"std::basic_string_view", "wchar_t", "std::wstring_view"},
	{"std::basic_string_view", "char8_t", "std::u8string_view"},
	{"std::basic_string_view", "char16_t", "std::u16string_view"},
	{"std::basic_string_view", "char32_t", "std::u32string_view"},
	{"std::basic_regex", "char", "std::regex"},
	{"std::basic_regex", "wchar_t", "std::wregex"},
	{"std::basic_ios", "char", "std::ios"},
	{"std::basic_istream", "char", "std::istream"},
	{"std::basic_ostream", "char", "std::ostream"},
	{"std::basic_iostream", "char", "std::iostream"},
	{"std::basic_streambuf", "char", "std::streambuf"},
	{"std::basic_filebuf", "char", "std::filebuf"},
	{"std::basic_stringbuf", "char", "std::stringbuf"},
	{"std::basic_fstream", "char", "std::fstream"},
	{"std::basic_ifstream", "char", "std::ifstream"},
	{"std::basic_ofstream", "char", "std::ofstream"},
	{"std::basic_stringstream", "char", "std::stringstream"},
	{"std::basic_istringstream", "char", "std::istringstream"},
	{"std::basic_ostringstream", "char", "std::ostringstream"},
};

static bool matches(const char *pattern, const char *name, size_t length)
{
	size_t prefix = strcspn(pattern, "#");

	if (pattern[prefix] != '#')
		return prefix == length && !memcmp(pattern, name, length);
	if (length <= prefix || memcmp(pattern, name, prefix) != 0 ||
	    !isdigit((unsigned char)name[prefix]))
		return false;
	for (size_t i = prefix; i < length; i++)
		if (!isdigit((unsigned char)name[i]) && name[i] != '_')
			return false;
	return true;
}

bool prb_std_is_inline_namespace(const char *scope, const char *name, size_t length)
{
	for (size_t i = 0; i < PRB_ARRAY_SIZE(inline_namespaces); i++)
		if (!strncmp(scope, inline_namespaces[i].scope,
			     strlen(inline_namespaces[i].scope)) &&
		    matches(inline_namespaces[i].name, name, length))
			return true;
	return false;
}

/** True if @p argument is what the @p pattern of a default gives for these @p arguments. */
static bool is_default(const char *pattern, const struct prb_str *arguments, const char *argument)
{
	for (; *pattern; pattern++) {
		const char *text = pattern;
		size_t length = 1;

		if (*pattern == '$') {
			const struct prb_str *first = &arguments[*++pattern - '0'];

			text = prb_str_text(first);
			length = first->length;
		}
		if (strncmp(argument, text, length) != 0)
			return false;
		argument += length;
	}
	return !*argument;
}

size_t prb_std_needed_arguments(const char *name, const struct prb_str *arguments, size_t count)
{
	for (size_t i = 0; i < PRB_ARRAY_SIZE(classes); i++) {
		if (strcmp(name, classes[i].name) != 0)
			continue;
		size_t required = classes[i].required;

		if (count > required + MOST_DEFAULTS)
			return count;
		while (count > required) {
			const char *pattern = classes[i].defaults[count - required - 1];

			if (!pattern ||
			    !is_default(pattern, arguments, prb_str_text(&arguments[count - 1])))
				return count;
			count--;
		}
		return count;
	}
	return count;
}

const char *prb_std_alias(const char *name, const char *argument)
{
	for (size_t i = 0; i < PRB_ARRAY_SIZE(aliases); i++)
		if (!strcmp(name, aliases[i].name) && !strcmp(argument, aliases[i].argument))
			return aliases[i].alias;
	return NULL;
}
