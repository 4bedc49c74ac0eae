// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import RestorationBroker
internal import Testing

/// The setting `replica` of the configuration.
@Suite struct ReplicaConfigurationTests {
  private static func read(
    _ setting: String,
    home: String? = "/users/ann",
    configuration: String? = nil
  ) throws -> ReplicaConfiguration? {
    var flags = BrokerConfiguration.Flags()
    flags.file = "config.json"
    (flags.socket, flags.archives) = ("/run/b.sock", "/archives")
    return try BrokerConfiguration(
      flags,
      environment: { ["HOME": home, "XDG_CONFIG_HOME": configuration][$0] ?? nil },
      readFile: { _ in setting }
    ).replica
  }

  @Test func withoutTheSettingArchivesStayHere() throws { #expect(try Self.read("{}") == nil) }

  @Test func anEmptySettingUsesTheDefaults() throws {
    let replica = try #require(try Self.read(#"{"replica":{}}"#))
    #expect(replica.socket == "/run/restoration-gateway/gateway.sock")
    #expect(replica.acknowledgement == .disk && replica.leaseSeconds == 900)
    #expect(replica.keys == .directory("/users/ann/.config/restorationd/keys") && replica.host == nil)
  }

  @Test func whoeverWaitsForTheReplicaHasAShortLease() throws {
    let replica = try #require(try Self.read(#"{"replica":{"acknowledge":"replica"}}"#))
    #expect(replica.acknowledgement == .replica && replica.leaseSeconds == 15)
    #expect(try Self.read(#"{"replica":{"acknowledge":"replica","leaseSeconds":60}}"#)?.leaseSeconds == 60)
  }

  @Test func keysComeFromADirectoryOrAProgramOrThereAreNone() throws {
    #expect(try Self.read(#"{"replica":{"keys":"/k"}}"#)?.keys == .directory("/k"))
    #expect(try Self.read(#"{"replica":{"keyCommand":["/bin/key","-x"]}}"#)?.keys == .command(["/bin/key", "-x"]))
    #expect(try Self.read(#"{"replica":{"encryption":"none"}}"#)?.keys == ReplicaConfiguration.Keys.none)
  }

  @Test func theDirectoryOfTheKeysIsInTheUsersConfiguration() throws {
    let setting = #"{"replica":{}}"#
    #expect(try Self.read(setting, home: "/h", configuration: "/c")?.keys == .directory("/c/restorationd/keys"))
    #expect(try Self.read(setting, home: "/h", configuration: "c")?.keys == .directory("/h/.config/restorationd/keys"))
  }

  /// Members of the setting, and the words that the message must contain.
  private static let faults: [(members: String, words: [String])] = [
    (#""sockt":"/x""#, ["unknown member sockt", "acknowledge, encryption"]),
    (#""socket":"x""#, ["x is not an absolute path"]),
    (#""socket":5"#, ["replica.socket: 5 is not a string"]),
    (#""host":"a b""#, ["a b", "host name"]),
    (#""host":"""#, ["replica.host: the string is empty"]),
    (#""acknowledge":"both""#, ["both", "disk or replica"]),
    (#""leaseSeconds":2"#, ["replica.leaseSeconds: 2 is out of range", "3 to 86400"]),
    (#""leaseSeconds":1.5"#, ["1.5 is not a whole number", "3 to 86400"]),
    (#""leaseSeconds":"900""#, [#"replica.leaseSeconds: "900" is not a whole number"#, "3 to 86400"]),
    (#""encryption":"rot13""#, ["rot13", "none"]),
    (#""encryption":"none","keys":"/k""#, ["remove keys"]),
    (#""keys":"k""#, ["k is not an absolute path"]),
    (#""keys":"/k","keyCommand":["/x"]"#, ["remove one"]),
    (#""keyCommand":["key"]"#, [#"replica.keyCommand: ["key"] is not"#, "absolute path of a program"]),
    (#""keyCommand":[]"#, ["absolute path of a program"]),
    (#""keyCommand":["/x",5]"#, ["array of strings"]),
    (#""keyCommand":"/x""#, ["array of strings"]),
  ]

  @Test(arguments: faults) func aMemberThatCannotBeUsedIsNamed(_ fault: (members: String, words: [String])) throws {
    let error = try #require(throws: BrokerConfiguration.Fault.self) {
      try Self.read("{\"replica\":{\(fault.members)}}")
    }
    for word in fault.words + ["config.json: replica"] { #expect(error.description.contains(word), "\(error)") }
  }

  @Test func withoutAHomeTheDirectoryOfTheKeysHasToBeNamed() throws {
    let error = try #require(throws: BrokerConfiguration.Fault.self) { try Self.read(#"{"replica":{}}"#, home: nil) }
    #expect(error.description.contains("XDG_CONFIG_HOME"))
    #expect(try Self.read(#"{"replica":{"keys":"/k"}}"#, home: nil) != nil)
  }
}
