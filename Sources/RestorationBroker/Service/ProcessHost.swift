// SPDX-License-Identifier: Apache-2.0

package import NIOCore
package import RestorationTransport

/// The source of clients' processes: the kernel, or a test.
package protocol ProcessHost: Sendable {
  /// The process of a connection; `nil` if it had ended before it could be held.
  func process(of peer: PeerCredentials) -> (any HostProcess)?
  /// A process known from before; `nil` if it has ended.
  func process(_ identity: ProcessIdentity) -> (any HostProcess)?
}

package protocol HostProcess: AnyObject, Sendable {
  var pid: Int32 { get }
  /// `nil` after the process has ended.
  var identity: ProcessIdentity? { get }
  var hasExited: Bool { get }
  /// How the process ended, as far as its host knows.
  var ending: ProcessEnding { get }
  /// Calls back once, on the event loop, when the process has ended. Returns a function that ends the watch.
  func watch(
    on eventLoop: any EventLoop,
    _ callback: @escaping @Sendable () -> Void
  ) throws(TransportError) -> @Sendable () -> Void
}

extension ProcessWatcher: ProcessHost {
  package func process(of peer: PeerCredentials) -> (any HostProcess)? {
    peer.process.map { KernelProcess($0, watchedBy: self) }
  }

  package func process(_ identity: ProcessIdentity) -> (any HostProcess)? {
    ProcessHandle.open(identity).map { KernelProcess($0, watchedBy: self) }
  }
}

private final class KernelProcess: HostProcess {
  private let handle: ProcessHandle
  private let watcher: ProcessWatcher

  init(_ handle: ProcessHandle, watchedBy watcher: ProcessWatcher) { (self.handle, self.watcher) = (handle, watcher) }

  var pid: Int32 { handle.pid }
  var identity: ProcessIdentity? { handle.identity }
  var hasExited: Bool { handle.hasExited }

  var ending: ProcessEnding {
    switch handle.ending {
    case .exited(let code): .exited(code: code)
    case .signalled(let signal): .signalled(signal: signal)
    case nil: .unknown
    }
  }

  func watch(
    on eventLoop: any EventLoop,
    _ callback: @escaping @Sendable () -> Void
  ) throws(TransportError) -> @Sendable () -> Void {
    let token = try watcher.watch(handle, on: eventLoop, callback)
    return { token.cancel() }
  }
}
