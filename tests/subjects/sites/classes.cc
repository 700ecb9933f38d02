// SPDX-License-Identifier: MIT
// classes: calls from C++, through inlined functions and under exceptions.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <sys/mman.h>
#include <vector>

static const size_t size = 1 << 20;

namespace shop
{

// Inlined, so it is in no symbol table.
static inline __attribute__((always_inline)) void *take()
{
	return mmap(nullptr, size, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

class Counter
{
      public:
	__attribute__((noinline)) void serve()
	{
		at = take();
		if (at == MAP_FAILED)
			abort();
	}

	// munmap while an exception is on its way.
	__attribute__((noinline)) ~Counter()
	{
		munmap(at, size);
		asm volatile("" ::: "memory");
	}

      private:
	void *at = nullptr;
};

__attribute__((noinline)) void open_and_throw()
{
	Counter counter;

	counter.serve();
	throw std::runtime_error("closed");
}

// operator new, by way of a template of the standard library.
__attribute__((noinline)) void stock(std::vector<char> &shelf)
{
	shelf.resize(size);
	asm volatile("" ::: "memory");
}

} // namespace shop

int main(int argc, char **argv)
{
	int count = argc > 1 ? atoi(argv[1]) : 1, caught = 0;

	for (int i = 0; i < count; i++) {
		std::vector<char> shelf;

		shop::stock(shelf);
		try {
			shop::open_and_throw();
		} catch (const std::exception &) {
			caught++;
		}
	}
	printf("caught %d\n", caught);
	return 0;
}
