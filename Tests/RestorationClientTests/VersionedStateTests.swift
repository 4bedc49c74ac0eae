// SPDX-License-Identifier: Apache-2.0

internal import RestorationClient
internal import Testing

/// Values whose form has changed since they were saved.
@Suite(.timeLimit(.minutes(1))) struct VersionedStateTests {
  /// As an older program had it.
  private struct FirstDraft: Codable { var body = "Hello" }

  private struct SecondDraft: VersionedState {
    static let version = 2
    var text = "Hello"
    var page = Page()

    static func migrate(_ saved: inout [String: RestorableValue], from version: Int) {
      guard version < 2 else { return }
      saved["text"] = saved.removeValue(forKey: "body")
      saved["page"] = saved["page"] ?? [:]
    }
  }

  private struct Page: VersionedState, Hashable {
    static let version = 3
    var number = 1
    var link: RestorableReference?

    static func migrate(_ saved: inout [String: RestorableValue], from version: Int) {
      #expect(saved["$version"] == nil)
      saved["number"] = saved["number"] ?? .int(10 * version)
    }
  }

  private func thrown(_ state: RestorableState, _ type: (some Decodable).Type) -> String {
    do {
      _ = try state.decode(type)
      return "nothing"
    } catch let error as DecodingError {
      switch error {
      case .dataCorrupted(let context): return context.debugDescription
      default: return "\(error)"
      }
    } catch {
      return "another error: \(error)"
    }
  }

  @Test func aValueIsSavedWithTheNumberOfItsForm() throws {
    let state = try RestorableState(encoding: SecondDraft())
    #expect(state.jsonText == #"{"$version":2,"page":{"$version":3,"number":1},"text":"Hello"}"#)
    #expect(try state.decode(SecondDraft.self).text == "Hello")
  }

  @Test func whatWasSavedWithoutANumberIsMigratedFromZero() throws {
    let draft = try RestorableState(encoding: FirstDraft()).decode(SecondDraft.self)
    #expect(draft.text == "Hello")
    #expect(draft.page.number == 0)
  }

  @Test func valuesInsideOfOthersAreMigratedByTheirOwnNumbers() throws {
    let state = try RestorableState(
      jsonText: #"{"$version":2,"text":"Hi","page":{"$version":2,"link":{"$restorable":["Main"]}}}"#
    )
    let page = try state.decode(SecondDraft.self).page
    #expect(page == Page(number: 20, link: .path(["Main"])))
  }

  /// Nor is one whose number is beyond all, or no number: it is not older than all others.
  @Test(arguments: ["3", "99999999999999999999", #""2""#, "1.5", "null"])
  func aFormThatTheProgramDoesNotKnowIsNoState(_ version: String) throws {
    let state = try RestorableState(jsonText: #"{"$version":\#(version),"text":"Hello","page":{}}"#)
    #expect(
      thrown(state, SecondDraft.self)
        == "SecondDraft was saved as version \(version), and this program knows versions up to 2"
    )
  }

  @Test func anErrorOfTheMigrationNamesTheVersion() throws {
    struct Strict: VersionedState {
      struct Unknown: Error {}
      static let version = 5
      static func migrate(_ saved: inout [String: RestorableValue], from version: Int) throws { throw Unknown() }
    }
    #expect(thrown(["a": 1], Strict.self) == "Strict could not be migrated from version 0: Unknown()")
  }

  @Test func namesThatLookLikeReferencesSurviveAMigration() throws {
    struct Words: VersionedState {
      static let version = 1
      var counts: [String: Int]
    }
    let counts = ["$restorable": 1, "$date": 2]
    let saved = try RestorableState(encoding: ["counts": counts])
    #expect(try saved.decode(Words.self).counts == counts)
    // Inside of a value that is saved as it is, all is.
    let inside = try RestorableState(encoding: ["words": ["$date": ["counts": counts]]])
    #expect(try inside.decode([String: [String: Words]].self)["words"]?["$date"]?.counts == counts)
  }

  @Test func aValueWithoutKeysHasNoPlaceForANumber() {
    struct Number: VersionedState {
      static let version = 1
      init() {}
      init(from decoder: any Decoder) throws {}
      func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(1)
      }
    }
    #expect(throws: EncodingError.self) { try RestorableState(encoding: Number()) }
  }
}
