// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive

/// The time after a state was handed to its owner in which a crash of the owner counts against it (R31).
package struct DecodeWindow: Hashable, Sendable {
  /// Milliseconds of the monotonic clock.
  package let opened: Int64
  /// Counts what the session was handed.
  let number: Int
  /// It was handed in a call of the broker: only the answer to that call is a sign of life.
  let isByCall: Bool
  /// It was given to the factory that makes the object, and closes with the factory's answer.
  var isOfFactory = false
  /// The owner was heard of after it had taken the state in.
  var isProven = false

  /// It closes by itself after so long.
  package static let milliseconds: Int64 = 10_000
  /// A suspect is on trial for so long, if no better sign of life comes before.
  ///
  /// Clients send calls without waiting for answers: what comes right behind a state may have been sent before the
  /// state was read, and says nothing about it. A process that dies of a state does so at once.
  static let trialMilliseconds: Int64 = 250

  package var closes: Int64 { opened + Self.milliseconds }

  func isOnTrial(at now: Int64) -> Bool { !isProven && now < opened + Self.trialMilliseconds }
}

extension Session {
  /// Something has come from it, and what it had been handed before has been written.
  func heard(at now: Int64) {
    heardUpTo = handedOut
    lastHeard = now
  }

  /// Nodes whose states it was handed and has shown no sign of life since.
  ///
  /// - Parameter isStrict: suspects are being tried: only a sign that came a while after the state counts.
  func unproven(isStrict: Bool) -> [NodeID] {
    windows.compactMap { node, window in
      let isHeard =
        window.number <= heardUpTo && (!isStrict || lastHeard >= window.opened + DecodeWindow.trialMilliseconds)
      return window.isProven || !window.isByCall && isHeard ? nil : node
    }
  }
}
