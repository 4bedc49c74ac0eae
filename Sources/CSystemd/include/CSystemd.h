// SPDX-License-Identifier: Apache-2.0

#ifndef RESTORATIOND_CSYSTEMD_H
#define RESTORATIOND_CSYSTEMD_H

// The Glibc module of Swift lists none of the first four.
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include <systemd/sd-bus.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-journal.h>
#include <systemd/sd-login.h>

// Opens libsystemd, which any of its functions does as well when it is called; the reason if that is impossible, else NULL.
const char *csystemd_open(void);

// The CMSG macros, of which Swift imports none. Sends a datagram with at most one descriptor (-1: none) to a socket with
// a name in the file system or, after an '@', an abstract one; 0 or a negative error. sd_notify does the same, but finds
// the socket in the environment, where our children would find it as well.
static inline int csystemd_send(int from, const char *to, const char *text, size_t length, int descriptor) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  size_t name = strlen(to);
  if (name == 0 || name >= sizeof(address.sun_path))
    return -EINVAL;
  memcpy(address.sun_path, to, name);
  if (address.sun_path[0] == '@')
    address.sun_path[0] = 0;
  union {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int))];
  } control = {0};
  struct iovec part = {.iov_base = (void *)text, .iov_len = length};
  struct msghdr message = {
      .msg_name = &address,
      .msg_namelen = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + name),
      .msg_iov = &part,
      .msg_iovlen = 1,
  };
  if (descriptor >= 0) {
    message.msg_control = &control;
    message.msg_controllen = sizeof(control);
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &descriptor, sizeof(int));
  }
  return sendmsg(from, &message, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

#endif
