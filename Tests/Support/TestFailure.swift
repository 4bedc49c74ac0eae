// SPDX-License-Identifier: Apache-2.0

/// A test cannot continue; the text says what it expected and what it found.
package struct TestFailure: Error, CustomStringConvertible {
  package let description: String

  package init(_ description: String) { self.description = description }
}
