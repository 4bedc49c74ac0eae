// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// Checks the core's memory against its own invariants, and against the archive.
struct TreeInspection {
  let application: Application
  var faults: [String] = []

  init(_ application: Application) {
    self.application = application
    inspectTree()
    inspectOwners()
    inspectReach()
    inspectBudget()
  }

  private mutating func inspectTree() {
    let tree = application.tree
    var seen: Set<IdentifierPath> = []
    var named = 0
    for node in tree.nodes.values {
      if node.record.component != nil { named += 1 }
      if let path = tree.path(of: node) {
        if !seen.insert(path).inserted { faults.append("two nodes have the path \(path)") }
        if tree.node(at: path) !== node { faults.append("the index does not lead to \(path)") }
      } else if node.record.component != nil {
        faults.append("node \(node.id) has an identifier and no path")
      }
      if node.record.parent != node.parent?.id { faults.append("node \(node.id) has two parents") }
      if let parent = node.parent, tree.nodes[parent.id] !== parent || !parent.children.contains(node.id) {
        faults.append("the parent of node \(node.id) does not know it")
      }
      for child in node.children where tree.nodes[child]?.parent !== node {
        faults.append("node \(node.id) has a child that does not know it")
      }
      if node.record.isRemoved { faults.append("node \(node.id) is removed and there") }
      if node.isPlaceholder, node.children.isEmpty { faults.append("node \(node.id) is left over") }
    }
    if tree.pathCount != named { faults.append("the index has \(tree.pathCount) paths, the tree \(named)") }
  }

  /// What is known of what is saved is what a look at the whole tree finds (R4, R7).
  private mutating func inspectReach() {
    let unsaved = application.tree.unsavedNodes
    for node in application.tree.nodes.values where application.isUnsaved(node) != unsaved.contains(node.id) {
      faults.append("node \(node.id) is\(unsaved.contains(node.id) ? "" : " not") to be left out")
    }
  }

  /// Counting the head anew gives the same.
  private mutating func inspectBudget() {
    let (nodes, counted) = (application.tree.nodes.values, application.budget)
    let states = nodes.reduce(0) { $0 + ($1.state?.bytes ?? 0) }
    if counted.states != states { faults.append("\(counted.states) bytes are counted, the states have \(states)") }
    let texts = nodes.reduce(0) { $0 + $1.record.textBytes }
    if counted.texts != texts { faults.append("\(counted.texts) bytes are counted, the texts have \(texts)") }
  }

  private mutating func inspectOwners() {
    for node in application.tree.nodes.values {
      guard let claim = node.claim else { continue }
      guard let session = application.sessions[claim.session] else {
        faults.append("node \(node.id) belongs to a session that is not there")
        continue
      }
      if session.objects[claim.handle] !== node { faults.append("session \(session.id) does not know its node") }
      if application.tree.claimed[claim.handle] !== node { faults.append("handle \(claim.handle) leads astray") }
    }
    for (handle, node) in application.tree.claimed
    where node.claim?.handle != handle || application.tree.nodes[node.id] !== node {
      faults.append("handle \(handle) is left over: \(node.record)")
    }
    for session in application.sessions.values where !session.isDiscarded {
      for (handle, node) in session.objects where node.claim?.handle != handle {
        faults.append("session \(session.id) has a handle too many")
      }
    }
  }

  /// Checks that loading the archive now would give the present memory.
  mutating func compare(with archive: ArchiveOpening) {
    if archive.sequence != application.sequence {
      faults.append("the archive is at \(archive.sequence), memory at \(application.sequence)")
    }
    let readings = archive.nodes.filter { !$0.node.isRemoved && $0.node.kind != .application }
    if readings.count != application.tree.count {
      faults.append("the archive has \(readings.count) nodes, memory \(application.tree.count)")
    }
    let claims = Dictionary(uniqueKeysWithValues: archive.claims.map { ($0.node, $0) })
    for reading in readings {
      guard let node = application.tree.nodes[reading.node.node] else {
        faults.append("node \(reading.node.node) is in the archive only")
        continue
      }
      if node.record != reading.node { faults.append("\(node.record) is stored as \(reading.node)") }
      if node.state != reading.state {
        faults.append("node \(node.id): \(String(describing: node.state)) / \(String(describing: reading.state))")
      }
      if node.versions.isProvisional, node.versions.hidden != reading.beforeClaim {
        faults.append("node \(node.id) hides another state")
      }
      let named = [node.state, node.versions.hidden]
      for state in named where state.map({ archive.contexts[$0.context] == nil }) ?? false {
        faults.append("node \(node.id) has a state of an unknown writer")
      }
      let stored = claims[node.id]
      if let claim = node.claim, stored?.session != claim.session || stored?.handle != claim.handle {
        faults.append("the claim of node \(node.id) is not stored")
      }
      if let claim = node.claim, stored?.released != 0 { faults.append("\(claim) is stored as released") }
    }
    if archive.generations != application.generations.all { faults.append("generations differ") }
    let live = archive.sessions.filter { $0.ending == nil }.map(\.session).sorted()
    if live != application.sessions.inOrder.map(\.id) { faults.append("sessions differ") }
  }
}

extension MemoryBroker {
  /// Expects that memory is sound, and equals the archive if nothing is held back.
  func inspect(_ name: String = "App", sourceLocation: SourceLocation = #_sourceLocation) {
    guard let application = application(name) else { return }
    var inspection = TreeInspection(application)
    if !disk.holdsCommits, let archive = disk.archive(name) { inspection.compare(with: archive) }
    #expect(inspection.faults.isEmpty, sourceLocation: sourceLocation)
  }
}
