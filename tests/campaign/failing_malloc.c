/* Preloaded: the n-th allocation that the code of a file asks for fails. What is not ours is let alone. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *old, size_t size);

static atomic_long asked;
static long failing;                        /* 0: none */
static const char *place;                   /* part of the name of the file whose allocations count; NULL: off */

void fail_malloc(const char *where, long nth) {
    atomic_store(&asked, 0);
    failing = nth;
    place = where;
}

long asked_malloc(void) { return atomic_load(&asked); }

static int fails(void *caller) {
    Dl_info info;
    return place && dladdr(caller, &info) && info.dli_fname && strstr(info.dli_fname, place)
           && atomic_fetch_add(&asked, 1) + 1 == failing;
}

void *malloc(size_t size) {
    return fails(__builtin_return_address(0)) ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size) {
    return fails(__builtin_return_address(0)) ? NULL : __libc_calloc(n, size);
}

void *realloc(void *old, size_t size) {
    return fails(__builtin_return_address(0)) ? NULL : __libc_realloc(old, size);
}
