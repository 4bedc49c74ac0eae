// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

package protocol JSONWritable {
  func writeJSON(to writer: inout JSONWriter)
}

extension JSONWritable {
  package var text: JSONText {
    var writer = JSONWriter()
    writeJSON(to: &writer)
    return JSONText(validated: writer.bytes)
  }
}

extension JSONWriter {
  /// Writes null for `nil`.
  package mutating func member(_ name: StaticString, _ value: some JSONWritable) {
    key(name)
    value.writeJSON(to: &self)
  }

  /// Writes nothing for `nil`.
  package mutating func member(_ name: StaticString, ifPresent value: (some JSONWritable)?) {
    if let value { member(name, value) }
  }

  /// Writes nothing for false; for members whose default is false.
  package mutating func member(_ name: StaticString, ifTrue value: Bool) { if value { member(name, true) } }

  package mutating func object(_ body: (inout JSONWriter) -> Void) {
    beginObject()
    body(&self)
    endObject()
  }
}

extension JSONWritable where Self: RawRepresentable, RawValue == String {
  package func writeJSON(to writer: inout JSONWriter) { writer.string(rawValue) }
}

extension Array: JSONWritable where Element: JSONWritable {
  package func writeJSON(to writer: inout JSONWriter) {
    writer.beginArray()
    for element in self { element.writeJSON(to: &writer) }
    writer.endArray()
  }
}

extension Optional: JSONWritable where Wrapped: JSONWritable {
  package func writeJSON(to writer: inout JSONWriter) {
    if let self {
      self.writeJSON(to: &writer)
    } else {
      writer.null()
    }
  }
}

extension Dictionary: JSONWritable where Key == String, Value: JSONWritable {
  package func writeJSON(to writer: inout JSONWriter) {
    writer.object { writer in
      for (name, value) in sorted(by: { $0.key < $1.key }) {
        writer.key(name)
        value.writeJSON(to: &writer)
      }
    }
  }
}
