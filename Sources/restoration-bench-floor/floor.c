// SPDX-License-Identifier: Apache-2.0
//
// The floor that `restoration-bench compare` holds servers against: what the socket and the disk alone cost. One thread
// answers each line with a fixed result; with LOG it writes down the lines of one look at its clients, syncs them once,
// and answers only then. The log has its size from the beginning and is written round and round, so that a sync has
// nothing to record but the lines. It reads nothing of a line but the id, which stands where the benchmark puts it.
//
//   restoration-bench-floor SOCKET RESULT_BYTES [LOG]

#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { READY_MAX = 256, READ_BYTES = 65536, LOG_BYTES = 16 << 20 };

struct buffer {
  char *bytes;
  size_t count, capacity;
};

struct client {
  int socket;
  int is_writing;
  struct buffer input, output;
};

static const char head[] = "{\"jsonrpc\":\"2.0\",\"id\":";
static struct buffer tail, lines;
static int sockets, events, file = -1;
static off_t log_end;

static void end_with(const char *what) {
  perror(what);
  exit(1);
}

static void reserve(struct buffer *buffer, size_t more) {
  if (buffer->capacity - buffer->count >= more) return;
  buffer->capacity = 2 * (buffer->count + more);
  buffer->bytes = realloc(buffer->bytes, buffer->capacity);
  if (!buffer->bytes) end_with("realloc");
}

static void append(struct buffer *buffer, const char *bytes, size_t count) {
  reserve(buffer, count);
  memcpy(buffer->bytes + buffer->count, bytes, count);
  buffer->count += count;
}

static void drop(struct buffer *buffer, size_t count) {
  buffer->count -= count;
  memmove(buffer->bytes, buffer->bytes + count, buffer->count);
}

static void watch(struct client *client, int operation, unsigned wanted) {
  struct epoll_event event = {.events = wanted, .data.ptr = client};
  if (epoll_ctl(events, operation, client->socket, &event) < 0) end_with("epoll_ctl");
}

static void take_clients(void) {
  int socket;
  while ((socket = accept4(sockets, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
    struct client *client = calloc(1, sizeof *client);
    if (!client) end_with("calloc");
    client->socket = socket;
    watch(client, EPOLL_CTL_ADD, EPOLLIN);
  }
}

static void answer(struct client *client, const char *line, size_t count) {
  if (file >= 0) append(&lines, line, count);
  const size_t id = sizeof head - 1;
  size_t end = id;
  while (end < count && line[end] >= '0' && line[end] <= '9') end++;
  if (end == id) return;
  append(&client->output, line, end);
  append(&client->output, tail.bytes, tail.count);
}

// 0 if the client has left, and is gone.
static int take_lines(struct client *client) {
  reserve(&client->input, READ_BYTES);
  struct buffer *input = &client->input;
  ssize_t got = recv(client->socket, input->bytes + input->count, input->capacity - input->count, 0);
  if (got <= 0) {
    close(client->socket);
    free(input->bytes);
    free(client->output.bytes);
    free(client);
    return 0;
  }
  char *line = input->bytes, *unseen = line + input->count, *newline;
  input->count += (size_t)got;
  while ((newline = memchr(unseen, '\n', (size_t)(input->bytes + input->count - unseen)))) {
    unseen = newline + 1;
    answer(client, line, (size_t)(unseen - line));
    line = unseen;
  }
  drop(input, (size_t)(line - input->bytes));
  return 1;
}

static void open_log(const char *path) {
  file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  char *zeros = calloc(1, LOG_BYTES);
  if (file < 0 || !zeros || write(file, zeros, LOG_BYTES) != LOG_BYTES || fsync(file) < 0) end_with(path);
  free(zeros);
}

static void flush_log(void) {
  if (!lines.count) return;
  if (log_end + (off_t)lines.count > LOG_BYTES) log_end = 0;
  if (pwrite(file, lines.bytes, lines.count, log_end) != (ssize_t)lines.count || fdatasync(file) < 0) end_with("log");
  log_end += (off_t)lines.count;
  lines.count = 0;
}

static void flush_answers(struct client *client) {
  ssize_t sent = send(client->socket, client->output.bytes, client->output.count, MSG_NOSIGNAL);
  if (sent > 0) drop(&client->output, (size_t)sent);
  int is_writing = client->output.count > 0;
  if (is_writing != client->is_writing) watch(client, EPOLL_CTL_MOD, is_writing ? EPOLLIN | EPOLLOUT : EPOLLIN);
  client->is_writing = is_writing;
}

int main(int count, char **arguments) {
  if (count < 3) {
    fputs("restoration-bench-floor SOCKET RESULT_BYTES [LOG]\n", stderr);
    return 64;
  }
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  snprintf(address.sun_path, sizeof address.sun_path, "%s", arguments[1]);
  if (count > 3) open_log(arguments[3]);
  append(&tail, ",\"result\":{\"state\":\"", 19);
  for (int fill = atoi(arguments[2]); fill > 0; fill--) append(&tail, "p", 1);
  append(&tail, "\"}}\n", 4);

  sockets = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  events = epoll_create1(EPOLL_CLOEXEC);
  if (bind(sockets, (struct sockaddr *)&address, sizeof address) < 0 || listen(sockets, 1024) < 0) end_with("listen");
  struct epoll_event arrival = {.events = EPOLLIN}, ready[READY_MAX];
  epoll_ctl(events, EPOLL_CTL_ADD, sockets, &arrival);
  for (;;) {
    struct client *answered[READY_MAX];
    int answers = 0, seen = epoll_wait(events, ready, READY_MAX, -1);
    for (int i = 0; i < seen; i++) {
      struct client *client = ready[i].data.ptr;
      if (!client) take_clients();
      else if (!(ready[i].events & EPOLLIN) || take_lines(client)) answered[answers++] = client;
    }
    flush_log();
    for (int i = 0; i < answers; i++) flush_answers(answered[i]);
  }
}
