// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
public import RestorationWire

/// The broker refused a call, or the library did before sending it, with the code the broker would have used.
///
/// Nothing was changed, except if `indeterminate` is true.
public struct RestorationError: Error, Hashable, Sendable {
  public let code: ErrorCode
  /// One sentence for people; it may change at any time.
  public let message: String
  /// One sentence that says what to do next.
  public let hint: String?
  /// The object the error is about.
  public let path: IdentifierPath?
  /// JSON pointer (RFC 6901) to the parameter that is wrong.
  public let pointer: String?
  /// Of `duplicatePath`, `notOwner` and `alreadyServed`: the present owner, then the claimant if it is named.
  public let owners: [ObjectOwner]
  /// Of `limitExceeded`: which limit and by how much.
  public let limit: ExceededLimit?
  /// Of `stateChanged`: the change that stored the newest state; 0 if there is none.
  public let sequence: Int64?
  /// Of `storeFailed`: the write may be on disk all the same; send it again with the same revision.
  public let indeterminate: Bool
  /// Of an indeterminate one: it may be on this host's disk, and is sent to the fleet's store then; the broker goes on.
  let isUnconfirmed: Bool
  /// Of `unsupportedProtocolVersion`: versions the broker speaks.
  public let supportedVersions: [Int64]
  /// The `data` of the error object as JSON text, with what this version of the library does not know.
  public let dataText: String?

  /// A limit that a message or a registration went over.
  public struct ExceededLimit: Hashable, Sendable {
    /// The limit's name, as `limits` reports it.
    public let name: String
    public let max: Int64
    public let value: Int64
  }
}

extension RestorationError: CustomStringConvertible {
  /// The message and the hint, in one line.
  public var description: String { hint.map { "\(message). \($0)" } ?? message }
}

// Reading
extension RestorationError {
  /// Reads an error object as received; members that are missing or of another form become their defaults.
  init(answer: JSONSlice) {
    self.init(
      answer["code"]?.integer().flatMap { Int(exactly: $0) }.map { ErrorCode(rawValue: $0) } ?? .internalError,
      answer["message"]?.string() ?? "the broker refused the call without a message",
      answer["data"]
    )
  }

  /// An error found by the library itself, in the broker's words.
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
