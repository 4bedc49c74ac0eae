// SPDX-License-Identifier: Apache-2.0

package import JSONRPC
package import RestorationWire

/// A value whose members must be consistent. Reading checks that, so that later code can rely on it.
package protocol CheckedWireObject: WireObject {
  /// Throws if valid members contradict each other.
  func check() throws(Misfit)
}

extension CheckedWireObject {
  package init(wire slice: JSONSlice) throws(Misfit) {
    guard slice.kind == .object else { throw Misfit(Self.expected) }
    self.init()
    var reader = MemberReader(.named(slice))
    try walk(&reader)
    try check()
  }
}
