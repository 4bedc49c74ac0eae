// SPDX-License-Identifier: Apache-2.0

// Input that breaks JSON-RPC is one of three:
// - a request that must be refused: `.invalid`, with its id when that is usable;
// - a notification that cannot be answered but names its method: delivered with `fault`;
// - an answer nobody can use: `.malformedResponse`, never answered.

extension Message {
  /// Sorts out one value received as a message.
  init(reading value: JSONSlice) {
    guard value.kind == .object else {
      self = .invalid(id: nil, .invalidRequest(hint: "A message is a JSON object."))
      return
    }
    let envelope = Envelope(value)
    if envelope.method == nil, envelope.result != nil || envelope.error != nil {
      self = Self.response(envelope)
    } else {
      self = Self.call(envelope)
    }
  }

  private static func response(_ envelope: Envelope) -> Message {
    guard envelope.isVersion2, envelope.repeatedName == nil, let id = envelope.id.flatMap(RequestID.init) else {
      return .malformedResponse
    }
    switch (envelope.result, envelope.error) {
    case (let result?, nil): return .response(Response(id: id, outcome: .result(result)))
    case (nil, let error?): return .response(Response(id: id, outcome: .error(error)))
    default: return .malformedResponse
    }
  }

  private static func call(_ envelope: Envelope) -> Message {
    var id: RequestID?
    if let value = envelope.id {
      id = RequestID(value)
      guard id != nil else {
        return .invalid(
          id: nil, .invalidRequest(hint: "The id must be a string, null, or a number without fraction and exponent."))
      }
    }
    if let name = envelope.repeatedName {
      return .invalid(
        id: name == "id" ? nil : id, .invalidRequest(hint: "The message has the member \(name) twice."))
    }
    guard envelope.isVersion2 else {
      return .invalid(id: id, .invalidRequest(hint: "The member jsonrpc must be \"2.0\"."))
    }
    guard let method = envelope.method?.string() else {
      return .invalid(id: id, .invalidRequest(hint: "The member method must be a string."))
    }
    guard let parameters = Parameters(reading: envelope.params) else {
      return .invalid(id: id, .invalidRequest(hint: "The member params must be an object or an array, or left out."))
    }
    let fault = envelope.params.flatMap(Parameters.repeatedMember)
    guard let id else {
      return .notification(Notification(method: method, parameters: parameters, fault: fault))
    }
    if let fault { return .invalid(id: id, fault) }
    return .request(Request(id: id, method: method, parameters: parameters))
  }
}

/// The members of a message that mean something.
private struct Envelope {
  /// A name that occurs twice.
  let repeatedName: String?
  var isVersion2 = false
  var id: JSONSlice?
  var method: JSONSlice?
  var params: JSONSlice?
  var result: JSONSlice?
  var error: JSONSlice?

  init(_ object: JSONSlice) {
    repeatedName = object.mayHaveRepeatedNames ? object.duplicateName : nil
    let bytes = object.storage.bytes
    object.forEachChild { name, value in
      if name.isEqual(to: "jsonrpc", in: bytes) {
        isVersion2 = value.string() == "2.0"
      } else if name.isEqual(to: "id", in: bytes) {
        id = value
      } else if name.isEqual(to: "method", in: bytes) {
        method = value
      } else if name.isEqual(to: "params", in: bytes) {
        params = value
      } else if name.isEqual(to: "result", in: bytes) {
        result = value
      } else if name.isEqual(to: "error", in: bytes) {
        error = value
      }
      return true
    }
  }
}

extension Parameters {
  /// Nil when the value is neither object nor array.
  fileprivate init?(reading value: JSONSlice?) {
    guard let value else {
      self = .none
      return
    }
    switch value.kind {
    case .object: self = .named(value)
    case .array: self = .positional(value.elements ?? [])
    default: return nil
    }
  }

  /// The fault of a member given twice in `params` or in an object directly in it.
  fileprivate static func repeatedMember(in params: JSONSlice) -> ErrorObject? {
    if params.mayHaveRepeatedNames, let name = params.duplicateName {
      return .invalidParams(hint: "The member is given twice.", pointer: JSONPointer.make(name))
    }
    var fault: ErrorObject?
    var index = 0
    params.forEachChild { name, value in
      if value.mayHaveRepeatedNames, let inner = value.duplicateName {
        let outer = params.kind == .object ? name.string(in: params.storage.bytes) : String(index)
        fault = .invalidParams(hint: "The member is given twice.", pointer: JSONPointer.make(outer, inner))
        return false
      }
      index += 1
      return true
    }
    return fault
  }
}

extension JSONSlice {
  /// False only when the scan knows that the names in this object differ.
  fileprivate var mayHaveRepeatedNames: Bool {
    guard kind == .object else { return false }
    guard entry >= 0 else { return true }
    let flags = storage.tape[Int(entry)].flags
    return !flags.contains(.children) || flags.contains(.repeatedNames)
  }
}
