// SPDX-License-Identifier: Apache-2.0

/// A text of JSON, or one with JSON in it, once for each of its integers with each number in its place that a reader
/// may not have thought of: those at the borders of its type, and those beside the other integers of the text.
package func borders(of text: [UInt8]) -> [[UInt8]] {
  let places = integers(in: text)
  let own = Set(places.compactMap { Int64(String(decoding: text[$0], as: UTF8.self)) })
  let beside = own.flatMap { [$0.subtractingReportingOverflow(1), $0.addingReportingOverflow(1)] }
    .filter { !$0.overflow }.map { String($0.partialValue) }
  let numbers = (borderNumbers + Set(beside).subtracting(borderNumbers).sorted()).map { Array($0.utf8) }
  return places.flatMap { place in
    numbers.compactMap { number in
      text[place].elementsEqual(number) ? nil : Array(text[..<place.lowerBound]) + number + text[place.upperBound...]
    }
  }
}

/// 0 and −1; the last ones of 63 bits, and the first ones beyond; the last integer that a double counts, and the next.
package let borderNumbers = [
  "0", "-1", "9223372036854775807", "9223372036854775806", "9223372036854775808", "-9223372036854775808",
  "9007199254740992", "9007199254740993",
]

/// Where they stand outside of strings.
private func integers(in text: [UInt8]) -> [Range<Int>] {
  var (places, isString, index) = ([Range<Int>](), false, 0)
  while index < text.count {
    defer { index += 1 }
    switch text[index] {
    case UInt8(ascii: "\\") where isString: index += 1
    case UInt8(ascii: "\""): isString.toggle()
    // A string does not go on in another line.
    case UInt8(ascii: "\n"): isString = false
    case UInt8(ascii: "0")...UInt8(ascii: "9") where !isString, UInt8(ascii: "-") where !isString:
      let end = text[(index + 1)...].firstIndex { !"0123456789.eE+-".utf8.contains($0) } ?? text.count
      // Numbers alone: `t60000` is a step of a script.
      if index > 0, "[:, ".utf8.contains(text[index - 1]),
        Int64(String(decoding: text[index..<end], as: UTF8.self)) != nil
      {
        places.append(index..<end)
      }
      index = end - 1
    default: break
    }
  }
  return places
}
