/*
 * stream.c: copies of much memory. Stores past the caches spare the read of
 * what is overwritten, and leave in the caches what is still of use.
 */
#include <string.h>

#include "runtime/private.h"

#if defined __x86_64__ && !defined __SANITIZE_THREAD__
#include <emmintrin.h>

enum { LINE = CACHE_LINE };

static void stream_lines(unsigned char *to, const unsigned char *from,
			 int64_t lines)
{
	for (int64_t i = 0; i < lines; i++, to += LINE, from += LINE) {
		__m128i a = _mm_loadu_si128((const __m128i *)from);
		__m128i b = _mm_loadu_si128((const __m128i *)(from + 16));
		__m128i c = _mm_loadu_si128((const __m128i *)(from + 32));
		__m128i d = _mm_loadu_si128((const __m128i *)(from + 48));

		_mm_stream_si128((__m128i *)to, a);
		_mm_stream_si128((__m128i *)(to + 16), b);
		_mm_stream_si128((__m128i *)(to + 32), c);
		_mm_stream_si128((__m128i *)(to + 48), d);
	}
}

void stream_copy(void *to, const void *from, int64_t bytes)
{
	unsigned char *t = to;
	const unsigned char *f = from;
	int64_t head = (int64_t)(-(uintptr_t)t & (LINE - 1)), lines;

	head = head < bytes ? head : bytes;
	memcpy(t, f, (size_t)head);
	lines = (bytes - head) / LINE;
	stream_lines(t + head, f + head, lines);
	head += lines * LINE;
	memcpy(t + head, f + head, (size_t)(bytes - head));
}

void stream_end(void)
{
	_mm_sfence();
}

#else

void stream_copy(void *to, const void *from, int64_t bytes)
{
	memcpy(to, from, (size_t)bytes);
}

void stream_end(void)
{
}

#endif
