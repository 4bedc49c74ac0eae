// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// Standard output.
enum Output {
  static func flush() {
    fflush(nil)
  }
}
