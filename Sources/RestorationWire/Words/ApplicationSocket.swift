// SPDX-License-Identifier: Apache-2.0

/// The socket through which a sandbox uses the broker.
public struct ApplicationSocket: WireObject, Hashable {
  public package(set) var directory = ""
  public package(set) var socket = ""
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("directory", &directory, "Holds the socket and nothing of another application; to be mounted.")
    try members.required("socket", &socket, "The socket's path: `broker.sock` in the directory.")
  }
}
