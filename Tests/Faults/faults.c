// SPDX-License-Identifier: Apache-2.0
//
// Preloaded into a program under test: counts the calls by which it changes anything outside itself, lets one of them
// fail, and records what was written. `Faults.swift` compiles it, and owns the file that both sides map.
//
// Calls are those of the whole process, whichever thread makes them. Nothing here allocates: malloc is among them.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

// In the order of `Faults.Call`.
enum call {
  CALL_PWRITE, CALL_FDATASYNC, CALL_FSYNC, CALL_FTRUNCATE, CALL_UNLINK, CALL_RENAME, CALL_LINK, CALL_MKDIR, CALL_CREATE,
  CALL_OPEN, CALL_FALLOCATE, CALL_LOCK, CALL_SEND, CALL_ACCEPT, CALL_EPOLL, CALL_MALLOC, CALLS
};

// In the order of `Faults.Action`.
enum action { ACTION_FAIL, ACTION_KILL, ACTION_TEAR, ACTION_LIE, ACTION_HANG };

static struct control {
  _Atomic int64_t wall_offset_ms;
  struct slot {
    _Atomic int64_t count, first, last, action, error;
  } slots[CALLS];
} *control;

static int log_file = -1;
static char directory[256];
static size_t directory_length;
// Descriptors of the directory and of files in it.
static _Atomic char is_watched[1 << 16];

__attribute__((constructor)) static void begin(void) {
  const char *path = getenv("FAULTS_CONTROL");
  if (!path) return;
  int file = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
  if (file < 0) return;
  void *map = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  syscall(SYS_close, file);
  if (map == MAP_FAILED) return;
  const char *watched = getenv("FAULTS_DIRECTORY");
  if (watched && strlen(watched) < sizeof directory) {
    strcpy(directory, watched);
    directory_length = strlen(directory);
  }
  path = getenv("FAULTS_LOG");
  if (path) {
    // High, so that it does not take a number that the program is handed.
    int low = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    log_file = (int)syscall(SYS_fcntl, low, F_DUPFD_CLOEXEC, 900);
    syscall(SYS_close, low);
  }
  control = map;
}

// MARK: Faults

static void die(void) {
  syscall(SYS_kill, syscall(SYS_getpid), SIGKILL);
  for (;;) syscall(SYS_pause);
}

// Counts a call; the action for it, or -1 if it is to be carried out.
static int64_t meet(enum call call) {
  if (!control) return -1;
  struct slot *slot = &control->slots[call];
  int64_t number = atomic_fetch_add(&slot->count, 1) + 1;
  if (number < slot->first || number > slot->last) return -1;
  switch (slot->action) {
  case ACTION_KILL: die(); return -1;
  case ACTION_HANG: for (;;) syscall(SYS_pause);
  default: return slot->action;
  }
}

static int fail(enum call call) {
  errno = (int)control->slots[call].error;
  return -1;
}

// What most calls do: `carry_out` unless they fail or lie.
#define CALL(call, carry_out)                                                                                          \
  int64_t action = meet(call);                                                                                         \
  if (action == ACTION_FAIL) return fail(call);                                                                        \
  if (action == ACTION_LIE) return 0;                                                                                  \
  int result = (int)(carry_out)

// MARK: The log

// In the order of `WriteLog.Entry`.
enum entry { OPEN, CLOSE, WRITE, TRUNCATE, SYNC, UNLINK, RENAME, LINK, SEND };

struct header {
  int32_t entry, file;
  int64_t offset;
  uint32_t length, length2;
};

static void record(enum entry entry, int file, int64_t offset, const struct iovec *parts, int count, size_t split) {
  if (log_file < 0) return;
  struct header header = {entry, file, offset, 0, 0};
  struct iovec all[1 + 1023];
  size_t length = 0;
  if (count > 1023) die();
  all[0] = (struct iovec){&header, sizeof header};
  for (int index = 0; index < count; index++) {
    all[1 + index] = parts[index];
    length += parts[index].iov_len;
  }
  header.length = (uint32_t)(split ? split : length);
  header.length2 = (uint32_t)(split ? length - split : 0);
  if (syscall(SYS_writev, log_file, all, 1 + count) != (long)(sizeof header + length)) die();
}

static void record_paths(enum entry entry, int file, int64_t flags, const char *path, const char *other) {
  struct iovec parts[] = {{(void *)path, strlen(path)}, {(void *)other, other ? strlen(other) : 0}};
  record(entry, file, flags, parts, 2, parts[0].iov_len);
}

static int is_in_directory(const char *path) {
  if (!directory_length || strncmp(path, directory, directory_length) != 0) return 0;
  return path[directory_length] == '/' || path[directory_length] == 0;
}

static int has_log(int file) { return log_file >= 0 && file >= 0 && file < 1 << 16 && is_watched[file]; }

// MARK: Files

static int open_file(const char *path, int flags, mode_t mode) {
  CALL(flags & O_CREAT ? CALL_CREATE : CALL_OPEN, syscall(SYS_openat, AT_FDCWD, path, flags, mode));
  if (log_file >= 0 && result >= 0 && result < 1 << 16 && is_in_directory(path)) {
    is_watched[result] = 1;
    record_paths(OPEN, result, flags & (O_CREAT | O_TRUNC), path, NULL);
  }
  return result;
}

static mode_t mode_of(int flags, va_list arguments) { return flags & O_CREAT ? va_arg(arguments, mode_t) : 0; }

#define DEFINE_OPEN(name)                                                                                              \
  int name(const char *path, int flags, ...) {                                                                         \
    va_list arguments;                                                                                                 \
    va_start(arguments, flags);                                                                                        \
    mode_t mode = mode_of(flags, arguments);                                                                           \
    va_end(arguments);                                                                                                 \
    return open_file(path, flags, mode);                                                                               \
  }
DEFINE_OPEN(open)
DEFINE_OPEN(open64)

int close(int file) {
  if (has_log(file)) {
    is_watched[file] = 0;
    record(CLOSE, file, 0, NULL, 0, 0);
  }
  return (int)syscall(SYS_close, file);
}

static ssize_t write_at(int file, const void *bytes, size_t count, off_t offset) {
  int64_t action = meet(CALL_PWRITE);
  if (action == ACTION_FAIL) return fail(CALL_PWRITE);
  if (action == ACTION_LIE) return (ssize_t)count;
  if (action == ACTION_TEAR) {
    // A sector is there or not.
    off_t end = (offset + (off_t)count / 2) / 512 * 512;
    if (end > offset) syscall(SYS_pwrite64, file, bytes, end - offset, offset);
    die();
  }
  ssize_t written = syscall(SYS_pwrite64, file, bytes, count, offset);
  struct iovec part = {(void *)bytes, written > 0 ? (size_t)written : 0};
  if (written > 0 && has_log(file)) record(WRITE, file, offset, &part, 1, 0);
  return written;
}

ssize_t pwrite(int file, const void *bytes, size_t count, off_t offset) {
  return write_at(file, bytes, count, offset);
}

ssize_t pwrite64(int file, const void *bytes, size_t count, off64_t offset) {
  return write_at(file, bytes, count, offset);
}

int fdatasync(int file) {
  CALL(CALL_FDATASYNC, syscall(SYS_fdatasync, file));
  if (result == 0 && has_log(file)) record(SYNC, file, 0, NULL, 0, 0);
  return result;
}

int fsync(int file) {
  CALL(CALL_FSYNC, syscall(SYS_fsync, file));
  if (result == 0 && has_log(file)) record(SYNC, file, 0, NULL, 0, 0);
  return result;
}

static int truncate_file(int file, off_t length) {
  CALL(CALL_FTRUNCATE, syscall(SYS_ftruncate, file, length));
  if (result == 0 && has_log(file)) record(TRUNCATE, file, length, NULL, 0, 0);
  return result;
}

int ftruncate(int file, off_t length) { return truncate_file(file, length); }
int ftruncate64(int file, off64_t length) { return truncate_file(file, length); }

int posix_fallocate(int file, off_t offset, off_t length) {
  int64_t action = meet(CALL_FALLOCATE);
  if (action == ACTION_FAIL) return (int)control->slots[CALL_FALLOCATE].error;
  return syscall(SYS_fallocate, file, 0, offset, length) == 0 ? 0 : errno;
}

int unlink(const char *path) {
  CALL(CALL_UNLINK, syscall(SYS_unlink, path));
  if (result == 0 && is_in_directory(path)) record_paths(UNLINK, -1, 0, path, NULL);
  return result;
}

int rename(const char *path, const char *target) {
  CALL(CALL_RENAME, syscall(SYS_rename, path, target));
  if (result == 0 && is_in_directory(target)) record_paths(RENAME, -1, 0, path, target);
  return result;
}

int link(const char *path, const char *target) {
  CALL(CALL_LINK, syscall(SYS_link, path, target));
  if (result == 0 && is_in_directory(target)) record_paths(LINK, -1, 0, path, target);
  return result;
}

int mkdir(const char *path, mode_t mode) {
  CALL(CALL_MKDIR, syscall(SYS_mkdir, path, mode));
  return result;
}

int flock(int file, int operation) {
  CALL(CALL_LOCK, syscall(SYS_flock, file, operation));
  return result;
}

static int control_file(int file, int command, long argument) {
  if (command != F_SETLK && command != F_SETLKW) return (int)syscall(SYS_fcntl, file, command, argument);
  CALL(CALL_LOCK, syscall(SYS_fcntl, file, command, argument));
  return result;
}

#define DEFINE_FCNTL(name)                                                                                             \
  int name(int file, int command, ...) {                                                                               \
    va_list arguments;                                                                                                 \
    va_start(arguments, command);                                                                                      \
    long argument = va_arg(arguments, long);                                                                           \
    va_end(arguments);                                                                                                 \
    return control_file(file, command, argument);                                                                      \
  }
DEFINE_FCNTL(fcntl)
DEFINE_FCNTL(fcntl64)

// MARK: Sockets

static int is_socket(int file) {
  struct stat status;
  return syscall(SYS_fstat, file, &status) == 0 && S_ISSOCK(status.st_mode);
}

// Recorded before it is carried out: what was recorded earlier happened before the peer could know it.
static int send_parts(int file, const struct iovec *parts, size_t count) {
  int64_t action = meet(CALL_SEND);
  if (action == ACTION_FAIL) return fail(CALL_SEND);
  record(SEND, file, 0, parts, (int)count, 0);
  return 0;
}

ssize_t write(int file, const void *bytes, size_t count) {
  struct iovec part = {(void *)bytes, count};
  if (control && is_socket(file) && send_parts(file, &part, 1) < 0) return -1;
  return syscall(SYS_write, file, bytes, count);
}

ssize_t writev(int file, const struct iovec *parts, int count) {
  if (control && is_socket(file) && send_parts(file, parts, (size_t)count) < 0) return -1;
  return syscall(SYS_writev, file, parts, count);
}

ssize_t send(int file, const void *bytes, size_t count, int flags) {
  struct iovec part = {(void *)bytes, count};
  if (control && send_parts(file, &part, 1) < 0) return -1;
  return syscall(SYS_sendto, file, bytes, count, flags, NULL, 0);
}

ssize_t sendmsg(int file, const struct msghdr *message, int flags) {
  if (control && send_parts(file, message->msg_iov, message->msg_iovlen) < 0) return -1;
  return syscall(SYS_sendmsg, file, message, flags);
}

int accept4(int file, struct sockaddr *address, socklen_t *length, int flags) {
  CALL(CALL_ACCEPT, syscall(SYS_accept4, file, address, length, flags));
  return result;
}

// Only to watch one more takes anything of the kernel.
int epoll_ctl(int set, int operation, int file, struct epoll_event *event) {
  if (operation != EPOLL_CTL_ADD) return (int)syscall(SYS_epoll_ctl, set, operation, file, event);
  CALL(CALL_EPOLL, syscall(SYS_epoll_ctl, set, operation, file, event));
  return result;
}

// MARK: Time

int clock_gettime(clockid_t clock, struct timespec *time) {
  int result = (int)syscall(SYS_clock_gettime, clock, time);
  if (control && clock == CLOCK_REALTIME && result == 0) {
    int64_t offset = control->wall_offset_ms;
    int64_t nanoseconds = time->tv_nsec + offset % 1000 * 1000000;
    time->tv_sec += offset / 1000 + (nanoseconds < 0 ? -1 : nanoseconds / 1000000000);
    time->tv_nsec = nanoseconds < 0 ? nanoseconds + 1000000000 : nanoseconds % 1000000000;
  }
  return result;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
  struct timespec now;
  (void)zone;
  if (clock_gettime(CLOCK_REALTIME, &now) != 0) return -1;
  time->tv_sec = now.tv_sec;
  time->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *seconds) {
  struct timespec now;
  if (clock_gettime(CLOCK_REALTIME, &now) != 0) return -1;
  if (seconds) *seconds = now.tv_sec;
  return now.tv_sec;
}

// MARK: Memory

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

static int has_memory(void) {
  if (meet(CALL_MALLOC) < 0) return 1;
  errno = ENOMEM;
  return 0;
}

void *malloc(size_t size) { return has_memory() ? __libc_malloc(size) : NULL; }
void *calloc(size_t count, size_t size) { return has_memory() ? __libc_calloc(count, size) : NULL; }
void *realloc(void *old, size_t size) { return has_memory() ? __libc_realloc(old, size) : NULL; }
void *aligned_alloc(size_t alignment, size_t size) {
  return has_memory() ? __libc_memalign(alignment, size) : NULL;
}

int posix_memalign(void **result, size_t alignment, size_t size) {
  if (!has_memory()) return ENOMEM;
  *result = __libc_memalign(alignment, size);
  return *result ? 0 : ENOMEM;
}
