// SPDX-License-Identifier: Apache-2.0

internal import CSystemd
internal import Glibc

/// The environment that a service manager gave this process; empty without a manager.
package struct ServiceEnvironment: Sendable {
  /// Inherited open descriptors; code that takes one from here must use or close it.
  package var descriptors: [InheritedDescriptor] = []
  /// The socket for reports of our state.
  package var notifySocket: String?
  /// The manager kills us if it gets no report for this long.
  package var watchdogMicroseconds: UInt64?
  package var logsToJournal = false
  /// Why the manager's values cannot be used, and what to do.
  package var fault: String?

  package struct InheritedDescriptor: Hashable, Sendable {
    package let name: String
    package let number: Int32

    package init(name: String, number: Int32) { (self.name, self.number) = (name, number) }

    /// Closes the descriptor; the value must not be used afterwards.
    package func close() { _ = Glibc.close(number) }
  }

  package init() {}

  /// Reads the variables and removes them from the environment, so that no child process uses them.
  ///
  /// Call it once, before other threads start, because they might read the environment meanwhile. From here on the
  /// descriptors close on exec.
  package static func take() -> ServiceEnvironment {
    var taken = ServiceEnvironment()
    taken.notifySocket = takeVariable("NOTIFY_SOCKET")
    taken.logsToJournal = takeVariable("JOURNAL_STREAM").map { isStream(STDERR_FILENO, $0) } ?? false
    // If nothing asks for libsystemd, it is not even loaded.
    let variables: [String] = ["LISTEN_FDS", "WATCHDOG_USEC"]
    guard taken.logsToJournal || variables.contains(where: { getenv($0) != nil }) else { return taken }
    if let fault = SystemdLibrary.fault {
      (taken.fault, taken.logsToJournal) = (fault, false)
      return taken
    }
    taken.descriptors = inheritedDescriptors()
    var interval: UInt64 = 0
    if sd_watchdog_enabled(1, &interval) > 0 { taken.watchdogMicroseconds = interval }
    return taken
  }

  /// Removes and returns the first descriptor with one of these names.
  package mutating func takeDescriptor(named names: String...) -> Int32? {
    guard let index = descriptors.firstIndex(where: { names.contains($0.name) }) else { return nil }
    return descriptors.remove(at: index).number
  }

  private static func inheritedDescriptors() -> [InheritedDescriptor] {
    var names: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
    // Below one: there are none, or they are for another process.
    let count = sd_listen_fds_with_names(1, &names)
    defer {
      for index in 0..<Int(max(count, 0)) { free(names?[index]) }
      free(names)
    }
    return (0..<max(count, 0)).map { index in
      let name = names?[Int(index)].map { String(cString: $0) } ?? ""
      return InheritedDescriptor(name: name, number: 3 + index)
    }
  }

  private static func takeVariable(_ name: String) -> String? {
    let value = getenv(name).map { String(cString: $0) }
    unsetenv(name)
    return value.flatMap { $0.isEmpty ? nil : $0 }
  }

  /// Whether the descriptor is the file named by `DEVICE:INODE`: it may have been redirected since.
  private static func isStream(_ descriptor: Int32, _ value: String) -> Bool {
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { return false }
    return value == "\(status.st_dev):\(status.st_ino)"
  }
}
