// SPDX-License-Identifier: GPL-3.0-or-later
// Objects of classes with virtual functions, which nobody frees.
namespace cache {
namespace {

struct Base {
	virtual ~Base() = default;
	virtual int cost() const = 0;
};

template <typename Kind> struct Connection : Base {
	Kind room[61] = {};

	int cost() const override
	{
		return static_cast<int>(room[0]);
	}
};

} // namespace
} // namespace cache

static cache::Base *volatile last;

extern "C" void leak(int count)
{
	while (count-- > 0)
		last = new cache::Connection<long>;
}

// Of the same size.
extern "C" void leak_other(int count)
{
	while (count-- > 0)
		last = new cache::Connection<unsigned long>;
}
