// SPDX-License-Identifier: Apache-2.0

/// A message of a service to its manager (sd_notify(3)).
package enum NotifyMessage: Hashable, Sendable {
  case ready
  /// One line for `systemctl status`.
  case status(String)
  case stopping
  case reloading
  /// The current operation takes at most this long from now on; repeat the message before that.
  case extendTimeout(microseconds: UInt64)
  case watchdog
  /// Store a descriptor beyond our end. It is duplicated at once: the caller may close its own.
  case store(name: String, descriptor: Int32)
  /// Close all descriptors stored under this name.
  case removeStored(name: String)
  case errno(Int32)

  var text: String {
    switch self {
    case .ready: "READY=1"
    case .status(let line): "STATUS=\(line.split(whereSeparator: \.isNewline).joined(separator: " "))"
    case .stopping: "STOPPING=1"
    // Managers from 253 on require the time; older ones ignore it.
    case .reloading: "RELOADING=1\nMONOTONIC_USEC=\(MonotonicTime.now.microseconds)"
    case .extendTimeout(let microseconds): "EXTEND_TIMEOUT_USEC=\(microseconds)"
    case .watchdog: "WATCHDOG=1"
    case .store(let name, _): "FDSTORE=1\nFDNAME=\(name)"
    case .removeStored(let name): "FDSTOREREMOVE=1\nFDNAME=\(name)"
    case .errno(let number): "ERRNO=\(number)"
    }
  }
}
