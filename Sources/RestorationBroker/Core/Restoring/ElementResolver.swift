// SPDX-License-Identifier: Apache-2.0

package import RestorationArchive
package import RestorationWire

/// Elements of views that a data source is asked about: for their current index paths, or for identifiers (R28).
///
/// Invariants:
/// 1. The elements of a view are asked for one after the other, so a slow data source delays one view only.
/// 2. Each view has a timer. Elements that are unresolved when it fires are delivered as they were saved.
/// 3. A missing data source is awaited once. If a data source leaves while it is asked, the elements stay as they are.
package struct ElementResolver {
  /// A data source has this long for all elements of a view.
  package static let milliseconds: Int64 = 1_000

  package enum Purpose {
    /// A delivery to the session, in this batch and for the state of this node.
    case delivery(SessionID, batch: Int, NodeID)
    /// A decode by the view's owner.
    case decode(Caller, StateRecord, at: SequenceNumber)
    /// The stored state; elements without an identifier get one.
    case name(StateRecord, at: SequenceNumber)
  }

  package struct Resolution {
    package let view: NodeID
    package let purpose: Purpose
    package fileprivate(set) var call: CallNumber?
    /// Finished elements, without those that the data source no longer has.
    fileprivate var resolved: [RestorableElement] = []
    fileprivate var rest: ArraySlice<RestorableElement>
    /// Whether the explanation says already that the data source did not answer.
    fileprivate var isUnresolved = false
    /// The reason given for the next element if it gets no answer.
    fileprivate var reason: RestorableElement.Unresolved

    /// No data source has come yet.
    package var isAwaiting: Bool { reason == .noDataSource }

    package var method: ServedMethod {
      switch purpose {
      case .delivery, .decode: .indexPathForElementWithModelIdentifier
      case .name: .modelIdentifierForElementAtIndexPath
      }
    }

    /// The elements if it ends now.
    package var elements: [RestorableElement] { resolved + rest.map { unresolved($0) } }

    fileprivate func isOpen(_ element: RestorableElement) -> Bool {
      switch purpose {
      case .delivery, .decode: element.identifier != nil
      case .name: element.identifier == nil
      }
    }

    fileprivate func unresolved(_ element: RestorableElement) -> RestorableElement {
      isOpen(element) ? element.with { $0.unresolved = reason } : element
    }
  }

  private var resolutions: [Int: Resolution] = [:]
  private var counter = 0

  package init() {}

  package subscript(number: Int) -> Resolution? { resolutions[number] }

  package var count: Int { resolutions.count }

  package var numbers: [Int] { resolutions.keys.sorted() }

  package var awaiting: [Int] { numbers.filter { resolutions[$0]?.isAwaiting == true } }

  package func numbers(naming view: NodeID) -> [Int] {
    numbers.filter { number in
      guard resolutions[number]?.view == view, case .name? = resolutions[number]?.purpose else { return false }
      return true
    }
  }

  /// - Parameter awaited: how long to wait for a missing data source.
  package mutating func begin(
    _ elements: [RestorableElement],
    of view: NodeID,
    for purpose: Purpose,
    awaiting awaited: Int64? = nil,
    in turn: inout Turn
  ) -> Int {
    counter += 1
    let reason = awaited == nil ? RestorableElement.Unresolved.noAnswer : .noDataSource
    resolutions[counter] = Resolution(view: view, purpose: purpose, rest: elements[...], reason: reason)
    turn.ask(.setTimer(.elements(turn.application, counter), milliseconds: awaited ?? Self.milliseconds))
    return counter
  }

  /// The data source has come. If it was awaited, its time begins now.
  package mutating func found(_ number: Int, in turn: inout Turn) {
    guard let resolution = resolutions[number], resolution.isAwaiting else { return }
    resolutions[number]?.reason = .noAnswer
    if case .delivery = resolution.purpose {
      turn.ask(.setTimer(.elements(turn.application, number), milliseconds: Self.milliseconds))
    }
  }

  package mutating func lost(_ number: Int) { resolutions[number]?.reason = .gone }

  /// The next element to ask for; `nil` if none is left. Others are finished as they are.
  package mutating func next(of number: Int) -> RestorableElement? {
    while let resolution = resolutions[number], let element = resolution.rest.first, !resolution.isOpen(element) {
      settle(number, element)
    }
    return resolutions[number]?.rest.first
  }

  package mutating func asked(_ number: Int, by call: CallNumber) { resolutions[number]?.call = call }

  package mutating func answered(_ number: Int) -> RestorableElement? {
    resolutions[number]?.call = nil
    return resolutions[number]?.rest.first
  }

  /// Finishes the next element; `nil` drops it.
  package mutating func settle(_ number: Int, _ element: RestorableElement?) {
    if let element { resolutions[number]?.resolved.append(element) }
    resolutions[number]?.rest.removeFirst()
  }

  package mutating func settle(_ number: Int, unresolved element: RestorableElement) {
    settle(number, resolutions[number]?.unresolved(element))
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
