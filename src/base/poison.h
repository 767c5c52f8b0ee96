/* poison.h -- tells AddressSanitizer which memory of ours is free.
 *
 * Slabs and arenas take big blocks from the environment, so the sanitizer would see no difference
 * between an object in use and one given back. Outside of sanitizer builds these are nothing. */
#ifndef BASE_POISON_H
#define BASE_POISON_H

#if defined(__SANITIZE_ADDRESS__)
#define POISON_ENABLED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define POISON_ENABLED 1
#endif
#endif

#ifdef POISON_ENABLED
#include <sanitizer/asan_interface.h>
#define POISON(address, size)   ASAN_POISON_MEMORY_REGION((address), (size))
#define UNPOISON(address, size) ASAN_UNPOISON_MEMORY_REGION((address), (size))
#else
#define POISON(address, size)   ((void)(address), (void)(size))
#define UNPOISON(address, size) ((void)(address), (void)(size))
#endif

#endif
