// SPDX-License-Identifier: Apache-2.0
//
// Only what Swift's Glibc module does not have: it is built without _GNU_SOURCE, leaves out epoll and eventfd, and
// cannot import variadic functions.

#ifndef CLINUX_SHIM_H
#define CLINUX_SHIM_H

// The Glibc module lists none of these headers.
#include <getopt.h>
#include <malloc.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/vfs.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/types.h>

// glibc declares pidfd_open from 2.36 on only, and syscall(2), variadic, is not importable.
extern long syscall(long number, ...);

static inline int clinux_pidfd_open(pid_t pid) {
  return (int)syscall(SYS_pidfd_open, pid, 0);
}

// Hidden behind _GNU_SOURCE.
static inline int clinux_memfd_create(const char *name) {
  const unsigned int close_on_exec = 1;
  return (int)syscall(SYS_memfd_create, name, close_on_exec);
}

// The calling thread, and what it starts from now on, run on this processor only; -1 for any. Its mask has 1,024 bits.
static inline int clinux_pin_thread(int processor) {
  unsigned long mask[16];
  const int bits = 8 * sizeof mask[0];
  for (int word = 0; word < 16; word++) mask[word] = processor < 0 ? ~0ul : 0;
  if (processor >= 16 * bits) return -1;
  if (processor >= 0) mask[processor / bits] = 1ul << (processor % bits);
  return (int)syscall(SYS_sched_setaffinity, 0, sizeof mask, mask);
}

// Linux 6.15; the headers of older kernels lack it, and ioctl(2), variadic, is not importable.
struct clinux_pidfd_info {
  uint64_t mask;
  uint64_t cgroup;
  uint32_t ids[11];
  int32_t exit_code;
};

// The wait status of a process that has ended and been waited for; ENODATA where the kernel does not tell it (yet).
static inline int clinux_pidfd_exit_status(int pidfd, int32_t *status) {
  const uint64_t exit_mask = 1 << 3;
  struct clinux_pidfd_info info = {.mask = exit_mask};
  if (ioctl(pidfd, _IOWR(0xFF, 11, struct clinux_pidfd_info), &info) != 0) return -1;
  if (!(info.mask & exit_mask)) {
    errno = ENODATA;
    return -1;
  }
  *status = info.exit_code;
  return 0;
}

// Makes the epoll sets that watch a descriptor close on exec. NIO's do not, and it does not say which they are; the
// kernel does, where /proc is there.
static inline void clinux_close_epolls_on_exec(int watched) {
  DIR *infos = opendir("/proc/self/fdinfo");
  if (!infos) return;
  struct dirent *entry;
  while ((entry = readdir(infos))) {
    char path[64], line[256];
    snprintf(path, sizeof path, "/proc/self/fdinfo/%.16s", entry->d_name);
    FILE *info = fopen(path, "re");
    if (!info) continue;
    int target;
    while (fgets(line, sizeof line, info)) {
      if (sscanf(line, "tfd: %d", &target) == 1 && target == watched) fcntl(atoi(entry->d_name), F_SETFD, FD_CLOEXEC);
    }
    fclose(info);
  }
  closedir(infos);
}

// Stores a word of memory that another process will read if this one is killed: after all stores before it in program
// order, and before all stores after it.
static inline void clinux_store(void *word, uint64_t value) {
  atomic_store((_Atomic uint64_t *)word, value);
}

// glibc's struct ucred is hidden behind _GNU_SOURCE; this is the kernel's layout of it.
struct clinux_ucred {
  pid_t pid;
  uid_t uid;
  gid_t gid;
};

// Newer than the oldest kernel headers we build with (Linux 6.5 and 6.16); an older kernel answers ENOPROTOOPT.
static const int clinux_so_peerpidfd = 77;
static const int clinux_so_passrights = 83;

// Hidden behind _GNU_SOURCE. The value is that of every architecture Swift runs on.
static const int clinux_o_path = 010000000;

#endif
