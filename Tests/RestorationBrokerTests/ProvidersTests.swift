// SPDX-License-Identifier: Apache-2.0

internal import RestorationBroker
internal import RestorationWire
internal import Testing

@Suite struct ProvidersTests {
  private var providers = Providers()

  @Test mutating func whenASessionEndsItsRolesAreFreeAndOthersStay() {
    for (name, session) in [("a", Int64(1)), ("b", 2), ("c", 1)] { providers.addMaker(session, of: name) }
    for (view, session) in [(Int64(9), Int64(1)), (8, 2), (7, 2)] { providers.setDataSource(of: view, to: session) }
    providers.remove(1)
    #expect(["a", "b", "c"].map { providers.makers(of: $0) } == [[], [2], []])
    #expect(providers.dataSources.map(\.view) == [7, 8])
    providers.setDataSource(of: 8, to: nil)
    #expect(providers.dataSource(of: 8) == nil)
  }

  @Test mutating func thereAreNoMoreClassesThanObjects() throws {
    var limits = Limits()
    limits.objectsPerApplicationMax = 2
    let event = try TurnFixture(limits)
    for name in ["a", "b"] {
      try providers.requireRoom(for: name, in: event.turn)
      providers.addMaker(1, of: name)
    }
    try providers.requireRoom(for: "a", in: event.turn)
    let third: Void? = try? providers.requireRoom(for: "c", in: event.turn)
    #expect(third == nil)
  }

  @Test mutating func viewsThatAreGoneAreForgottenWhenThereAreMoreThanCanBe() {
    for view: Int64 in 1...4 { providers.setDataSource(of: view, to: 1) }
    providers.forgetViews(beyond: 4) { $0 > 2 }
    #expect(providers.dataSources.count == 4)
    providers.forgetViews(beyond: 3) { $0 > 2 }
    #expect(providers.dataSources.map(\.view) == [1, 2])
  }
}
