// SPDX-License-Identifier: Apache-2.0

package import RestorationArchive
package import RestorationWire

/// Elements of views whose identifiers are looked for in the data of today (R28).
///
/// Invariants:
/// 1. One element of a view is asked for after the other: what waits for the answers is one view.
/// 2. A timer is set for each view; what has not been found by then is handed out as it was saved.
package struct ElementResolver {
  /// A data source has so long for all elements of a view.
  package static let milliseconds: Int64 = 1_000

  /// Who waits for the elements.
  package enum Purpose {
    /// A batch of the restoration with this number, for the state of this node.
    case batch(Int, SessionID, NodeID)
    /// The view's owner, who decodes this state.
    case decode(Caller, StateRecord)
  }

  package struct Resolution {
    package let view: NodeID
    package let purpose: Purpose
    /// The call that asks for the next element.
    package fileprivate(set) var call: CallNumber?
    /// Those that are done; one that the data source no longer has is left out.
    fileprivate var resolved: [RestorableElement] = []
    fileprivate var rest: ArraySlice<RestorableElement>
    /// It has been noted that the data source does not say where elements are.
    fileprivate var isUnresolved = false

    /// What is handed out if it ends now.
    package var elements: [RestorableElement] { resolved + rest }
  }

  private var resolutions: [Int: Resolution] = [:]
  private var counter = 0

  package init() {}

  package subscript(number: Int) -> Resolution? { resolutions[number] }

  package var numbers: [Int] { resolutions.keys.sorted() }

  /// Those that batches of a restoration wait for.
  package func numbers(of restoration: Int) -> [Int] {
    numbers.filter { if case .batch(restoration, _, _)? = resolutions[$0]?.purpose { true } else { false } }
  }

  package mutating func begin(
    _ elements: [RestorableElement],
    of view: NodeID,
    for purpose: Purpose,
    in turn: inout Turn
  ) -> Int {
    counter += 1
    resolutions[counter] = Resolution(view: view, purpose: purpose, rest: elements[...])
    turn.ask(.setTimer(.elements(turn.application, counter), milliseconds: Self.milliseconds))
    return counter
  }

  /// The next element to ask for; nil if none is left. Those without identifier stay as they are.
  package mutating func next(of number: Int) -> RestorableElement? {
    while let element = resolutions[number]?.rest.first, element.identifier == nil { settle(number, element) }
    return resolutions[number]?.rest.first
  }

  package mutating func asked(_ number: Int, by call: CallNumber) { resolutions[number]?.call = call }

  /// The element that was asked for.
  package mutating func answered(_ number: Int) -> RestorableElement? {
    resolutions[number]?.call = nil
    return resolutions[number]?.rest.first
  }

  /// The next element is done as it is given here; nil if the data source no longer has it.
  package mutating func settle(_ number: Int, _ element: RestorableElement?) {
    if let element { resolutions[number]?.resolved.append(element) }
    resolutions[number]?.rest.removeFirst()
  }

  /// - Returns: whether this is the first time for the view.
  package mutating func noteUnresolved(_ number: Int) -> Bool {
    guard resolutions[number]?.isUnresolved == false else { return false }
    resolutions[number]?.isUnresolved = true
    return true
  }

  package mutating func end(_ number: Int, in turn: inout Turn) -> Resolution? {
    guard let resolution = resolutions.removeValue(forKey: number) else { return nil }
    turn.ask(.cancelTimer(.elements(turn.application, number)))
    return resolution
  }
}
