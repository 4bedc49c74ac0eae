// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
package import RestorationArchive
internal import RestorationTransport

/// The setting `replica` (`Protocol/service.md`): where archives that follow their user go, and their limits.
package struct ReplicaConfiguration: Hashable, Sendable {
  /// The source of the key that encrypts all data leaving this host.
  package enum Keys: Hashable, Sendable {
    case directory(String)
    case command([String])
    /// No encryption: the database can read everything.
    case none
  }

  package var socket = SocketPath.gateway
  package var acknowledgement = ReplicaPromise.disk
  package var leaseSeconds = ReplicaPromise.disk.leaseSeconds
  package var keys: Keys
  /// This host's name for users of other hosts; `nil` for the machine's name.
  package var host: String?
}

extension ReplicaConfiguration {
  private static let leaseRange = 3...86_400
  private static let hostBytesMax = 255

  /// `place` returns the file that decides a member, for messages; `directory` is that of keys, `nil` if unknown.
  init(
    _ object: JSONObject,
    place: (String) -> String,
    keys directory: () -> String?
  ) throws(BrokerConfiguration.Fault) {
    func fault(_ member: String, _ problem: String) -> BrokerConfiguration.Fault {
      BrokerConfiguration.Fault(description: "\(place(member)).\(member): \(problem)")
    }
    let known = ["acknowledge", "encryption", "host", "keyCommand", "keys", "leaseSeconds", "socket"]
    func text(_ member: String) throws(BrokerConfiguration.Fault) -> String? {
      guard let value = object[member] else { return nil }
      guard let text = value.string else { throw fault(member, "\(JSONText(value).brief) is not a string") }
      guard !text.isEmpty else { throw fault(member, "the string is empty; give one, or remove \(member)") }
      return text
    }
    for (member, _) in object.members where !known.contains(member) {
      throw fault(member, "unknown member \(member); the members are \(known.joined(separator: ", "))")
    }
    if let path = try text("socket") {
      guard path.hasPrefix("/") else { throw fault("socket", "\(path) is not an absolute path") }
      socket = path
    }
    if let host = try text("host") {
      guard host.utf8.count <= Self.hostBytesMax, host.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F }) else {
        throw fault("host", "\(host) has white space or more than \(Self.hostBytesMax) bytes; give a host name")
      }
      self.host = host
    }
    if let word = try text("acknowledge") {
      guard let acknowledgement = ReplicaPromise(rawValue: word) else {
        throw fault("acknowledge", "\(word) is unknown; choose disk or replica")
      }
      self.acknowledgement = acknowledgement
    }
    leaseSeconds = acknowledgement.leaseSeconds
    if let value = object["leaseSeconds"] {
      let (least, most) = (Self.leaseRange.lowerBound, Self.leaseRange.upperBound)
      let remedy = "choose from \(least) to \(most) seconds"
      guard let seconds = value.integer else {
        throw fault("leaseSeconds", "\(JSONText(value).brief) is not a whole number; \(remedy)")
      }
      guard (Int64(least)...Int64(most)).contains(seconds) else {
        throw fault("leaseSeconds", "\(seconds) is out of range; \(remedy)")
      }
      leaseSeconds = Int(seconds)
    }
    keys = .none
    keys = try Self.keys(object["keyCommand"], text("encryption"), text("keys"), fault, directory)
  }

  private static func keys(
    _ command: JSONValue?,
    _ encryption: String?,
    _ said: String?,
    _ fault: (String, String) -> BrokerConfiguration.Fault,
    _ directory: () -> String?
  ) throws(BrokerConfiguration.Fault) -> Keys {
    switch encryption {
    case nil, "xchacha20poly1305": break
    case "none":
      guard command == nil, said == nil else {
        throw fault("encryption", "none needs no key; remove keys and keyCommand, or encryption")
      }
      return .none
    case .some(let word): throw fault("encryption", "\(word) is unknown; choose xchacha20poly1305 or none")
    }
    if let command {
      guard said == nil else { throw fault("keyCommand", "keys is there too; remove one of the two") }
      let words = (command.array ?? []).compactMap(\.string)
      guard words.count == command.array?.count, let program = words.first, program.hasPrefix("/") else {
        let wanted = "an array of strings that begins with the absolute path of a program"
        throw fault("keyCommand", "\(JSONText(command).brief) is not \(wanted)")
      }
      return .command(words)
    }
    if let said {
      guard said.hasPrefix("/") else { throw fault("keys", "\(said) is not an absolute path") }
      return .directory(said)
    }
    guard let path = directory() else {
      throw fault("keys", "neither XDG_CONFIG_HOME nor HOME is set; name the directory of the keys")
    }
    return .directory(path)
  }
}

extension ReplicaPromise {
  /// The seconds of a lease. A broker that acknowledges by its own disk continues without the database for that long;
  /// one that waits for the database gains nothing from a long lease.
  fileprivate var leaseSeconds: Int {
    switch self {
    case .disk: 900
    case .replica: 15
    }
  }
}
