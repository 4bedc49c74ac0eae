// SPDX-License-Identifier: Apache-2.0

internal import CSystemd

/// libsystemd, loaded when it is first needed.
enum SystemdLibrary {
  /// Loads the library. Describes why that failed, and what to do; `nil` on success.
  static var fault: String? {
    csystemd_open().map {
      "the service manager's sockets, watchdog, units and journal fields cannot be used: \(String(cString: $0)); "
        + "install libsystemd (Debian: libsystemd0) and start the broker again"
    }
  }
}
