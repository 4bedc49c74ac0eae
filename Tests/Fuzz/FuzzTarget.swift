// SPDX-License-Identifier: Apache-2.0

/// A part of the product that takes bytes from outside. Whatever they are it must not trap or hang, and must keep what
/// the target demands of it besides.
struct FuzzTarget: Sendable {
  let name: String
  /// Valid inputs, from which the search begins.
  let seeds: @Sendable () -> [[UInt8]]
  /// Takes one input; traps if a demand is not met.
  let run: @Sendable ([UInt8]) -> Void

  static let all = [frames, http, words, texts, ledger, changes, messages, gateway, answers, archive, client]

  static func named(_ name: String) -> FuzzTarget? { all.first { $0.name == name } }
}

/// Ends the program if `isMet` is false: that is what a search looks for, in every build.
func demand(_ isMet: Bool, _ message: @autoclosure () -> String) { if !isMet { preconditionFailure(message()) } }
