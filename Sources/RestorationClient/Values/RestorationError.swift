// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
public import RestorationWire

/// The broker refused a call, or the library did before sending it, with the broker's code. Nothing was changed, unless
/// `indeterminate` is true.
public struct RestorationError: Error, Hashable, Sendable {
  public let code: ErrorCode
  /// One sentence for people; its wording may change.
  public let message: String
  /// The next step, in one sentence.
  public let hint: String?
  /// The object the error is about.
  public let path: IdentifierPath?
  /// JSON pointer (RFC 6901) to the wrong parameter.
  public let pointer: String?
  /// Of `duplicatePath`, `notOwner` and `alreadyServed`: the present owner, then the claimant if it is named.
  public let owners: [ObjectOwner]
  /// Of `limitExceeded`.
  public let limit: ExceededLimit?
  /// Of `stateChanged`: the change that stored the newest state; 0 if there is none.
  public let sequence: Int64?
  /// Of `storeFailed`: the write may be on disk; send it again with the same revision.
  public let indeterminate: Bool
  /// Of an indeterminate one: the write is provisional, the replica has not confirmed it, and the broker continues.
  let isUnconfirmed: Bool
  /// Of `storeFailed`: it fails again until somebody has acted.
  package let isRefused: Bool
  /// Of `unsupportedProtocolVersion`: the broker's versions.
  public let supportedVersions: [Int64]
  /// The `data` of the error object as JSON text, with members unknown to this library.
  public let dataText: String?

  public struct ExceededLimit: Hashable, Sendable {
    /// The limit's name, as in `limits`.
    public let name: String
    public let max: Int64
    public let value: Int64
  }
}

extension RestorationError: CustomStringConvertible {
  public var description: String { hint.map { "\(message). \($0)" } ?? message }
}

// Reading
extension RestorationError {
  /// Missing or malformed members become their defaults.
  init(answer: JSONSlice) {
    self.init(
      answer["code"]?.integer().flatMap { Int(exactly: $0) }.map { ErrorCode(rawValue: $0) } ?? .internalError,
      answer["message"]?.string() ?? "the broker refused the call without a message",
      answer["data"]
    )
  }

  /// An error found by the library, in the broker's words.
  init(_ error: ErrorObject, message: String? = nil) {
    self.init(ErrorCode(rawValue: error.code), message ?? error.message, error.data.flatMap { JSONText($0).scanned })
  }

  private init(_ code: ErrorCode, _ message: String, _ data: JSONSlice?) {
    (self.code, self.message) = (code, message)
    hint = data?["hint"]?.string()
    path = data?["path"].flatMap { IdentifierPath($0) }
    pointer = data?["pointer"]?.string()
    owners = data?["owners"].flatMap { [ObjectOwner]($0) } ?? []
    limit = data.flatMap(ExceededLimit.init)
    sequence = data?["sequence"]?.integer()
    indeterminate = data?["indeterminate"]?.bool() ?? false
    isUnconfirmed = data?["unconfirmed"]?.bool() ?? false
    isRefused = data?["refused"]?.bool() ?? false
    supportedVersions = data?["supported"]?.elements?.compactMap { $0.integer() } ?? []
    dataText = data?.compactText.string
  }
}

extension Response.Outcome {
  /// The result of a call; throws the broker's error.
  func get() throws(RestorationError) -> JSONSlice {
    switch self {
    case .result(let result): return result
    case .error(let error): throw RestorationError(answer: error)
    }
  }
}

extension RestorationError.ExceededLimit {
  fileprivate init?(_ data: JSONSlice) {
    guard let name = data["limit"]?.string(), let max = data["max"]?.integer(), let value = data["value"]?.integer()
    else { return nil }
    self.init(name: name, max: max, value: value)
  }
}
