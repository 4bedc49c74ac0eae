// SPDX-License-Identifier: Apache-2.0

internal import RestorationWire

/// A call that may take long, and what its caller has been told of how far it has come.
struct LongCall {
  /// Progress is told no more often.
  private static let intervalMilliseconds: Int64 = 100

  let caller: Caller
  let token: ProgressToken?
  private let begun: Int64
  private var told: Int64

  init(_ caller: Caller, token: ProgressToken?, at now: Moment) {
    self.caller = caller
    self.token = token
    begun = now.monotonic
    told = now.monotonic
  }

  func milliseconds(at now: Moment) -> Int64 { now.monotonic - begun }

  /// The notification that is due, if one is; the last one always is.
  mutating func progress(
    _ done: Int,
    of total: Int?,
    _ message: String? = nil,
    isLast: Bool = false,
    at now: Moment
  ) -> Progress? {
    guard let token, isLast || now.monotonic - told >= Self.intervalMilliseconds else { return nil }
    told = now.monotonic
    return Progress(progressToken: token, done: Int64(done), total: total.map { Int64($0) }, message: message)
  }
}

extension CoreContext {
  /// Tells a caller how far its call has come, before its answer.
  func tell(_ progress: Progress?, to caller: Caller) {
    guard let progress else { return }
    emit(.tell(caller.client, method: Progress.method.rawValue, parameters: progress.parameters))
  }
}
