// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// Calls of D-Bus as bytes.
enum DBusMessage {
  /// Where the number of a call stands.
  static let serial = 8

  static func call(
    _ destination: String,
    _ path: String,
    _ interface: String,
    _ member: String,
    bytes: [UInt8]? = nil
  ) -> MessageTemplate {
    var body: [UInt8] = []
    var fields: [UInt8] = []
    field(1, "o", path, &fields)
    field(2, "s", interface, &fields)
    field(3, "s", member, &fields)
    field(6, "s", destination, &fields)
    if let bytes {
      body = number(bytes.count) + bytes
      pad(&fields)
      fields += [8, 1, UInt8(ascii: "g"), 0, 2] + Array("ay".utf8) + [0]
    }
    // Lowest byte first, a call, no flags, version 1.
    var message: [UInt8] =
      [UInt8(ascii: "l"), 1, 0, 1] + number(body.count) + number(1) + number(fields.count) + fields
    pad(&message)
    return MessageTemplate(message + body, serial: serial)
  }

  /// Says who we are, and gets a name.
  static var opening: [Opening] {
    let user = String(getuid()).utf8.map { String($0, radix: 16) }.joined()
    let hello = call("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "Hello")
    return [
      Opening(message: [0] + Array("AUTH EXTERNAL \(user)\r\n".utf8), replies: .lines(1)),
      Opening(message: Array("BEGIN\r\n".utf8) + hello.message(id: 1), replies: .dbus),
    ]
  }

  static var ping: MessageTemplate {
    call("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "GetId")
  }

  /// Sets strings of dconf's database of the user.
  static func dconf(_ keys: [String], _ value: String) -> MessageTemplate {
    let change = call(
      "ca.desrt.dconf",
      "/ca/desrt/dconf/Writer/user",
      "ca.desrt.dconf.Writer",
      "Change",
      bytes: changes(keys, value)
    )
    return change
  }

  /// GVariant's `a{smv}`: for each key just a string.
  private static func changes(_ keys: [String], _ value: String) -> [UInt8] {
    var array: [UInt8] = []
    var ends: [Int] = []
    for key in keys {
      pad(&array)
      var entry = Array(key.utf8) + [0]
      let end = entry.count
      pad(&entry)
      entry += Array(value.utf8) + [0, 0, UInt8(ascii: "s"), 0]
      array += framed(entry, [end])
      ends.append(array.count)
    }
    return framed(array, ends)
  }

  /// Ends of parts stand behind a container, in as few bytes as its whole length needs.
  private static func framed(_ bytes: [UInt8], _ ends: [Int]) -> [UInt8] {
    let width = [1, 2, 4].first { bytes.count + $0 * ends.count < 1 << (8 * $0) } ?? 4
    return bytes + ends.flatMap { number($0).prefix(width) }
  }

  private static func field(_ code: UInt8, _ type: Unicode.Scalar, _ text: String, _ fields: inout [UInt8]) {
    pad(&fields)
    fields += [code, 1, UInt8(ascii: type), 0] + number(text.utf8.count) + Array(text.utf8) + [0]
  }

  private static func number(_ value: Int) -> [UInt8] {
    (0..<4).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
  }

  private static func pad(_ bytes: inout [UInt8]) { while !bytes.count.isMultiple(of: 8) { bytes.append(0) } }
}
