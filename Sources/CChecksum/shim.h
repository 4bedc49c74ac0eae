// SPDX-License-Identifier: Apache-2.0
//
// CRC-32 by multiplication without carries, which Swift has no name for. Where the processor cannot, there are tables.

#ifndef CCHECKSUM_SHIM_H
#define CCHECKSUM_SHIM_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __x86_64__

typedef long long cchecksum_words __attribute__((vector_size(16), aligned(1), may_alias));

// What `words` becomes when as many zero bytes follow as `factors` are made for, and `next` is added.
__attribute__((target("pclmul"), always_inline)) static inline cchecksum_words cchecksum_fold(
    cchecksum_words words, cchecksum_words factors, cchecksum_words next) {
  return __builtin_ia32_pclmulqdq128(words, factors, 0x00) ^ __builtin_ia32_pclmulqdq128(words, factors, 0x11) ^ next;
}

static inline bool cchecksum_can_fold(void) {
  return __builtin_cpu_supports("pclmul");
}

// Folds the register and `count` bytes, a multiple of 16 and 64 at least, into 16 bytes with the same remainder: the
// register after them, from 0, is the one after all. "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ
// Instruction", Intel 2009, with its constants for this polynomial.
__attribute__((target("pclmul"))) static inline void cchecksum_fold_blocks(
    uint32_t crc, const void *bytes, long count, void *folded) {
  const cchecksum_words by_64 = {0x154442bd4, 0x1c6e41596}, by_16 = {0x1751997d0, 0xccaa009e};
  const cchecksum_words *next = bytes, *end = next + count / 16;
  cchecksum_words a = next[0] ^ (cchecksum_words){crc, 0}, b = next[1], c = next[2], d = next[3];
  for (next += 4; end - next >= 4; next += 4) {
    a = cchecksum_fold(a, by_64, next[0]);
    b = cchecksum_fold(b, by_64, next[1]);
    c = cchecksum_fold(c, by_64, next[2]);
    d = cchecksum_fold(d, by_64, next[3]);
  }
  b = cchecksum_fold(a, by_16, b);
  c = cchecksum_fold(b, by_16, c);
  d = cchecksum_fold(c, by_16, d);
  for (; next < end; next++) d = cchecksum_fold(d, by_16, *next);
  *(cchecksum_words *)folded = d;
}

#else

static inline bool cchecksum_can_fold(void) { return false; }
static inline void cchecksum_fold_blocks(uint32_t crc, const void *bytes, long count, void *folded) {}

#endif
#endif
