// UNTWIST_VECTORISED marks a function that is compiled for several vector widths. The loader chooses one of them.
// Nothing is fused (-ffp-contract=off), so all versions compute the same bits.
//
// UNTWIST_INLINED marks a function that such functions call for every number. Left to itself a compiler that has much
// else to do calls it one number at a time, which takes ten times as long.
#pragma once

#define UNTWIST_INLINED __attribute__((always_inline)) inline

namespace untwist {

// Sanitizers and profilers cannot take several versions of a function: their builds define the macro as empty.
#if !defined(UNTWIST_VECTORISED) && defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define UNTWIST_VECTORISED __attribute__((target_clones("avx512f", "avx2", "default")))

// Returns the instruction set of the functions that are marked. These are versions of one function too, so that the
// loader itself chooses the answer, by the rule that it has for all others.
__attribute__((target("default"))) inline const char* name_instruction_set() { return "baseline"; }
__attribute__((target("avx2"))) inline const char* name_instruction_set() { return "AVX2"; }
__attribute__((target("avx512f"))) inline const char* name_instruction_set() { return "AVX-512"; }
#else
#if !defined(UNTWIST_VECTORISED)
#define UNTWIST_VECTORISED
#endif

// Returns the instruction set that everything is compiled for: that of every processor of its kind.
inline const char* name_instruction_set() {
#if defined(__aarch64__) || defined(_M_ARM64)
  return "NEON";
#else
  return "baseline";
#endif
}
#endif

}  // namespace untwist
