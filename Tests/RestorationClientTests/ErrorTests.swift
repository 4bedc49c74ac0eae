// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationClient
internal import RestorationWire
internal import Testing

/// Error answers as Swift errors.
@Suite(.timeLimit(.minutes(2))) struct ErrorTests {
  private static let named: [(ErrorCode, String)] = [
    (.notInitialized, "notInitialized"), (.unknownObject, "unknownObject"), (.duplicatePath, "duplicatePath"),
    (.invalidIdentifier, "invalidIdentifier"), (.unknownParent, "unknownParent"), (.parentCycle, "parentCycle"),
    (.reservedKey, "reservedKey"), (.limitExceeded, "limitExceeded"), (.notOwner, "notOwner"),
    (.replaced, "replaced"), (.archiveUnreadable, "archiveUnreadable"), (.storeFailed, "storeFailed"),
    (.timedOut, "timedOut"), (.forbidden, "forbidden"), (.invalidReference, "invalidReference"),
    (.unsupportedProtocolVersion, "unsupportedProtocolVersion"), (.shuttingDown, "shuttingDown"),
    (.unknownApplication, "unknownApplication"), (.alreadyServed, "alreadyServed"), (.needsForce, "needsForce"),
    (.stateChanged, "stateChanged"), (.ownedElsewhere, "ownedElsewhere"), (.fenced, "fenced"),
  ]

  private static func answer(_ error: ErrorObject) async throws -> RestorationError {
    var found: RestorationError?
    try await FakeBroker.run(answer: { _ in .error(error) }) { fake in
      let broker = try await BrokerConnection.connect(to: fake.path)
      found = await thrownError { try await broker.call(Ping()) } as? RestorationError
    }
    return try #require(found)
  }

  @Test func everyCodeOfTheProtocolHasItsName() {
    #expect(Self.named.map(\.0) == ErrorCode.all.filter { $0.rawValue > -32600 })
    for (code, name) in Self.named { #expect(code.description == name) }
  }

  @Test(arguments: ErrorCode.all)
  func anErrorOfTheProtocolKeepsCodeMessageAndHint(_ code: ErrorCode) async throws {
    let error = try await Self.answer(
      .restoration(code, "it went wrong", hint: "Do better.", path: ["Main", "Editor"])
    )
    #expect(error.code.rawValue == code.rawValue)
    #expect(error.code.description == code.kind)
    #expect(error.message == "it went wrong")
    #expect(error.hint == "Do better.")
    #expect(error.path == ["Main", "Editor"])
    #expect(error.description == "it went wrong. Do better.")
  }

  @Test(arguments: [
    (ErrorObject.parseError(hint: "h", offset: 3), ErrorCode.parseError),
    (.invalidRequest(hint: "h"), .invalidRequest),
    (.methodNotFound("x"), .methodNotFound),
    (.invalidParams(hint: "h", pointer: "/object"), .invalidParams),
    (.internalError(hint: "h"), .internalError),
  ])
  func anErrorOfJSONRPCKeepsItsCode(_ answer: ErrorObject, _ code: ErrorCode) async throws {
    let error = try await Self.answer(answer)
    #expect(error.code == code)
    #expect(error.pointer == (code == .invalidParams ? "/object" : nil))
    #expect("\(code)" == answer.data?["kind"]?.string)
  }

  @Test func aDuplicatePathNamesItsOwners() async throws {
    let owners: JSONValue = [["process": "editor", "pid": 12], ["process": nil, "pid": 13]]
    let error = try await Self.answer(.restoration(.duplicatePath, "m", hint: "h", details: ["owners": owners]))
    #expect(error.owners == [ObjectOwner(process: "editor", pid: 12), ObjectOwner(process: nil, pid: 13)])
    #expect(error.owners.map(\.description) == ["editor (12)", "process 13"])
  }

  @Test func aLimitSaysWhichAndByHowMuch() async throws {
    let error = try await Self.answer(ErrorObject.limitExceeded("stateBytesMax", max: 10, value: 11))
    #expect(error.limit?.name == "stateBytesMax")
    #expect(error.limit?.max == 10)
    #expect(error.limit?.value == 11)
  }

  @Test func furtherMembersAreRead() async throws {
    let failed = try await Self.answer(.restoration(.storeFailed, "m", hint: "h", details: ["indeterminate": true]))
    #expect(failed.indeterminate)
    let version = try await Self.answer(
      .restoration(.unsupportedProtocolVersion, "m", hint: "h", details: ["supported": [1, 2]])
    )
    #expect(version.supportedVersions == [1, 2])
    #expect(version.dataText == #"{"kind":"unsupportedProtocolVersion","hint":"h","supported":[1,2]}"#)
  }

  @Test func anErrorOfALaterBrokerIsKeptAsItIs() async throws {
    let error = try await Self.answer(ErrorObject(code: -32099, message: "something new"))
    #expect(error.code == ErrorCode(rawValue: -32099))
    #expect(error.code.description == "-32099")
    #expect(error.description == "something new")
    #expect(error.dataText == nil)
  }
}
