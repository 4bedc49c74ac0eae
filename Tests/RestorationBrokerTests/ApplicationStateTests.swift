// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// The application's own state, which its delegate gives in a round: kept as any other, and no object (R7, R11).
@Suite struct ApplicationStateTests {
  let driver = CoreDriver()

  private func delegate(_ pid: Int64, _ state: String, _ application: String = "App") throws -> Peer {
    let peer = driver.connect(pid: pid)
    peer.serves["willEncodeRestorableState"] = { _ in #"{"state":\#(state)}"# }
    peer.serves["shouldSaveApplicationState"] = { _ in "true" }
    try peer.initialize(
      application,
      #""delegate":true,"process":"main","serves":["shouldSaveApplicationState","willEncodeRestorableState"]"#
    )
    return peer
  }

  private func shown(_ peer: Peer) -> JSONValue? {
    peer.calls.last { $0.method == "shouldSaveApplicationState" }?.parameters["state"]
  }

  @Test func r11ItIsShownToTheDelegateOverRestartsAndSeenByNobodyElse() throws {
    let peer = try delegate(1, #"{"tab":3}"#)
    try peer.encode(#"["A"]"#, "{}")
    let reply = try peer.call("saveApplicationState")
    #expect(reply["objects"] == 1)
    #expect(reply["bytes"] == 11)
    #expect(try peer.paths() == ["A"])
    #expect(try peer.objects().count == 1)
    #expect(try peer.call("readArchive", #"{"generation":1}"#)["objects"]?.array?.count == 1)
    #expect(try peer.call("readArchive")["objects"]?.array?.count == 1)
    #expect(try peer.call("listApplications")["applications"]?.array?.first?["objects"] == 1)
    #expect(try peer.call("verifyArchive")["sound"] == true)
    driver.inspect()
    try peer.goodbye("restart")
    driver.restart()
    let again = try delegate(2, "null")
    try again.call("saveApplicationState")
    #expect(shown(again) == ["tab": 3])
    #expect(try again.call("saveApplicationState")["reason"] == "unchanged", "no answer keeps what was said before")
    driver.inspect()
  }

  @Test func r30ADiscardTakesItAwayAndTheNextOneBeginsAnew() throws {
    let peer = try delegate(1, #"{"tab":3}"#)
    try peer.register("A")
    try peer.call("saveApplicationState")
    try peer.call("discardApplicationState")
    driver.inspect()
    peer.serves["willEncodeRestorableState"] = { _ in #"{"state":{"tab":4}}"# }
    #expect(try peer.call("saveApplicationState")["saved"] == true)
    #expect(shown(peer) == .null)
    try peer.call("saveApplicationState")
    #expect(shown(peer) == ["tab": 4])
    driver.inspect()
  }

  @Test func r7WhatItRefersToIsSaved() throws {
    let peer = try delegate(1, #"{"to":{"$restorable":["Hidden"]}}"#)
    try peer.register("Root", below: nil, #""kind":"viewController""#)
    let hole = try peer.register(nil, below: #"["Root"]"#, #""kind":"viewController""#)
    try peer.register("Hidden", below: "\(hole)", #""kind":"viewController""#)
    try peer.encode(#"["Hidden"]"#, #"{"h":1}"#)
    #expect(try peer.call("saveApplicationState")["objects"] == 1)
    let objects = try peer.call("readArchive", #"{"generation":1}"#)["objects"]?.array ?? []
    #expect(objects.contains { $0["path"]?.joined == "Hidden" && $0["state"] == ["h": 1] })
  }

  @Test func anExportedDocumentHoldsItAndAnImportBringsItBack() throws {
    let peer = try delegate(1, #"{"to":{"$restorable":["A"]}}"#)
    try peer.encode(#"["A"]"#, #"{"a":1}"#)
    try peer.call("saveApplicationState")
    let reader = driver.connect(pid: 9)
    func export(_ application: String, _ more: String = "") throws -> JSONValue {
      try #require(try reader.call("exportArchive", #"{"application":"\#(application)"\#(more)}"#)["part"])
    }
    let document = try export("App")
    let first = try #require(document["objects"]?.array?.first)
    #expect(first["kind"] == "application")
    #expect(first["path"] == .null)
    #expect(first["state"] == ["to": ["$restorable": ["A"]]])
    #expect(try export("App", #","generation":1"#) == document)
    let text = JSONText(document).string
    try reader.call("importArchive", #"{"application":"Other","document":\#(text)}"#)
    #expect(try export("Other") == document)
    let other = try delegate(2, "null", "Other")
    try other.call("saveApplicationState")
    #expect(shown(other) == ["to": ["$restorable": ["A"], "object": .null]])
    driver.inspect("Other")
  }

  @Test(arguments: [
    (#"{"path":["A"],"kind":"application"}"#, "/document/objects/0/path"),
    (#"{"path":null,"kind":"application"},{"path":null,"kind":"application"}"#, "/document/objects/1/kind"),
  ])
  func aDocumentWithTwoOrWithAPathIsRefused(_ objects: String, _ pointer: String) throws {
    let reader = driver.connect()
    let document = #"{"format":"restorationd.archive","version":1,"redacted":false,"objects":[\#(objects)]}"#
    let failure = try reader.fail("importArchive", #"{"application":"App","document":\#(document)}"#)
    #expect(failure.code == -32602)
    #expect(failure.data["pointer"] == .string(pointer))
  }
}
