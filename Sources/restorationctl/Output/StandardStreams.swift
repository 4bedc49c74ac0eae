// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// The descriptors 0, 1 and 2.
enum StandardStreams {
  /// Opens those that are closed, so that nothing else gets their numbers and what is printed goes nowhere else. Each
  /// is opened in the wrong direction: using it fails as it would with the closed one.
  static func reserve() {
    for (descriptor, mode) in [(STDIN_FILENO, O_WRONLY), (STDOUT_FILENO, O_RDONLY), (STDERR_FILENO, O_RDONLY)] {
      // The lowest number that is free is this one, because those below it are taken.
      if fcntl(descriptor, F_GETFD) < 0 { _ = open("/dev/null", mode) }
    }
  }
}
