// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationWire

/// A document assembled from the pages of an export: its own members, then a line for each object.
struct ExportedDocument {
  private var bytes: [UInt8] = []
  private var isEmpty = true

  /// Adds a page; false if it is invalid.
  mutating func append(_ part: JSONText) -> Bool {
    guard let page = try? JSONInput.scan(Array(part.bytes), subject: "a page"), let members = page.members,
      let objects = page["objects"]?.elements
    else { return false }
    if bytes.isEmpty {
      JSONWriter.append(to: &bytes) { writer in
        writer.beginObject()
        for member in members where member.name != "objects" {
          writer.key(member.name)
          writer.text(member.value.compactText)
        }
        writer.key("objects")
      }
      bytes += "[".utf8
    }
    for object in objects {
      bytes += (isEmpty ? "\n" : ",\n").utf8
      bytes += object.compactText.bytes
      isEmpty = false
    }
    return true
  }

  var text: String { String(decoding: bytes, as: UTF8.self) + "\n]}\n" }
}

/// A document cut into parts for the broker.
struct ImportedDocument {
  /// The most bytes of a part, unless a single object is larger.
  private static let partBytesMax = 1 << 20
  /// Values of a message besides its objects.
  private static let envelopeValues = 64

  private let whole: JSONSlice
  private let objects: [JSONSlice]
  private let ranges: [Range<Int>]

  var count: Int { ranges.count }
  var objectCount: Int { objects.count }

  /// Throws a `RestorationError` with code `parseError` if the text is not JSON. The broker finds all other errors.
  init(_ text: String, limits: Limits) throws {
    whole = try JSONInput.scan(text, subject: "the document")
    objects = whole["objects"]?.elements ?? []
    let bytesMax = min(Self.partBytesMax, limits.frameBytesMax / 2)
    let valuesMax = limits.valuesPerFrameMax - Self.envelopeValues
    var ranges: [Range<Int>] = []
    var begin = 0
    var bytes = 0
    var values = 0
    for (index, object) in objects.enumerated() {
      let more = (bytes: object.text.count, values: object.text.jsonValuesMax)
      if index > begin, bytes + more.bytes > bytesMax || values + more.values > valuesMax {
        ranges.append(begin..<index)
        (begin, bytes, values) = (index, 0, 0)
      }
      bytes += more.bytes
      values += more.values
    }
    ranges.append(begin..<objects.count)
    self.ranges = ranges
  }

  func part(_ index: Int) throws -> JSONSlice {
    guard count > 1, let members = whole.members else { return whole }
    var writer = JSONWriter()
    writer.beginObject()
    for member in members {
      writer.key(member.name)
      guard member.name == "objects" else {
        writer.text(member.value.compactText)
        continue
      }
      writer.beginArray()
      for object in objects[ranges[index]] { writer.text(object.compactText) }
      writer.endArray()
    }
    writer.endObject()
    return try JSONInput.scan(writer.bytes, subject: "a part")
  }
}
