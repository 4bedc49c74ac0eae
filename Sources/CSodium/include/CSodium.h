// SPDX-License-Identifier: Apache-2.0

#ifndef RESTORATIOND_CSODIUM_H
#define RESTORATIOND_CSODIUM_H

#include <stddef.h>

enum {
  csodium_key_bytes = 32,
  csodium_nonce_bytes = 24,
  csodium_tag_bytes = 16,
  csodium_hash_bytes = 64,
};

// Opens libsodium; the reason if that is impossible, else NULL. The functions below open it too. They return 0, or -1
// if that is impossible.
const char *csodium_open(void);

// XChaCha20-Poly1305 (IETF). The sealed bytes are longer than the text by the tag, which is at their end. Only who has
// the key, and names the same place, can open them.
int csodium_seal(unsigned char *sealed, const unsigned char *text, size_t text_count, const unsigned char *place,
                 size_t place_count, const unsigned char *nonce, const unsigned char *key);
// Fails as well if these are not the sealed bytes. There have to be as many as a tag has, or more.
int csodium_unseal(unsigned char *text, const unsigned char *sealed, size_t sealed_count, const unsigned char *place,
                   size_t place_count, const unsigned char *nonce, const unsigned char *key);

// BLAKE2b with 64 bytes.
int csodium_hash(unsigned char *hash, const unsigned char *bytes, size_t count);
int csodium_random(void *bytes, size_t count);
// Is not optimised away.
int csodium_wipe(void *bytes, size_t count);

#endif
