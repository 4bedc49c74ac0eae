// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationClient

/// An object of the process, as the library knows it.
final class ServedObject: StateRestoring {
  let name: String
  private let process: ServingProcess

  init(_ name: String, of process: ServingProcess) {
    self.name = name
    self.process = process
  }

  func encodeRestorableState() async throws -> ObjectState { try await process.encode(name) }

  func decodeRestorableState(_ saved: ObjectState) async { await process.decoded(name, saved) }

  func applicationFinishedRestoringState() async { await process.finished(name) }
}

/// The application's delegate.
final class ServedDelegate: RestorationDelegate {
  private let process: ServingProcess

  init(of process: ServingProcess) { self.process = process }

  func shouldSaveApplicationState(_ saved: SavedApplicationState) async -> Bool {
    await process.answer("shouldSaveApplicationState", "shouldSave")?.bool ?? true
  }

  func shouldRestoreApplicationState(_ saved: SavedApplicationState) async -> Bool {
    await process.answer("shouldRestoreApplicationState", "shouldRestore")?.bool ?? true
  }

  func willEncodeRestorableState() async throws -> RestorableState? {
    let given = await process.answer("willEncodeRestorableState", "willEncode")
    let state: JSONValue? = if let given { given["state"] } else { await process.applicationState }
    return try state.map { try RestorableState(jsonText: TestClient.text($0)) }
  }

  func didDecodeRestorableState(_ saved: SavedApplicationState) async {
    _ = await process.answer("didDecodeRestorableState", "didDecode")
    await process.decodedApplication(saved.state)
  }

  func viewController(for request: RestorationRequest) async throws -> RestorableObject? {
    _ = await process.answer("viewControllerWithRestorationIdentifierPath", "create", request.path)
    return nil
  }
}

/// The content of a view: identifiers, or a list of them for each section.
actor ServedItems: ModelAssociating {
  private let process: ServingProcess
  private var items: JSONValue

  init(_ items: JSONValue, of process: ServingProcess) {
    self.items = items
    self.process = process
  }

  func become(_ items: JSONValue) { self.items = items }

  func modelIdentifierForElement(
    at indexPath: [Int],
    role: RestorableElement.Role,
    in view: IdentifierPath
  ) async -> String? {
    _ = await process.answer("modelIdentifierForElementAtIndexPath", "model", view)
    var found: JSONValue? = items
    for index in indexPath { found = found?.array.flatMap { $0.indices.contains(index) ? $0[index] : nil } }
    return found?.string
  }

  func indexPathForElement(
    withModelIdentifier identifier: String,
    role: RestorableElement.Role,
    in view: IdentifierPath
  ) async -> [Int]? {
    _ = await process.answer("indexPathForElementWithModelIdentifier", "index", view)
    return Self.find(identifier, in: items)
  }

  private static func find(_ identifier: String, in items: JSONValue) -> [Int]? {
    for (index, item) in (items.array ?? []).enumerated() {
      if item.string == identifier { return [index] }
      if let found = find(identifier, in: item) { return [index] + found }
    }
    return nil
  }
}
