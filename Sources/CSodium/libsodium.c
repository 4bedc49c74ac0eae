// SPDX-License-Identifier: Apache-2.0
//
// What is used here of libsodium, which is opened when it is first needed: a process that seals nothing never loads it,
// and its headers are not needed to build. The prototypes are those of every libsodium.so.23 since 1.0.12.

#include "CSodium.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

typedef unsigned char byte;
typedef unsigned long long length;

static int (*crypto_aead_xchacha20poly1305_ietf_encrypt)(byte *sealed, length *sealed_count, const byte *text,
                                                         length text_count, const byte *place, length place_count,
                                                         const byte *unused, const byte *nonce, const byte *key);
static int (*crypto_aead_xchacha20poly1305_ietf_decrypt)(byte *text, length *text_count, byte *unused,
                                                         const byte *sealed, length sealed_count, const byte *place,
                                                         length place_count, const byte *nonce, const byte *key);
static int (*crypto_generichash)(byte *hash, size_t hash_count, const byte *bytes, length count, const byte *key,
                                 size_t key_count);
static void (*randombytes_buf)(void *bytes, size_t count);
static void (*sodium_memzero)(void *bytes, size_t count);

static const char *fault;
static char text_of_fault[256];

static void open_library(void) {
  int (*sodium_init)(void);
  void *library = dlopen("libsodium.so.23", RTLD_NOW);
#define FOUND(name) (*(void **)&name = dlsym(library, #name))
  if (library && FOUND(sodium_init) && FOUND(crypto_aead_xchacha20poly1305_ietf_encrypt) &&
      FOUND(crypto_aead_xchacha20poly1305_ietf_decrypt) && FOUND(crypto_generichash) && FOUND(randombytes_buf) &&
      FOUND(sodium_memzero)) {
    fault = sodium_init() < 0 ? "sodium_init of libsodium.so.23 fails" : NULL;
    return;
  }
  const char *reason = dlerror();
  snprintf(text_of_fault, sizeof text_of_fault, "%s", reason ? reason : "libsodium.so.23 lacks a function");
  fault = text_of_fault;
}

const char *csodium_open(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, open_library);
  return fault;
}

int csodium_seal(byte *sealed, const byte *text, size_t text_count, const byte *place, size_t place_count,
                 const byte *nonce, const byte *key) {
  if (csodium_open()) return -1;
  return crypto_aead_xchacha20poly1305_ietf_encrypt(sealed, NULL, text, text_count, place, place_count, NULL, nonce,
                                                    key);
}

int csodium_unseal(byte *text, const byte *sealed, size_t sealed_count, const byte *place, size_t place_count,
                   const byte *nonce, const byte *key) {
  if (csodium_open()) return -1;
  return crypto_aead_xchacha20poly1305_ietf_decrypt(text, NULL, NULL, sealed, sealed_count, place, place_count, nonce,
                                                    key);
}

int csodium_hash(byte *hash, const byte *bytes, size_t count) {
  if (csodium_open()) return -1;
  return crypto_generichash(hash, csodium_hash_bytes, bytes, count, NULL, 0);
}

int csodium_random(void *bytes, size_t count) {
  if (csodium_open()) return -1;
  randombytes_buf(bytes, count);
  return 0;
}

int csodium_wipe(void *bytes, size_t count) {
  if (csodium_open()) return -1;
  sodium_memzero(bytes, count);
  return 0;
}
