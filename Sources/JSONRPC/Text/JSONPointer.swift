// SPDX-License-Identifier: Apache-2.0

/// Builds JSON pointers (RFC 6901) for `data.pointer`.
package enum JSONPointer {
  /// The pointer to the value reached by these member names and indices.
  package static func make(_ tokens: String...) -> String {
    tokens.reduce(into: "") { pointer, token in
      pointer.append("/")
      for scalar in token.unicodeScalars {
        switch scalar {
        case "~": pointer.append("~0")
        case "/": pointer.append("~1")
        default: pointer.unicodeScalars.append(scalar)
        }
      }
    }
  }
}
