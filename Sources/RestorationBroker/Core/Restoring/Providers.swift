// SPDX-License-Identifier: Apache-2.0

package import JSONRPC
package import RestorationArchive
internal import RestorationWire

/// Who makes the objects of a restoration class, and who knows the elements of a view (R9).
///
/// Invariant: each role has one session at most, unless all that have it share it. What a session's record says of its
/// roles is kept beside it.
package struct Providers {
  private struct Makers {
    /// In the order in which they registered.
    var sessions: [SessionID] = []
    var isShared = false
  }

  private var classes: [String: Makers] = [:]
  private var views: [NodeID: SessionID] = [:]

  package init() {}

  /// Zero if no session has a role.
  package var held: Int { classes.count + views.count }

  package func makers(of restorationClass: String) -> [SessionID] { classes[restorationClass]?.sessions ?? [] }
  /// Whether those that make objects of the class let others do so as well.
  package func isShared(_ restorationClass: String) -> Bool { classes[restorationClass]?.isShared ?? false }
  package func dataSource(of view: NodeID) -> SessionID? { views[view] }
  package var dataSources: [(view: NodeID, session: SessionID)] {
    views.sorted { $0.key < $1.key }.map { (view: $0.key, session: $0.value) }
  }

  /// Objects have at most one class each, so that more classes than objects can only be a mistake.
  package func requireRoom(for restorationClass: String, in turn: borrowing Turn) throws(ErrorObject) {
    let max = turn.limits.objectsPerApplicationMax
    guard classes[restorationClass] != nil || classes.count < max else {
      throw .limitExceeded("objectsPerApplicationMax", max: max, value: classes.count + 1)
    }
  }

  package mutating func addMaker(_ session: SessionID, of restorationClass: String, isShared: Bool = false) {
    classes[restorationClass, default: Makers()].isShared = isShared
    if !makers(of: restorationClass).contains(session) { classes[restorationClass]?.sessions.append(session) }
  }

  package mutating func removeMaker(_ session: SessionID, of restorationClass: String) {
    classes[restorationClass]?.sessions.removeAll { $0 == session }
    if makers(of: restorationClass).isEmpty { classes[restorationClass] = nil }
  }

  package mutating func setDataSource(of view: NodeID, to session: SessionID?) { views[view] = session }

  /// Forgets views that are gone when there are more of them than there can be.
  package mutating func forgetViews(beyond count: Int, where isGone: (NodeID) -> Bool) {
    if views.count > count { views = views.filter { !isGone($0.key) } }
  }

  package mutating func remove(_ session: SessionID) {
    for name in classes.keys { removeMaker(session, of: name) }
    views = views.filter { $0.value != session }
  }
}
