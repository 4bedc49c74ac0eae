// SPDX-License-Identifier: Apache-2.0

public import RestorationWire

/// The objects of an archive, read page by page. Each iteration reads again, and shows the archive at one moment.
public struct SavedObjects: AsyncSequence, Sendable {
  public typealias Element = ArchivedObject

  let connection: BrokerConnection
  let generation: Int64?
  let reveal: Bool
  let application: String?

  public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(objects: self) }

  public struct AsyncIterator: AsyncIteratorProtocol {
    let objects: SavedObjects
    private var page: [ArchivedObject] = []
    private var index = 0
    private var cursor: String?
    private var hasEnded = false

    init(objects: SavedObjects) { self.objects = objects }

    /// Throws what a call throws.
    public mutating func next() async throws -> ArchivedObject? {
      while index == page.count {
        if hasEnded { return nil }
        try await turnPage()
      }
      defer { index += 1 }
      return page[index]
    }

    private mutating func turnPage() async throws {
      let call = ReadArchive().with {
        $0.generation = objects.generation
        $0.cursor = cursor
        $0.reveal = objects.reveal
      }
      let reply = try await objects.connection.perform(call, application: objects.application)
      page = reply.objects
      index = 0
      cursor = reply.cursor
      hasEnded = cursor == nil
    }
  }
}
