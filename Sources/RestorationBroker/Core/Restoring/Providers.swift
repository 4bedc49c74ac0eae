// SPDX-License-Identifier: Apache-2.0

package import JSONRPC
package import RestorationArchive
internal import RestorationWire

/// The sessions that make the objects of restoration classes, and those that serve the elements of views (R9).
///
/// Invariant: a role has at most one session, unless all that have it share it. The sessions' records name the same
/// roles.
package struct Providers {
  private struct Makers {
    var sessions: [SessionID] = []
    var isShared = false
  }

  private var classes: [String: Makers] = [:]
  private var views: [NodeID: SessionID] = [:]

  package init() {}

  package var held: Int { classes.count + views.count }

  package func makers(of restorationClass: String) -> [SessionID] { classes[restorationClass]?.sessions ?? [] }
  package func isShared(_ restorationClass: String) -> Bool { classes[restorationClass]?.isShared ?? false }
  package func dataSource(of view: NodeID) -> SessionID? { views[view] }
  package var dataSources: [(view: NodeID, session: SessionID)] {
    views.sorted { $0.key < $1.key }.map { (view: $0.key, session: $0.value) }
  }

  /// Each object has at most one class, so more classes than objects must be a mistake.
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

  /// Forgets the data sources of removed views if there are more than `count`.
  package mutating func forgetViews(beyond count: Int, where isGone: (NodeID) -> Bool) {
    if views.count > count { views = views.filter { !isGone($0.key) } }
  }

  package mutating func remove(_ session: SessionID) {
    for name in classes.keys { removeMaker(session, of: name) }
    views = views.filter { $0.value != session }
  }
}
