// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import Logging
internal import NIOCore
internal import RestorationTransport
internal import RestorationWire

/// The sockets of single applications, beside the broker's own. Used on the event loop only.
///
/// A descriptor store holds the sockets for the next process. A directory stays when its socket is removed: sandboxes
/// have mounted it, and see a new socket in it.
final class ApplicationSockets {
  private let listener: UnixListener
  /// The parent of the applications' directories.
  private let directory: String
  private let store: (any DescriptorStore)?
  private let backlog: Int
  private let logger: Logger
  /// By application, including sockets that are being opened.
  private var sockets: [String: EventLoopFuture<UnixListener>] = [:]
  private var isStopped = false

  /// - Parameter store: `nil` if sockets end with this process.
  init(
    beside listener: UnixListener,
    below directory: String,
    keptBy store: (any DescriptorStore)?,
    backlog: Int,
    logger: Logger
  ) {
    (self.listener, self.directory, self.store) = (listener, directory, store)
    (self.backlog, self.logger) = (backlog, logger)
  }

  var isEmpty: Bool { sockets.isEmpty }

  /// Opens the application's socket unless it is open, at most `max` sockets in total; answers with its path.
  func open(_ application: String, max: Int, whenDone: @escaping (Answer) -> Void) {
    do {
      let path = try SocketPath.ofApplication(application, below: directory)
      let socket = ApplicationSocket().with { ($0.directory, $0.socket) = (path.directory, path.path) }
      try listen(on: path, for: application, max: max).assumeIsolated().whenComplete { result in
        switch result {
        case .success: whenDone(.result(socket))
        case .failure(let error): whenDone(.error(Self.refusal(for: error)))
        }
      }
    } catch {
      whenDone(.error(Self.refusal(for: error)))
    }
  }

  private func listen(on path: SocketPath, for application: String, max: Int) throws -> EventLoopFuture<UnixListener> {
    guard !isStopped else { throw ErrorObject.shuttingDown() }
    if let socket = sockets[application] {
      if path.hasSocket { return socket }
      // The socket's name was removed.
      forget(application)
    }
    guard sockets.count < max else {
      throw ErrorObject.limitExceeded("applicationSocketsMax", max: max, value: sockets.count + 1)
    }
    let socket = try ListeningSocket(binding: path, backlog: backlog)
    store?.store(socket.number, as: InheritedConnections.storedName(ofApplication: application))
    return listen(on: socket, for: application)
  }

  private func listen(
    on socket: consuming ListeningSocket,
    for application: String
  ) -> EventLoopFuture<UnixListener> {
    let this = NIOLoopBound(self, eventLoop: listener.eventLoop)
    let opening = listener.listen(on: socket, confinement: application, backlog: backlog) { reason in
      this.value.logger.error("the socket for sandboxes of \(application) has closed: \(reason)")
      this.value.drop(application)
    }
    sockets[application] = opening
    opening.whenFailure { _ in this.value.drop(application) }
    return opening
  }

  /// Continues to accept on stored sockets of the former process.
  func adopt(_ inherited: [(application: String, descriptor: Int32)]) {
    for (application, descriptor) in inherited {
      do throws(TransportError) {
        _ = listen(on: try ListeningSocket(inheriting: descriptor), for: application)
      } catch {
        logger.warning("the socket for sandboxes of \(application) is lost: \(error)")
        drop(application)
      }
    }
  }

  /// Stops accepting. Without a store the sockets' names are removed, so that clients see that no broker runs.
  nonisolated(nonsending) func stop() async {
    isStopped = true
    for socket in sockets.values { await (try? await socket.get())?.stop(keepsName: store != nil) }
  }

  /// Drops a socket that no client can reach.
  private func forget(_ application: String) {
    // This releases its lock.
    sockets[application]?.whenSuccess { _ = $0.stopIfUnused() }
    drop(application)
  }

  private func drop(_ application: String) {
    sockets[application] = nil
    store?.remove(InheritedConnections.storedName(ofApplication: application))
  }

  private static func refusal(for error: any Error) -> ErrorObject {
    if let error = error as? ErrorObject { error } else { .noSocket("\(error)") }
  }
}

extension ErrorObject {
  static func noSocket(_ why: String) -> ErrorObject {
    .restoration(
      .storeFailed,
      "no socket can be made: \(why)",
      hint: "Fix the problem above, then call again.",
      details: ["indeterminate": false]
    )
  }
}
