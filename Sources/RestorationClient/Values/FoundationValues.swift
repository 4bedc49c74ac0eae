// SPDX-License-Identifier: Apache-2.0

// The package trait Foundation, which is on by default. Without it no program that uses the library links Foundation.
#if Foundation
internal import FoundationEssentials
internal import JSONRPC
internal import RestorationWire

extension Data: StateValue {
  var saved: SavedValue { .marked(.data(Array(self))) }

  init?(saved slice: JSONSlice, of state: SavedSource) {
    guard let bytes = [UInt8](saved: slice, of: state) else { return nil }
    self.init(bytes)
  }
}

/// To the millisecond.
extension Date: StateValue {
  private struct NotANumber: Error {}

  var saved: SavedValue {
    get throws {
      let milliseconds = (timeIntervalSince1970 * 1_000).rounded()
      guard !milliseconds.isNaN else { throw NotANumber() }
      let range = Timestamp.range
      let clamped = min(max(milliseconds, Double(range.lowerBound)), Double(range.upperBound))
      return .marked(.date(Timestamp(milliseconds: Int64(clamped))))
    }
  }

  init?(saved slice: JSONSlice, of state: SavedSource) {
    guard let date = Timestamp(saved: slice, of: state) else { return nil }
    self.init(timeIntervalSince1970: Double(date.milliseconds) / 1_000)
  }
}

extension URL: StateValue {
  var saved: SavedValue { .json(.string(absoluteString)) }

  init?(saved slice: JSONSlice, of state: SavedSource) {
    guard let text = slice.string() else { return nil }
    self.init(string: text)
  }
}
#endif
