// UNTWIST_VECTORISED marks a function that is compiled for several vector widths. The loader chooses one of them.
// Nothing is fused (-ffp-contract=off), so all versions compute the same bits.
#pragma once

// Sanitizers and profilers cannot take several versions of a function: their builds define the macro as empty.
#if !defined(UNTWIST_VECTORISED)
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define UNTWIST_VECTORISED __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define UNTWIST_VECTORISED
#endif
#endif
