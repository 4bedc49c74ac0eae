// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC

/// How a process ended that did not say goodbye, as events and explanations tell it.
package struct ProcessOutcome: Sendable, Hashable {
  package enum How: String, CaseIterable, Sendable, JSONWritable {
    case exited, signalled, outOfMemory
    /// By the service manager.
    case stopped
    case unknown
  }

  package static let members: [Schema.Member] = [
    .required("how", .nullable(.openWords(How.self)), "How the process ended; null where it has not, or said goodbye."),
    .required("code", .nullable(.integer), "Its exit code; null where it did not exit by itself."),
    .required("signal", .nullable(.string), "Name of the signal that ended it; null where none did."),
    .required("unit", .nullable(.string), "The unit it belonged to; null where that is not known."),
  ]

  package var how: How?
  package var code: Int64?
  /// Such as `SIGSEGV`.
  package var signal: String?
  package var unit: String?

  package init(_ how: How? = nil, code: Int64? = nil, signal: String? = nil, unit: String? = nil) {
    self.how = how
    self.code = code
    self.signal = signal
    self.unit = unit
  }

  init(_ reader: ResultReader) throws(WrongShape) {
    self.how = try reader.optional("how") { How(rawValue: $0.string() ?? "") }
    self.code = try reader.optionalInteger("code")
    self.signal = try reader.optionalString("signal")
    self.unit = try reader.optionalString("unit")
  }

  func writeMembers(to writer: inout JSONWriter) {
    writer.member("how", how)
    writer.member("code", code)
    writer.member("signal", signal)
    writer.member("unit", unit)
  }
}
