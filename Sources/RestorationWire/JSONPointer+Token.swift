// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

extension JSONPointer {
  /// A member name as one token of a pointer, to stand behind a slash.
  package static func escaped(_ name: String) -> String {
    String(make(name).dropFirst())
  }
}
