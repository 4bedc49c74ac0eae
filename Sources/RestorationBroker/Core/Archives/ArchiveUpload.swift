// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

/// A document on its way into an archive: what has come of it so far, checked object by object.
///
/// Pointers in its errors are into the whole document, even if it comes in parts.
struct ArchiveUpload {
  /// The bytes that an object counts besides its texts.
  private static let overhead = 512
  /// The bytes of a path component.
  private static let componentBytes = 16

  /// An import is dropped if its next part does not come within this time.
  static let idleMilliseconds: Int64 = 60_000

  let token: String
  let application: ApplicationName
  private(set) var objects: [DocumentObject] = []
  private(set) var states = 0
  /// Whether states are missing that existed when the document was made.
  private(set) var isIncomplete = false
  /// Its approximate memory.
  private(set) var charge = 0
  /// Set after the last part: what will be written.
  var plan: ImportPlan?

  init(token: String, application: ApplicationName) { (self.token, self.application) = (token, application) }

  /// Reads a document or its next part, and checks all that can be checked in it alone.
  ///
  /// - Parameters:
  ///   - place: its JSON pointer in the parameters.
  ///   - roomLeft: bytes that all current imports may still read.
  mutating func take(_ document: JSONSlice, at place: String, _ limits: Limits, roomLeft: Int) throws(ErrorObject) {
    let document = try ArchiveDocument(document, at: place)
    if document.redacted { isIncomplete = true }
    let count = objects.count + document.objects.count
    guard count <= limits.objectsPerApplicationMax else {
      throw .limitExceeded("objectsPerApplicationMax", max: limits.objectsPerApplicationMax, value: count)
    }
    objects.reserveCapacity(count)
    let before = charge
    for text in document.objects {
      do throws(ErrorObject) {
        var object = try DocumentObject(text)
        try Self.check(object, limits)
        // The scan is far larger than the texts.
        object.state?.releaseFrame()
        object.beforeClaim?.releaseFrame()
        charge += text.count + Self.overhead + Self.componentBytes * object.componentCount
        if object.state != nil { states += 1 }
        if object.missing != nil { isIncomplete = true }
        objects.append(object)
      } catch {
        throw error.below("/document/objects/\(objects.count)")
      }
      guard charge - before <= roomLeft else {
        let max = 2 * limits.archiveBytesMax
        throw .limitExceeded("archiveBytesMax", max: max, value: max - roomLeft + charge - before)
      }
    }
  }

  // MARK: One object

  private static func check(_ object: DocumentObject, _ limits: Limits) throws(ErrorObject) {
    if let path = object.path {
      for (index, component) in path.components.enumerated() where RestorationIdentifier.split(component) == nil {
        throw .invalidComponent(of: path, "/path/\(index)")
      }
      guard path.bytes <= limits.pathBytesMax else {
        let error = ErrorObject.limitExceeded("pathBytesMax", max: limits.pathBytesMax, value: path.bytes, path: path)
        throw error.below("/path")
      }
    }
    if let state = object.state { try check(state, path: object.path, limits) }
    if let state = object.beforeClaim {
      do throws(ErrorObject) {
        try check(state, path: object.path, limits)
      } catch {
        throw error.below("/beforeClaim")
      }
    }
  }

  private static func check(_ state: DocumentState, path: IdentifierPath?, _ limits: Limits) throws(ErrorObject) {
    let encoded = state.state
    try encoded.checkKeys(path: path)
    // References by path are longer than encoded ones, so each counts as much as the shortest.
    let references = encoded.references
    let referenceBytes = references.reduce(0) { $0 + $1.objectRange.count }
    let bytes = encoded.text.count - referenceBytes + 20 * references.count + (state.elements?.text.count ?? 0)
    // For the same reason one may be a level deeper.
    let depth = encoded.depth - (references.isEmpty ? 0 : 1)
    let given = state.references.reduce(encoded.text.count) { bytes, reference in
      bytes + ArchiveReferences.bytes(pathBytes: reference.target?.jsonBytes ?? 0) - reference.range.count
    }
    do throws(ErrorObject) {
      try encoded.checkSize(bytes: bytes, depth: depth, path: path, limits)
      try limits.requireReadable(bytes: given, path: path)
    } catch {
      throw error.below("/state")
    }
  }
}

extension DocumentObject {
  /// Components of its path, and of those its states refer to.
  fileprivate var componentCount: Int {
    let references = (state?.references ?? []) + (beforeClaim?.references ?? [])
    return references.reduce(path?.components.count ?? 0) { $0 + ($1.target?.components.count ?? 0) }
  }
}
