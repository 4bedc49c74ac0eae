// SPDX-License-Identifier: Apache-2.0

internal import CSystemd
internal import Glibc

/// A message of D-Bus, with the operations for the manager's answers.
struct BusMessage: ~Copyable {
  private let message: OpaquePointer

  /// Takes over a reference.
  init(owning message: OpaquePointer) { self.message = message }

  deinit {
    sd_bus_message_unref(message)
  }

  func isSignal(_ interface: String, _ member: String) -> Bool {
    sd_bus_message_is_signal(message, interface, member) > 0
  }

  /// The next value, a string or an object path; `nil` if it has another type.
  func readString(_ type: UnicodeScalar = "s") -> String? {
    var text: UnsafePointer<CChar>?
    guard sd_bus_message_read_basic(message, Self.character(type), &text) > 0 else { return nil }
    return text.map { String(cString: $0) }
  }

  func readUnsigned() -> UInt32? {
    var value: UInt32 = 0
    return sd_bus_message_read_basic(message, Self.character("u"), &value) > 0 ? value : nil
  }

  private func readLong() -> UInt64? {
    var value: UInt64 = 0
    return sd_bus_message_read_basic(message, Self.character("t"), &value) > 0 ? value : nil
  }

  private func readSigned() -> Int32? {
    var value: Int32 = 0
    return sd_bus_message_read_basic(message, Self.character("i"), &value) > 0 ? value : nil
  }

  func readBool() -> Bool? {
    var value: Int32 = 0
    return sd_bus_message_read_basic(message, Self.character("b"), &value) > 0 ? value != 0 : nil
  }

  private func readStrings() -> [String]? {
    var list: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
    guard sd_bus_message_read_strv(message, &list) >= 0 else { return nil }
    var strings: [String] = []
    var index = 0
    while let text = list?[index] {
      strings.append(String(cString: text))
      free(text)
      index += 1
    }
    free(list)
    return strings
  }

  enum Value: Hashable {
    case string(String)
    case integer(Int32)
    case microseconds(UInt64)
    case strings([String])
  }

  /// The values of `names` in a dictionary of properties; values of other types are left out.
  func readProperties(_ names: Set<String>) -> [String: Value] {
    var properties: [String: Value] = [:]
    guard sd_bus_message_enter_container(message, Self.character("a"), "{sv}") > 0 else { return [:] }
    while sd_bus_message_enter_container(message, Self.character("e"), "sv") > 0 {
      if let name = readString(), names.contains(name) {
        properties[name] = readVariant()
      } else {
        sd_bus_message_skip(message, "v")
      }
      sd_bus_message_exit_container(message)
    }
    return properties
  }

  func readVariant() -> Value? {
    var type: CChar = 0
    var contents: UnsafePointer<CChar>?
    guard sd_bus_message_peek_type(message, &type, &contents) > 0, let contents,
      sd_bus_message_enter_container(message, Self.character("v"), contents) > 0
    else { return nil }
    defer { sd_bus_message_exit_container(message) }
    switch String(cString: contents) {
    case "s": return readString().map { .string($0) }
    case "u": return readUnsigned().map { .integer(Int32(truncatingIfNeeded: $0)) }
    case "i": return readSigned().map { .integer($0) }
    case "t": return readLong().map { .microseconds($0) }
    case "as": return readStrings().map { .strings($0) }
    case let other:
      sd_bus_message_skip(message, other)
      return nil
    }
  }

  private static func character(_ scalar: UnicodeScalar) -> CChar { CChar(truncatingIfNeeded: scalar.value) }
}
