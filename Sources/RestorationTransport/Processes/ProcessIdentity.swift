// SPDX-License-Identifier: Apache-2.0

/// Names one process for ever: a number may be reused, but not together with its start time and boot.
///
/// It can be stored, and compared after a restart of the broker or of the machine.
package struct ProcessIdentity: Hashable, Sendable {
  package let pid: Int32
  /// The start time in clock ticks since boot.
  package let startTicks: UInt64
  package let bootID: String

  package init(pid: Int32, startTicks: UInt64, bootID: String) {
    (self.pid, self.startTicks, self.bootID) = (pid, startTicks, bootID)
  }

  /// The process that has this number now; `nil` if there is none, or it is not visible.
  ///
  /// Only a `ProcessHandle` can tell whether that is still the intended process.
  package static func current(of pid: Int32) -> ProcessIdentity? {
    guard pid > 0, let ticks = readStartTicks(of: pid), let bootID = currentBootID else { return nil }
    return ProcessIdentity(pid: pid, startTicks: ticks, bootID: bootID)
  }

  /// `nil` if `/proc` is not readable.
  package static let currentBootID: String? = {
    guard let bytes = contents(of: "/proc/sys/kernel/random/boot_id") else { return nil }
    let text = String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isNewline).first
    return text.map(String.init)
  }()

  /// The start time in the text of `/proc/PID/stat`; `nil` if the text is invalid.
  ///
  /// The second field is the program's name in parentheses, which may contain spaces and parentheses.
  package static func startTicks(inStatus text: some Collection<UInt8> & BidirectionalCollection<UInt8>) -> UInt64? {
    let fields = fields(of: text)
    return fields.count > 19 ? UInt64(String(decoding: fields[19], as: UTF8.self)) : nil
  }

  /// The wait status in the text of `/proc/PID/stat`; `nil` if the process runs, or the text is invalid.
  package static func exitStatus(inStatus text: some Collection<UInt8> & BidirectionalCollection<UInt8>) -> Int32? {
    let fields = fields(of: text)
    guard fields.count > 49, fields[0].elementsEqual("Z".utf8) else { return nil }
    return Int32(String(decoding: fields[49], as: UTF8.self))
  }

  /// The fields from the third on; among them are the state (3), the start time (22) and the status (52).
  private static func fields<Text: BidirectionalCollection<UInt8>>(of text: Text) -> [Text.SubSequence] {
    guard let end = text.lastIndex(of: UInt8(ascii: ")")) else { return [] }
    return text[text.index(after: end)...].split { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\n") }
  }

  static func readExitStatus(ofZombie pid: Int32) -> Int32? {
    contents(of: "/proc/\(pid)/stat").flatMap { exitStatus(inStatus: $0) }
  }

  static func readStartTicks(of pid: Int32) -> UInt64? {
    contents(of: "/proc/\(pid)/stat").flatMap { startTicks(inStatus: $0) }
  }

  /// A small file of `/proc`, which one read returns completely.
  private static func contents(of path: String) -> [UInt8]? {
    guard let file = try? SystemCalls.openForReading(path) else { return nil }
    return try? SystemCalls.read(file.number, count: 4096)
  }
}
