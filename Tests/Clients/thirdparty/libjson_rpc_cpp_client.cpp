// SPDX-License-Identifier: Apache-2.0
//
// libjson-rpc-cpp: its UnixDomainSocketClient connects for each call, so each call names the session. Notifications are
// left out, because the connector waits for an answer to them.

#include <jsonrpccpp/client.h>
#include <jsonrpccpp/client/connectors/unixdomainsocketclient.h>

#include <cstdlib>
#include <iostream>
#include <string>

// Reports a step, or ends the program if the value is not the expected one.
static void expect(const std::string &step, const Json::Value &actual, const Json::Value &expected) {
  if (actual != expected) {
    std::cout << "not ok " << step << ": " << actual << " instead of " << expected << std::endl;
    std::exit(1);
  }
  std::cout << "ok " << step << std::endl;
}

static Json::Value path(const std::string &component) {
  Json::Value path(Json::arrayValue);
  path.append(component);
  return path;
}

static Json::Value state_of_notes() {
  Json::Value list(Json::arrayValue), inner(Json::arrayValue), deep(Json::objectValue);
  deep["a"]["b"] = Json::Value(Json::arrayValue);
  inner.append(true);
  inner.append(Json::Value());
  list.append(1);
  list.append(inner);
  list.append(deep);
  Json::Value state;
  state["text"] = "Grüße, 世界 🗒 \"\\\u2028";
  state["nested"]["list"] = list;
  state["nested"][""] = Json::Value(Json::objectValue);
  state["ratio"] = 0.1;
  state["big"] = Json::UInt64(9007199254740993);
  return state;
}

int main() {
  jsonrpc::UnixDomainSocketClient connector(std::getenv("RESTORATIOND_SOCKET"));
  jsonrpc::Client broker(connector);

  Json::Value params;
  params["application"] = std::getenv("RESTORATION_APPLICATION");
  params["process"] = "libjson-rpc-cpp";
  params["serves"].append("encodeRestorableStateWithCoder");
  params["serves"].append("applicationStateSaved");
  Json::Value opened = broker.CallMethod("initialize", params);
  expect("initialize", opened["protocolVersion"], 1);

  // The members of every further call, because each has its own connection.
  Json::Value session;
  session["application"] = params["application"];
  session["session"] = opened["session"];

  params = session;
  params["restorationIdentifier"] = params["objectClass"] = "Notes";
  Json::Value registered = broker.CallMethod("registerObjectForStateRestoration", params);
  expect("register", registered["path"], path("Notes"));

  params = session;
  params["object"] = registered["object"];
  params["state"] = state_of_notes();
  expect("encode", broker.CallMethod("encodeRestorableState", params)["durability"], "disk");

  Json::Value notes = session, missing = session;
  notes["object"] = path("Notes");
  missing["object"] = path("Missing");
  expect("decode", broker.CallMethod("decodeRestorableState", notes)["state"], state_of_notes());

  jsonrpc::BatchCall calls;
  int right = calls.addCall("decodeRestorableState", notes);
  Json::Value wrong = calls.addCall("decodeRestorableState", missing);
  jsonrpc::BatchResponse answers = broker.CallProcedures(calls);
  Json::Value found(Json::arrayValue);
  found.append(answers.getResult(right)["state"]);
  found.append(answers.getErrorCode(wrong));
  Json::Value both(Json::arrayValue);
  both.append(state_of_notes());
  both.append(-32002);
  expect("batch", found, both);

  try {
    broker.CallMethod("decodeRestorableState", missing);
  } catch (const jsonrpc::JsonRpcException &error) {
    expect("error " + std::to_string(error.GetCode()) + " unknownObject", error.GetData()["kind"], "unknownObject");
  }

  // The first nextRequest tells that the session, which has no connection between two calls, fetches its calls.
  expect("poll", broker.CallMethod("nextRequest", session), Json::Value());
  std::cout << "waiting" << std::endl;
  Json::Value poll = session;
  poll["waitMilliseconds"] = 20000;
  Json::Value call = broker.CallMethod("nextRequest", poll);
  expect("encodeRequest", call["params"]["objects"][0]["path"], path("Notes"));
  Json::Value answer;
  answer["object"] = registered["object"];
  answer["state"] = state_of_notes();
  answer["state"]["asked"] = true;
  params = session;
  params["id"] = call["id"];
  params["result"]["states"].append(answer);
  broker.CallMethod("answerRequest", params);
  expect("saved", broker.CallMethod("nextRequest", poll)["params"]["generation"], 1);

  params = session;
  params["reason"] = "restart";
  expect("goodbye", broker.CallMethod("goodbye", params), Json::Value(Json::objectValue));
}
