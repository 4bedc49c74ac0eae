// SPDX-License-Identifier: Apache-2.0

package import RestorationArchive
package import RestorationWire

/// Elements of views whose identifiers are looked for in the data of today, or that are to get one (R28).
///
/// Invariants:
/// 1. One element of a view is asked for after the other: what waits for the answers is one view.
/// 2. A timer is set for each view; what has not been found by then is handed out as it was saved.
/// 3. A data source that is not there is awaited once; what one has left behind that was asked stays as it is.
package struct ElementResolver {
  /// A data source has so long for all elements of a view.
  package static let milliseconds: Int64 = 1_000

  /// Who waits for the elements.
  package enum Purpose {
    /// A batch of the restoration with this number, for the state of this node.
    case batch(Int, Addressee, NodeID)
    /// The view's owner, who decodes this state.
    case decode(Caller, StateRecord, at: SequenceNumber)
    /// The state that has these elements; those without identifier get one.
    case name(StateRecord, at: SequenceNumber)
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
    /// Why what is asked for now has no answer, if it gets none.
    fileprivate var reason: RestorableElement.Unresolved

    /// No data source has been there yet.
    package var isAwaiting: Bool { reason == .noDataSource }

    /// What a data source is asked by.
    package var method: ServedMethod {
      switch purpose {
      case .batch, .decode: .indexPathForElementWithModelIdentifier
      case .name: .modelIdentifierForElementAtIndexPath
      }
    }

    /// What is handed out if it ends now.
    package var elements: [RestorableElement] { resolved + rest.map { unresolved($0) } }

    fileprivate func isOpen(_ element: RestorableElement) -> Bool {
      switch purpose {
      case .batch, .decode: element.identifier != nil
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

  /// Those whose data source is not there yet.
  package var awaiting: [Int] { numbers.filter { resolutions[$0]?.isAwaiting == true } }

  /// Those that are to give elements of the view an identifier.
  package func numbers(naming view: NodeID) -> [Int] {
    numbers.filter { number in
      guard resolutions[number]?.view == view, case .name? = resolutions[number]?.purpose else { return false }
      return true
    }
  }

  /// Those that batches of a restoration wait for.
  package func numbers(of restoration: Int) -> [Int] {
    numbers.filter {
      if case .batch(restoration, let addressee, _)? = resolutions[$0]?.purpose { !addressee.isLate } else { false }
    }
  }

  /// - Parameter awaited: how long a data source that is not there is waited for.
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

  /// The data source is there. One that was awaited has its time from now on.
  package mutating func found(_ number: Int, in turn: inout Turn) {
    guard let resolution = resolutions[number], resolution.isAwaiting else { return }
    resolutions[number]?.reason = .noAnswer
    if case .batch = resolution.purpose {
      turn.ask(.setTimer(.elements(turn.application, number), milliseconds: Self.milliseconds))
    }
  }

  /// The data source has left.
  package mutating func lost(_ number: Int) { resolutions[number]?.reason = .gone }

  /// The next element to ask for; nil if none is left. Others stay as they are.
  package mutating func next(of number: Int) -> RestorableElement? {
    while let resolution = resolutions[number], let element = resolution.rest.first, !resolution.isOpen(element) {
      settle(number, element)
    }
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

  /// The data source does not say where the next element is.
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
