// Handlers with wide loops are compiled a second time for AVX2 and chosen when the library is loaded. Only where the
// loader can do that (glibc on x86-64); everywhere else there is one portable version.
#pragma once

#include <cstdlib>  // defines __GLIBC__

#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12
#define PTO_CLONES __attribute__((target_clones("default", "arch=x86-64-v3")))
#else
#define PTO_CLONES
#endif
