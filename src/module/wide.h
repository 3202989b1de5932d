/* Arithmetic for processors with wide registers: a function that is marked WIDE is compiled a second time for them, and
 * which of both is called is decided when the library is loaded. Both give the same, to the last bit. */
#ifndef STEWARD_MODULE_WIDE_H
#define STEWARD_MODULE_WIDE_H

#if defined __x86_64__ && defined __GLIBC__ && !defined __clang__ && !defined __SANITIZE_ADDRESS__ && \
        !defined __SANITIZE_THREAD__
#define WIDE __attribute__((target_clones("avx2", "default")))
#else
#define WIDE
#endif

#endif
