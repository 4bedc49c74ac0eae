// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// The wire form of an object's class and its superclasses (R25): one name as a string, several as an array.
package enum ClassList {
  /// Names a list has at most, and bytes of UTF-8 a name has at most: they are kept for every object.
  package static let countMax = 64
  package static let nameBytesMax = 255

  /// Reads the list, own class first; nil where it is neither a name nor a non-empty array of names, or too long.
  package static func read(_ slice: JSONSlice) -> [String]? {
    if let name = slice.string() {
      return isName(name) ? [name] : nil
    }
    guard let elements = slice.elements, !elements.isEmpty, elements.count <= countMax else { return nil }
    var classes: [String] = []
    classes.reserveCapacity(elements.count)
    for element in elements {
      guard let name = element.string(), isName(name) else { return nil }
      classes.append(name)
    }
    return classes
  }

  private static func isName(_ text: String) -> Bool {
    (1...nameBytesMax).contains(text.utf8.count)
  }

  /// Writes one name as a string, several as an array, none as null.
  package static func write(_ classes: [String], to writer: inout JSONWriter) {
    switch classes.count {
    case 0: writer.null()
    case 1: writer.string(classes[0])
    default: classes.writeJSON(to: &writer)
    }
  }
}
