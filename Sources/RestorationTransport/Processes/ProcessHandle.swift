// SPDX-License-Identifier: Apache-2.0

/// A hold on one process: it keeps naming that process, also after its end and the reuse of its number.
package final class ProcessHandle: Sendable {
  /// The process number; 0 for a process outside our namespace.
  package let pid: Int32
  private let descriptor: Descriptor

  /// The pidfd, for `ProcessWatcher`.
  var number: Int32 { descriptor.number }

  init(pid: Int32, descriptor: consuming Descriptor) {
    self.pid = pid
    self.descriptor = descriptor
  }

  /// Whether the process has ended (it may still be waited for by its parent); asks the kernel and does not wait.
  package var hasExited: Bool { SystemCalls.isReadable(descriptor.number) }

  /// How the process ended; nil while it lives, and where the host does not tell.
  ///
  /// The kernel tells of one that was waited for (6.15), `/proc` of one that was not yet.
  package var ending: Ending? {
    guard hasExited else { return nil }
    if let status = try? SystemCalls.exitStatus(number) { return Ending(status: status) }
    // As long as nobody has waited for it, its number is its own: what was read before the check was about it.
    if let status = ProcessIdentity.readExitStatus(ofZombie: pid), !SystemCalls.isHungUp(number) {
      return Ending(status: status)
    }
    return (try? SystemCalls.exitStatus(number)).map { Ending(status: $0) }
  }

  /// How a process ended.
  package enum Ending: Hashable, Sendable {
    case exited(code: Int32)
    case signalled(signal: Int32)

    /// - Parameter status: as `wait` gives it.
    init(status: Int32) {
      let signal = status & 0x7F
      self = signal == 0 ? .exited(code: (status >> 8) & 0xFF) : .signalled(signal: signal)
    }
  }

  /// What to store to find this process again; nil once it has ended.
  package var identity: ProcessIdentity? {
    // As long as the process lives, its number is its own: what was read before the check was about it.
    guard let identity = ProcessIdentity.current(of: pid), !hasExited else { return nil }
    return identity
  }

  /// Takes hold of a process known from before; nil if it has ended or its number is another process's now.
  package static func open(_ identity: ProcessIdentity) -> ProcessHandle? {
    guard identity.bootID == ProcessIdentity.currentBootID else { return nil }
    guard let handle = open(pid: identity.pid) else { return nil }
    return handle.identity == identity ? handle : nil
  }

  /// Takes hold of the process that has this number now; nil if there is none.
  package static func open(pid: Int32) -> ProcessHandle? {
    guard pid > 0, let descriptor = try? SystemCalls.openProcess(pid) else { return nil }
    return ProcessHandle(pid: pid, descriptor: descriptor)
  }
}
