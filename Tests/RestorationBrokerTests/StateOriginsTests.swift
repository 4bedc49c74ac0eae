// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import RestorationBroker
internal import Testing

@Suite struct StateOriginsTests {
  private static func origin(_ role: String) -> StateOrigin {
    var origin = StateOrigin()
    origin.role = role
    return origin
  }

  @Test func equalOriginsHaveOneNumberAndAreWrittenOnce() throws {
    let event = try TurnFixture()
    var origins = StateOrigins(last: 6)
    let (editor, viewer) = (Self.origin("editor"), Self.origin("viewer"))
    #expect(origins.number(of: editor, in: &event.turn) == 7)
    #expect(origins.number(of: viewer, in: &event.turn) == 8)
    #expect(origins.number(of: editor, in: &event.turn) == 7)
    #expect(event.written() == [.context(7, text: editor.stored), .context(8, text: viewer.stored)])
    #expect(origins[8] == viewer)
    #expect(origins[6] == nil)
  }

  @Test func originsOfTheArchiveKeepTheirNumbers() throws {
    let event = try TurnFixture()
    var origins = StateOrigins(stored: [3: Self.origin("editor").stored], last: 9)
    #expect(origins.number(of: Self.origin("editor"), in: &event.turn) == 3)
    #expect(event.written() == [])
    #expect(origins.number(of: Self.origin("viewer"), in: &event.turn) == 10)
  }

  @Test func whatIsWrittenWithoutSessionHasOneOriginThatNamesOnlyTheSystem() throws {
    let event = try TurnFixture()
    var origins = StateOrigins()
    let number = origins.numberWithoutSession(in: &event.turn)
    #expect(origins.numberWithoutSession(in: &event.turn) == number)
    #expect(event.written().count == 1)
    var expected = StateOrigin()
    expected.systemVersion = "Test 1"
    #expect(origins[number] == expected)
  }
}
