// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
package import RestorationWire

/// A call that may take long, and its progress as reported so far.
package struct LongCall: Sendable {
  /// The shortest time between two progress messages.
  private static let intervalMilliseconds: Int64 = 100

  package let caller: Caller
  let token: ProgressToken?
  /// The trace of the calls that it causes.
  let trace: TraceContext?
  /// The session that fetches its progress by `nextRequest`; nil if it is sent over the caller's connection.
  private let poller: SessionID?
  private let bytesMax: Int
  private let begun: Int64
  private var told: Int64

  package init(
    _ caller: Caller,
    by session: Session?,
    token: ProgressToken?,
    in trace: TraceContext? = nil,
    at now: Moment
  ) {
    (self.caller, self.token, self.trace) = (caller, token, trace)
    poller = session.flatMap { $0.isPolling ? $0.id : nil }
    bytesMax = session?.pushBytesMax ?? Session.pushBytesDefault
    begun = now.monotonic
    told = now.monotonic
  }

  func milliseconds(at now: Moment) -> Int64 { now.monotonic - begun }

  /// The notification that is due, if any; the last one always is.
  mutating func progress(
    _ done: Int,
    of total: Int?,
    _ message: String? = nil,
    isLast: Bool = false,
    at now: Moment
  ) -> ArchiveProgress? {
    guard let token, isLast || now.monotonic - told >= Self.intervalMilliseconds else { return nil }
    told = now.monotonic
    return ArchiveProgress().with { progress in
      progress.progressToken = token
      progress.done = Int64(done)
      progress.total = total.map { Int64($0) }
      progress.message = message
    }
  }
}

extension LongCall {
  var recipient: Recipient { poller.map { .poller($0) } ?? .client(caller.client) }

  /// Whether the caller reads a message of that length.
  func reads(_ parameters: JSONText) -> Bool {
    Session.fits(ArchiveProgress.method.rawValue, parameters, in: bytesMax)
  }
}

extension Application {
  /// Reports the progress of a call to its caller, before its answer.
  func tell(_ progress: ArchiveProgress?, of call: LongCall) {
    guard let parameters = progress?.text, call.reads(parameters) else { return }
    tell(call.recipient, ArchiveProgress.method, parameters)
  }
}
