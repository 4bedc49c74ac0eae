// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationWire
internal import Testing

/// The JSON value that `text` is.
func slice(_ text: String) throws -> JSONSlice {
  try JSONSlice.scan(Array(text.utf8), vocabulary: EncodedState.vocabulary, limits: FrameLimits())
}

/// `text` as the parameters of a call: an object by name, an array by position, none if it is empty.
func parameters(_ text: String) throws -> Parameters {
  if text.isEmpty { return .none }
  let slice = try slice(text)
  return if let elements = slice.elements { .positional(elements) } else { .named(slice) }
}

/// The output of the value's `writeMembers`, as the text of an object.
func written(_ method: any RestorationMethod) -> String {
  var writer = JSONWriter()
  writer.beginObject()
  method.writeMembers(to: &writer)
  writer.endObject()
  return String(decoding: writer.bytes, as: UTF8.self)
}

/// What `body` writes.
func written(_ body: (inout JSONWriter) -> Void) -> String {
  var writer = JSONWriter()
  body(&writer)
  return String(decoding: writer.bytes, as: UTF8.self)
}

/// `data.pointer` of the error when reading `text`; `nil` if reading succeeds.
func pointerOfError(_ method: any RestorationMethod.Type, _ text: String) throws -> String? {
  let parameters = try parameters(text)
  do throws(ErrorObject) {
    _ = try method.init(parameters)
    return nil
  } catch {
    #expect(error.code == -32602)
    #expect(error.data?["kind"]?.string == "invalidParams")
    #expect(error.data?["hint"]?.string?.isEmpty == false)
    return try #require(error.data?["pointer"]?.string)
  }
}
