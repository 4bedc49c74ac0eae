// SPDX-License-Identifier: Apache-2.0

internal import Synchronization

/// A pidfd: names one process even after its end and the reuse of its number.
package final class ProcessHandle: Sendable {
  /// 0 for a process outside our namespace.
  package let pid: Int32
  private let descriptor: Descriptor
  private let knownIdentity = Mutex<ProcessIdentity?>(nil)

  var number: Int32 { descriptor.number }

  init(pid: Int32, descriptor: consuming Descriptor) {
    self.pid = pid
    self.descriptor = descriptor
  }

  /// True even if its parent has not waited for it. Does not block.
  package var hasExited: Bool { SystemCalls.isReadable(descriptor.number) }

  /// How the process ended; `nil` if it is alive, or if its end is unknown.
  ///
  /// After its parent has waited for it, the kernel knows (since 6.15); before that, `/proc` does.
  package var ending: Ending? {
    guard hasExited else { return nil }
    if let status = try? SystemCalls.exitStatus(number) { return Ending(status: status) }
    // Its number is not reused before its parent has waited for it, so the status read before this check is its own.
    if let status = ProcessIdentity.readExitStatus(ofZombie: pid), !SystemCalls.isHungUp(number) {
      return Ending(status: status)
    }
    return (try? SystemCalls.exitStatus(number)).map { Ending(status: $0) }
  }

  package enum Ending: Hashable, Sendable {
    case exited(code: Int32)
    case signalled(signal: Int32)

    /// - Parameter status: as `wait` returns it.
    init(status: Int32) {
      let signal = status & 0x7F
      self = signal == 0 ? .exited(code: (status >> 8) & 0xFF) : .signalled(signal: signal)
    }
  }

  /// The identity to store, to find this process again; `nil` if it has ended.
  package var identity: ProcessIdentity? {
    // The number of a live process is not reused: the identity read before this check is its own.
    let known = knownIdentity.withLock { $0 } ?? ProcessIdentity.current(of: pid)
    guard let known, !hasExited else { return nil }
    knownIdentity.withLock { $0 = known }
    return known
  }

  /// The handle of a stored process; `nil` if it has ended.
  package static func open(_ identity: ProcessIdentity) -> ProcessHandle? {
    guard identity.bootID == ProcessIdentity.currentBootID else { return nil }
    guard let handle = open(pid: identity.pid) else { return nil }
    return handle.identity == identity ? handle : nil
  }

  /// The handle of the process that has this number now; `nil` if there is none.
  package static func open(pid: Int32) -> ProcessHandle? {
    guard pid > 0, let descriptor = try? SystemCalls.openProcess(pid) else { return nil }
    return ProcessHandle(pid: pid, descriptor: descriptor)
  }
}
