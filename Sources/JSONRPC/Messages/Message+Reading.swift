// SPDX-License-Identifier: Apache-2.0

// Input that violates JSON-RPC becomes one of three:
// - a request that must be refused: `.invalid`, with its id if that is usable;
// - a notification that cannot be answered but names its method: delivered with `fault`;
// - a malformed answer: `.malformedResponse`, never answered.

extension Message {
  /// Classifies a value on the tape that was received as a message.
  ///
  /// - Parameter lastMethod: reused instead of a new string if the method is the same; becomes the message's method.
  init(reading value: JSONSlice, after lastMethod: inout String) {
    guard value.kind == .object else {
      self = .invalid(id: nil, .invalidRequest(hint: "Send each message as a JSON object."))
      return
    }
    let envelope = Envelope(value)
    if envelope.method == nil, envelope.result != nil || envelope.error != nil {
      self = Self.response(envelope)
    } else {
      self = Self.call(envelope, after: &lastMethod)
    }
  }

  private static func response(_ envelope: Envelope) -> Message {
    guard envelope.isVersion2, envelope.repeatedName == nil,
      let id = envelope.slice(envelope.id).flatMap(RequestID.init)
    else { return .malformedResponse }
    switch (envelope.slice(envelope.result), envelope.slice(envelope.error)) {
    case (let result?, nil): return .response(Response(id: id, outcome: .result(result)))
    case (nil, let error?): return .response(Response(id: id, outcome: .error(error)))
    default: return .malformedResponse
    }
  }

  private static func call(_ envelope: Envelope, after lastMethod: inout String) -> Message {
    var id: RequestID?
    if let value = envelope.slice(envelope.id) {
      id = RequestID(value)
      guard id != nil else {
        return .invalid(
          id: nil,
          .invalidRequest(
            hint: "The id must be a string, null, or a number without fraction and exponent, in at most "
              + "\(RequestID.bytesMax) bytes."
          )
        )
      }
    }
    if let name = envelope.repeatedName {
      return .invalid(id: name == "id" ? nil : id, .invalidRequest(hint: "The message has the member \(name) twice."))
    }
    guard envelope.isVersion2 else {
      return .invalid(id: id, .invalidRequest(hint: "The member jsonrpc must be \"2.0\"."))
    }
    guard let method = envelope.slice(envelope.method)?.string(expecting: lastMethod) else {
      return .invalid(id: id, .invalidRequest(hint: "The member method must be a string."))
    }
    // Our names are shorter; a client's long name must not stay in memory.
    if method.utf8.count <= 64 { lastMethod = method }
    let params = envelope.slice(envelope.params)
    guard let parameters = Parameters(reading: params) else {
      let hint = "The member params must be an object, an array or null, or left out."
      return .invalid(id: id, .invalidRequest(hint: hint))
    }
    let fault = params.flatMap(Parameters.repeatedMember)
    guard let id else {
      return .notification(Notification(method: method, parameters: parameters, fault: fault))
    }
    if let fault { return .invalid(id: id, fault) }
    return .request(Request(id: id, method: method, parameters: parameters))
  }
}

/// The known members of a message, as entries of the tape.
private struct Envelope {
  private let storage: FrameStorage
  let repeatedName: String?
  private(set) var isVersion2 = false
  private(set) var id: Int?
  private(set) var method: Int?
  private(set) var params: Int?
  private(set) var result: Int?
  private(set) var error: Int?

  init(_ object: JSONSlice) {
    storage = object.storage
    repeatedName = object.duplicateName
    var index = Int(object.entry) + 1
    let end = Int(storage.tape[Int(object.entry)].next)
    while index < end {
      let entry = storage.tape[index]
      switch Self.word(SliceName(entry), in: storage.bytes) {
      case Self.jsonrpc: isVersion2 = Self.isVersion2(storage, index)
      case Self.idName: id = index
      case Self.methodName: method = index
      case Self.paramsName: params = index
      case Self.resultName: result = index
      case Self.errorName: error = index
      default: break
      }
      index = Int(entry.next)
    }
  }

  func slice(_ entry: Int?) -> JSONSlice? { entry.map { JSONSlice(storage: storage, entry: $0) } }

  private static let jsonrpc = word("jsonrpc")
  private static let idName = word("id")
  private static let methodName = word("method")
  private static let paramsName = word("params")
  private static let resultName = word("result")
  private static let errorName = word("error")

  private static func isVersion2(_ storage: FrameStorage, _ entry: Int) -> Bool {
    JSONSlice(storage: storage, entry: entry).string(expecting: "2.0") == "2.0"
  }

  /// A short name as one number, for fast comparison; 0 for a long one.
  private static func word(_ name: SliceName, in bytes: [UInt8]) -> UInt64 {
    if name.escaped { return word(name.string(in: bytes)) }
    guard name.range.count <= 8 else { return 0 }
    return bytes[name.range].reduce(0) { $0 << 8 | UInt64($1) }
  }

  private static func word(_ name: String) -> UInt64 {
    name.utf8.count > 8 ? 0 : name.utf8.reduce(0) { $0 << 8 | UInt64($1) }
  }
}

extension Parameters {
  /// Null, which some libraries send for no parameters, is accepted. `nil` for values of other types.
  fileprivate init?(reading value: JSONSlice?) {
    guard let value else {
      self = .none
      return
    }
    switch value.kind {
    case .object: self = .named(value)
    case .array: self = .positional(value.elements ?? [])
    case .null: self = .none
    case .string, .integer, .real, .bool: return nil
    }
  }

  /// The fault of a member given twice in `params` or in an object directly in it.
  fileprivate static func repeatedMember(in params: JSONSlice) -> ErrorObject? {
    if let name = params.duplicateName {
      return .invalidParams(hint: "The member is given twice.", pointer: JSONPointer.make(name))
    }
    let storage = params.storage
    var index = Int(params.entry) + 1
    var number = 0
    while index < Int(storage.tape[Int(params.entry)].next) {
      let entry = storage.tape[index]
      if entry.flags.contains(.repeatedNames), let inner = JSONSlice(storage: storage, entry: index).duplicateName {
        let outer = params.kind == .object ? SliceName(entry).string(in: storage.bytes) : String(number)
        return .invalidParams(hint: "The member is given twice.", pointer: JSONPointer.make(outer, inner))
      }
      index = Int(entry.next)
      number += 1
    }
    return nil
  }
}
