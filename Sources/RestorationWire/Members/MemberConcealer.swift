// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Removes from a message what a client confined to one application must not learn: process numbers, unit names, texts
/// that may name the broker's files. Their bounds mark these members; states are never read.
struct MemberConcealer: MemberWalk {
  mutating func required(_: StaticString, _ value: inout some WireValue, _ bounds: Bounds, _: StaticString) {
    value.conceal(within: bounds)
  }

  mutating func nullable(_: StaticString, _ value: inout (some WireValue)?, _ bounds: Bounds, _: StaticString) {
    if bounds.isOfHost { value = nil } else { value?.conceal(within: bounds) }
  }

  /// The member's presence remains visible.
  mutating func optional(_: StaticString, _ value: inout (some WireValue)?, _ bounds: Bounds, _: StaticString) {
    value?.conceal(within: bounds)
  }

  mutating func member<Value: WireValue & Equatable>(
    _: StaticString,
    _ value: inout Value,
    default _: @autoclosure () -> Value,
    _: StaticString,
    as _: @autoclosure () -> Schema?
  ) {
    value.conceal(within: .none)
  }
}

extension Bounds {
  fileprivate var isOfHost: Bool {
    switch self {
    case .processID, .hostText: true
    case .none, .from, .range, .bytes, .handle, .uuid, .sessionToken, .text, .identifier, .role, .file, .some,
      .parameters, .document:
      false
    }
  }
}

extension WireValue {
  /// The same value for a confined client.
  package var concealed: Self {
    var value = self
    value.conceal(within: .none)
    return value
  }
}

extension WireObject {
  package mutating func conceal(within _: Bounds) {
    var concealer = MemberConcealer()
    // The concealer throws no errors.
    try? walk(&concealer)
  }
}

extension TaggedWireValue {
  package mutating func conceal(within _: Bounds) {
    var concealer = MemberConcealer()
    try? walk(&concealer)
  }
}

extension Int64 {
  package mutating func conceal(within bounds: Bounds) { if bounds.isOfHost { self = 0 } }
}

extension String {
  package mutating func conceal(within bounds: Bounds) { if bounds.isOfHost { self = "" } }
}

extension Optional where Wrapped: WireValue {
  package mutating func conceal(within bounds: Bounds) { self?.conceal(within: bounds) }
}

extension Array where Element: WireValue {
  package mutating func conceal(within bounds: Bounds) {
    if bounds.isOfHost { self = [] }
    for index in indices { self[index].conceal(within: bounds) }
  }
}

extension Dictionary where Key == String, Value: WireValue {
  package mutating func conceal(within bounds: Bounds) { for name in keys { self[name]?.conceal(within: bounds) } }
}

extension ErrorObject {
  /// Limits of all applications together.
  private static let sharedLimits = ["applicationsMax", "openArchivesMax", "allArchivesBytesMax"]

  /// The same error for a confined client: without other applications and their amounts, file names and hosts.
  package var concealed: ErrorObject {
    let code = ErrorCode(rawValue: code)
    let isOfFiles = code == .archiveUnreadable || code == .storeFailed
    guard case .object(var data)? = data else { return self }
    if let limit = data["limit"]?.string, let max = data["max"]?.integer, Self.sharedLimits.contains(limit) {
      let hint = data["hint"]?.string
      return .limitExceeded(limit, max: Int(max), value: Int(max) + 1, hint: hint)
    }
    let isOfHosts = code == .ownedElsewhere || code == .fenced
    guard isOfFiles || isOfHosts || data["owners"] != nil, let summary = code.summary else { return self }
    if data["owners"] != nil { data["owners"] = [] }
    if isOfHosts { (data["host"], data["since"]) = (.null, .null) }
    return ErrorObject(code: code.rawValue, message: summary, data: .object(data))
  }
}
