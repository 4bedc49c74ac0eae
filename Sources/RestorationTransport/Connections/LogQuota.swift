// SPDX-License-Identifier: Apache-2.0

package import NIOCore

/// Limits the log entries that each of many peers may cause in a minute, so that no peer can fill a disk. Pure.
///
/// The minute begins with an entry, and is the same for all. After an entry was left out, the minute lasts until
/// `takeLeftOut` is called.
package struct LogQuota<Peer: Hashable & Sendable>: Sendable {
  package static var entriesMax: Int { 20 }
  package static var period: TimeAmount { .minutes(1) }
  /// Peers beyond this number share the entries of one.
  package static var peersMax: Int { 256 }

  package enum Verdict: Equatable, Sendable {
    case written
    case leftOut
    /// Call `takeLeftOut` at that time, and log its result.
    case firstLeftOut(until: NIODeadline)
  }

  private var begin = NIODeadline.distantPast
  /// In this minute; `nil` stands for all peers beyond `peersMax`.
  private var entries: [Peer?: Int] = [:]
  private var hasLeftOut = false

  package init() {}

  package mutating func admit(_ peer: Peer, at now: NIODeadline) -> Verdict {
    if !hasLeftOut, now - begin >= Self.period { entries = [:] }
    if entries.isEmpty { begin = now }
    let account = entries[peer] != nil || entries.count < Self.peersMax ? peer : nil
    entries[account, default: 0] += 1
    if entries[account, default: 0] <= Self.entriesMax { return .written }
    defer { hasLeftOut = true }
    return hasLeftOut ? .leftOut : .firstLeftOut(until: begin + Self.period)
  }

  /// Ends the minute.
  ///
  /// - Returns: the number of entries left out, by peer; `nil` stands for all peers beyond `peersMax`.
  package mutating func takeLeftOut() -> [(peer: Peer?, count: Int)] {
    defer { (entries, hasLeftOut) = ([:], false) }
    return entries.filter { $0.value > Self.entriesMax }.map { ($0.key, $0.value - Self.entriesMax) }
  }
}
