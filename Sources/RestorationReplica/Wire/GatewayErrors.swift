// SPDX-License-Identifier: Apache-2.0

package import JSONRPC
internal import RestorationArchive
internal import RestorationWire

/// The errors that only the gateway has; the others are in `Protocol/errors.md`. A case's name is the word in
/// `data.kind`.
package enum GatewayErrorCode: Int, CaseIterable, Sendable {
  case elsewhere = -32040
  case fenced = -32041
  case voided = -32042
  case away = -32043
  case unknown = -32044
  case gap = -32045
  case uncovered = -32046
  case tooNew = -32047
  case key = -32048
  case quota = -32049
  case refused = -32050
  case notAttached = -32051

  var hint: String {
    switch self {
    case .elsewhere: "End it on that host, wait for the host, or acquire with isForced."
    case .fenced: "Stop writing, and acquire the archive again."
    case .voided: "Acquire the archive again, with the standing that you have."
    case .away: "Nothing was stored. Call again in half a second."
    case .unknown: "Repeat the call as it was, before any other one of the archive."
    case .gap: "Continue where the contents end, or send a snapshot."
    case .uncovered: "Nothing was stored. Have the administrator add a server, or say that one is enough."
    case .tooNew: "Use a broker of a later version."
    case .key: "Bring the key with this number."
    case .quota: "Remove applications that are not needed, or have the administrator raise userBytesMax."
    case .refused: "Do not repeat it; look at the message."
    case .notAttached: "Call attach, and wait for its answer."
    }
  }

  func error(_ message: String, _ details: JSONObject = [:]) -> ErrorObject {
    var data: JSONObject = ["kind": .string("\(self)"), "hint": .string(hint)]
    for (name, value) in details.members { data[name] = value }
    return ErrorObject(code: rawValue, message: message, data: .object(data))
  }
}

extension ReplicaError {
  package var object: ErrorObject {
    switch kind {
    case .elsewhere(let holder):
      GatewayErrorCode.elsewhere.error(message, ["host": .string(holder.host), "since": .integer(holder.since)])
    case .fenced(nil): GatewayErrorCode.fenced.error(message)
    case .fenced(let host?): GatewayErrorCode.fenced.error(message, ["host": .string(host)])
    case .voided: GatewayErrorCode.voided.error(message)
    case .away: GatewayErrorCode.away.error(message)
    case .unknown: GatewayErrorCode.unknown.error(message)
    case .gap(let end): GatewayErrorCode.gap.error(message, ["sequence": .integer(end)])
    case .uncovered: GatewayErrorCode.uncovered.error(message)
    case .tooNew(let reader): GatewayErrorCode.tooNew.error(message, ["reader": .integer(Int64(reader))])
    case .key(let key): GatewayErrorCode.key.error(message, ["keyId": .string(key)])
    case .quota(let max, let value):
      GatewayErrorCode.quota.error(message, ["max": .integer(Int64(max)), "value": .integer(Int64(value))])
    case .refused: GatewayErrorCode.refused.error(message)
    }
  }

  /// The error of an answer.
  ///
  /// - Parameter lost: the result if the answer does not tell what became of the call.
  package init(_ error: JSONSlice, lost: Kind) {
    let (data, said) = (error["data"], error["message"]?.string() ?? "the gateway has answered with an error")
    let hint = data?["hint"]?.string()
    let number = error["code"]?.integer().flatMap { Int(exactly: $0) } ?? 0
    if let code = GatewayErrorCode(rawValue: number) {
      self.init(Self.kind(code, data) ?? lost, said)
    } else {
      let code = ErrorCode(rawValue: number)
      let kind = Self.postponing.contains(code) ? .away : Self.rejecting.contains(code) ? .refused : lost
      self.init(kind, hint.map { "\(said). \($0)" } ?? said)
    }
  }

  /// Nothing was done; a repetition may succeed.
  private static let postponing: Set<ErrorCode> = [.forbidden, .shuttingDown, .unsupportedProtocolVersion]
  private static let rejecting: Set<ErrorCode> = [
    .invalidParams, .invalidRequest, .parseError, .methodNotFound, .limitExceeded,
  ]

  /// `nil` if the error's data is incomplete.
  private static func kind(_ code: GatewayErrorCode, _ data: JSONSlice?) -> Kind? {
    func count(_ name: StaticString) -> Int? { data?[name].flatMap { Int($0) } }
    switch code {
    case .elsewhere: return data.flatMap { ReplicaHolder($0) }.map { .elsewhere($0) }
    case .fenced: return .fenced(host: data?["host"]?.string())
    case .voided: return .voided
    case .away, .notAttached: return .away
    case .unknown: return .unknown
    case .gap:
      let sequence = data?["sequence"]?.integer()
      return sequence.flatMap { 0...ChangeBatch.sequenceMax ~= $0 ? .gap($0) : nil }
    case .uncovered: return .uncovered
    case .tooNew: return count("reader").map { .tooNew($0) }
    case .key: return data?["keyId"]?.string().map { .key($0) }
    case .quota:
      guard let max = count("max"), let value = count("value") else { return nil }
      return .quota(max: max, value: value)
    case .refused: return .refused
    }
  }
}
