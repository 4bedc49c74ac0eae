// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationWire

/// A checked object of an upload. Each path is one text, because freeing thousands of lists takes too long for a turn.
struct UploadedObject {
  /// Without paths.
  private(set) var document: DocumentObject
  let path: PathText?
  /// Of the references of its states.
  let targets: [PathText?]
  let targetsBeforeClaim: [PathText?]
  /// Its memory besides the bytes of its texts: itself, its path, and the paths that its states refer to.
  let overhead: Int

  init(_ document: DocumentObject) throws(ErrorObject) {
    self.document = document
    path = document.path.map { PathText($0) }
    targets = try Self.targets(of: document.state)
    do throws(ErrorObject) {
      targetsBeforeClaim = try Self.targets(of: document.beforeClaim)
    } catch {
      throw error.below("/beforeClaim")
    }
    let references = (document.state?.references ?? []) + (document.beforeClaim?.references ?? [])
    let components = references.reduce(document.path?.components.count ?? 0) { $0 + ($1.target?.components.count ?? 0) }
    overhead = 512 + 16 * components
    self.document.path = nil
    self.document.state?.release()
    self.document.beforeClaim?.release()
  }

  private static func targets(of state: DocumentState?) throws(ErrorObject) -> [PathText?] {
    try (state?.references ?? []).map { reference throws(ErrorObject) in
      guard let target = reference.target else { return nil }
      guard target.components.allSatisfy({ !$0.utf8.contains(PathText.separator) }) else {
        throw .unknownTarget(JSONText(target.json))
      }
      return PathText(target)
    }
  }

  /// Bytes of its states' texts.
  var stateBytes: Int { (document.state?.state.text.count ?? 0) + (document.beforeClaim?.state.text.count ?? 0) }
}

extension DocumentState {
  /// Releases the scan of the text, which is far larger than the text, and the paths.
  fileprivate mutating func release() {
    releaseFrame()
    for index in references.indices { references[index].target = nil }
  }
}

/// A path whose components have no separator in them.
struct PathText: Hashable {
  static let separator = UInt8(ascii: "/")

  private let bytes: ArraySlice<UInt8>

  private init(_ bytes: ArraySlice<UInt8>) { self.bytes = bytes }

  init(_ path: IdentifierPath) { bytes = Array(path.description.utf8)[...] }

  var path: IdentifierPath {
    guard !bytes.isEmpty else { return IdentifierPath() }
    let components = bytes.split(separator: Self.separator, omittingEmptySubsequences: false)
    return IdentifierPath(components.map { String(decoding: $0, as: UTF8.self) })
  }

  /// The path without its last component; `nil` if it has only one.
  var parent: PathText? { bytes.lastIndex(of: Self.separator).map { PathText(bytes[..<$0]) } }

  func hash(into hasher: inout Hasher) { bytes.withUnsafeBytes { hasher.combine(bytes: $0) } }
}
