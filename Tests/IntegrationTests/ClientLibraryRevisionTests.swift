// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import TestSupport
internal import Testing

/// The libraries as they were under earlier revisions of the rules: programs that have a copy of them go on.
@Suite(.timeLimit(.minutes(10))) struct ClientLibraryRevisionTests {
  private static func open(_ library: LibraryClient.Library) throws -> LibraryClient {
    let errors = broker.directory.file("client.log")
    let client = try LibraryClient(library, socket: broker.socket, errors: errors, revision: 1)
    try client.open()
    return client
  }

  @Test(
    "A library of revision 1 saves, is asked, moves, and is restored",
    .broker,
    arguments: LibraryClient.Library.allCases
  )
  func revision1GoesOn(_ library: LibraryClient.Library) throws {
    do {
      let client = try Self.open(library)
      try client.tell("class", ["restorationClass": "Document"])
      try client.register("Main")
      try client.register("Editor", "Main")
      let document: JSONObject = ["identifier": "Doc", "parent": .path("Main"), "restorationClass": "Document"]
      try client.tell("register", document)
      try client.tell("push", ["name": "Doc", "state": ["line": 7, "in": ["$restorable": .path("Main", "Editor")]]])
      try client.tell("set", ["name": "Editor", "state": ["cursor": 17]])
      try client.tell("rename", ["name": "Editor", "identifier": "Text"])
      #expect(try client.tell("save")["stale"] == [])
      #expect(try client.failure("register", ["identifier": "a/b"]).kind == "invalidIdentifier")
      try broker.crashAndRestart()
      #expect(try client.tell("push", ["name": "Main", "state": ["title": "one"]]) == true)
      try client.kill()
    }
    let client = try Self.open(library)
    try client.tell("class", ["restorationClass": "Document"])
    for path in [["Main"], ["Main", "Text"]] {
      let parent = JSONValue.array(path.dropLast().map { .string($0) })
      let name = JSONValue.string(path.last ?? "")
      try client.tell("register", path.count > 1 ? ["identifier": name, "parent": parent] : ["identifier": name])
    }
    let result = try client.tell("restore", ["deadline": 10])
    #expect(
      Set((result["restored"]?.array ?? []).map(\.text)) == [#"["Main"]"#, #"["Main","Doc"]"#, #"["Main","Text"]"#]
    )
    try client.tell("await", ["what": "finished", "count": 3])
    let log = try client.log()
    #expect(log.contains("create Main/Doc") && log.contains(#"decode Text {"cursor":17}"#), "\(log)")
    #expect(log.contains { $0.hasPrefix("decode Doc ") && $0.contains(#""line":7"#) }, "\(log)")
    try client.tell("goodbye", ["reason": "restart"])
    try client.close()
  }
}
