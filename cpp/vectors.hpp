// A function marked UNTWIST_VECTORISED is compiled for several vector widths, one of which is chosen at load time.
// Nothing is fused (-ffp-contract=off), so all of them compute the same.
#pragma once

#if defined(UNTWIST_VECTORISED)  // set by hand: sanitizers and profilers do not take several versions
#elif defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define UNTWIST_VECTORISED __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define UNTWIST_VECTORISED
#endif
