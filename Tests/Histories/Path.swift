// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// A restoration path.
package struct Path: Hashable, Comparable, CustomStringConvertible, Sendable {
  package let components: [String]

  package init(_ components: String...) { self.components = components }

  package init?(_ value: JSONValue) {
    guard let components = value.array?.compactMap(\.string), !components.isEmpty else { return nil }
    self.components = components
  }

  package init(_ components: [String]) { self.components = components }

  package var parent: Path? { components.count > 1 ? Path(Array(components.dropLast())) : nil }
  package var json: String { "[" + components.map { #""\#($0)""# }.joined(separator: ",") + "]" }
  package var description: String { components.joined(separator: "/") }

  package static func < (left: Path, right: Path) -> Bool { left.description < right.description }

  /// Another place for the same object: another identifier if it is a root, otherwise another parent.
  package func neighbour(_ choice: Int) -> Path {
    let others = ["A": "C", "C": "A", "B": "D", "D": "B"]
    guard components.count > 1 else { return Path(others[components[0]] ?? "C") }
    if components.count > 2, choice % 2 == 0 { return Path(Array(components.dropLast(2)) + components.suffix(1)) }
    return Path([components[0] == "A" ? "B" : "A"] + components.dropFirst())
  }

  /// Its place when `path`, at or above it, has become `target`.
  package func moved(from path: Path, to target: Path) -> Path {
    Path(target.components + components.dropFirst(path.components.count))
  }

  package func isAtOrBelow(_ other: Path) -> Bool { self == other || isBelow(other) }

  package func isBelow(_ other: Path) -> Bool {
    components.count > other.components.count && components.starts(with: other.components)
  }
}
