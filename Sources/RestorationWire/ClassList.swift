// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// The wire form of an object's class and its superclasses (R25): one name as a string, several as an array.
package enum ClassList {
  /// Reads the list, own class first; nil where it is neither a name nor a non-empty array of names.
  package static func read(_ slice: JSONSlice) -> [String]? {
    if let name = slice.string() {
      return name.isEmpty ? nil : [name]
    }
    guard let elements = slice.elements, !elements.isEmpty else { return nil }
    var classes: [String] = []
    classes.reserveCapacity(elements.count)
    for element in elements {
      guard let name = element.string(), !name.isEmpty else { return nil }
      classes.append(name)
    }
    return classes
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
