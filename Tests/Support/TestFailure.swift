// SPDX-License-Identifier: Apache-2.0

/// A test cannot go on; the text says what was waited for and what was there instead.
package struct TestFailure: Error, CustomStringConvertible {
  package let description: String

  package init(_ description: String) {
    self.description = description
  }
}
