// SPDX-License-Identifier: Apache-2.0
//
// Preloaded, it takes from a program what kernels before 6.5 do not have: the descriptor of a peer's process.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <sys/socket.h>

int getsockopt(int descriptor, int level, int name, void *value, socklen_t *length) {
  const int peer_process = 77;  // SO_PEERPIDFD
  if (level == SOL_SOCKET && name == peer_process) {
    errno = ENOPROTOOPT;
    return -1;
  }
  int (*next)(int, int, int, void *, socklen_t *) = dlsym(RTLD_NEXT, "getsockopt");
  return next(descriptor, level, name, value, length);
}
