// SPDX-License-Identifier: Apache-2.0

package import JSONRPC
package import RestorationWire

/// A value whose members have to go together: if they do not, it is not read, so that nobody behind it has to look.
package protocol CheckedWireObject: WireObject {
  /// Throws if the members, each of which is right, do not go together.
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
