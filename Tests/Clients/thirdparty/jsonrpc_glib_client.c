// SPDX-License-Identifier: Apache-2.0
//
// jsonrpc-glib: GVariants in Content-Length frames on GLib's main loop, both directions.

#include <gio/gunixsocketaddress.h>
#include <jsonrpc-glib.h>

static gboolean is_saved;

// Reports a step, or ends the program if the value is not the expected one.
static void expect(const char *step, gboolean is_right, GVariant *actual) {
  if (!is_right) {
    g_autofree char *text = actual ? g_variant_print(actual, TRUE) : NULL;
    g_print("not ok %s: %s\n", step, text ? text : "nothing");
    exit(1);
  }
  g_print("ok %s\n", step);
}

static GVariant *state_of_notes(gboolean is_asked) {
  GVariantDict state;
  g_autoptr(GVariant) members = g_variant_ref_sink(g_variant_new_parsed(
      "{'text': <%s>,"
      " 'nested': <{'list': <[<int64 1>, <[<true>, <@mv nothing>]>, <{'a': <{'b': <@av []>}>}>]>, '': <@a{sv} {}>}>,"
      " 'ratio': <0.1>, 'big': <int64 9007199254740993>}",
      "Grüße, 世界 🗒 \"\\\u2028"));
  g_variant_dict_init(&state, members);
  if (is_asked) g_variant_dict_insert(&state, "asked", "b", TRUE);
  return g_variant_dict_end(&state);
}

// Whether two dictionaries have the same members; their order does not matter.
static gboolean is_equal(GVariant *left, GVariant *right) {
  if (g_variant_is_of_type(left, G_VARIANT_TYPE_VARIANT) && g_variant_is_of_type(right, G_VARIANT_TYPE_VARIANT)) {
    g_autoptr(GVariant) in_left = g_variant_get_variant(left);
    g_autoptr(GVariant) in_right = g_variant_get_variant(right);
    return is_equal(in_left, in_right);
  }
  if (!g_variant_is_of_type(left, G_VARIANT_TYPE_VARDICT)) return g_variant_equal(left, right);
  if (!g_variant_is_of_type(right, G_VARIANT_TYPE_VARDICT)) return FALSE;
  if (g_variant_n_children(left) != g_variant_n_children(right)) return FALSE;
  GVariantIter iterator;
  const char *key;
  GVariant *value;
  g_variant_iter_init(&iterator, left);
  while (g_variant_iter_loop(&iterator, "{&sv}", &key, &value)) {
    g_autoptr(GVariant) other = g_variant_lookup_value(right, key, NULL);
    if (!other || !is_equal(value, other)) {
      g_variant_unref(value);
      return FALSE;
    }
  }
  return TRUE;
}

// The result of a call; null if it fails and the error is requested.
static GVariant *call(JsonrpcClient *broker, const char *method, GVariant *params, GError **failure) {
  g_autoptr(GError) error = NULL;
  GVariant *result = NULL;
  if (!jsonrpc_client_call(broker, method, params, NULL, &result, &error)) {
    if (!failure) g_error("%s: %s", method, error->message);
    *failure = g_steal_pointer(&error);
  }
  return result;
}

static void expect_state(JsonrpcClient *broker, const char *step, GVariant *expected) {
  g_autoptr(GVariant) state = g_variant_ref_sink(expected);
  g_autoptr(GVariant) answer =
      call(broker, "decodeRestorableState", JSONRPC_MESSAGE_NEW("object", "[", "Notes", "]"), NULL);
  g_autoptr(GVariant) decoded = g_variant_lookup_value(answer, "state", NULL);
  const char *status = "";
  JSONRPC_MESSAGE_PARSE(answer, "status", JSONRPC_MESSAGE_GET_STRING(&status));
  expect(step, g_str_equal(status, "available") && decoded && is_equal(decoded, state), answer);
}

static gboolean on_call(JsonrpcClient *broker, char *method, GVariant *id, GVariant *params, gpointer data) {
  g_autoptr(GVariantIter) objects = NULL;
  gint64 object = 0;
  JSONRPC_MESSAGE_PARSE(params, "objects", JSONRPC_MESSAGE_GET_ITER(&objects));
  g_autoptr(GVariant) boxed = g_variant_iter_next_value(objects);
  g_autoptr(GVariant) entry = g_variant_get_variant(boxed);
  g_variant_lookup(entry, "object", "x", &object);
  expect("encodeRequest", g_str_equal(method, "encodeRestorableStateWithCoder") && object > 0, params);
  // JSONRPC_MESSAGE_PUT_VARIANT does not work in 3.42.
  g_autoptr(GVariant) result = g_variant_ref_sink(
      g_variant_new_parsed("{'states': <[<{'object': <%x>, 'state': <%*>}>]>}", object, state_of_notes(TRUE)));
  jsonrpc_client_reply_async(broker, id, result, NULL, NULL, NULL);
  return TRUE;
}

static void on_notification(JsonrpcClient *broker, char *method, GVariant *params, gpointer data) {
  gint64 generation = 0;
  g_variant_lookup(params, "generation", "x", &generation);
  expect("saved", g_str_equal(method, "applicationStateSaved") && generation == 1, params);
  is_saved = TRUE;
}

int main(void) {
  g_autoptr(GSocketClient) connector = g_socket_client_new();
  g_autoptr(GSocketAddress) address = g_unix_socket_address_new(g_getenv("RESTORATIOND_SOCKET"));
  g_autoptr(GError) error = NULL;
  GSocketConnection *connection = g_socket_client_connect(connector, G_SOCKET_CONNECTABLE(address), NULL, &error);
  if (!connection) g_error("%s", error->message);
  g_autoptr(JsonrpcClient) broker = jsonrpc_client_new(G_IO_STREAM(connection));
  g_signal_connect(broker, "handle-call", G_CALLBACK(on_call), NULL);
  g_signal_connect(broker, "notification", G_CALLBACK(on_notification), NULL);
  jsonrpc_client_start_listening(broker);

  g_autoptr(GVariant) opened = call(broker, "initialize", JSONRPC_MESSAGE_NEW(
      "application", JSONRPC_MESSAGE_PUT_STRING(g_getenv("RESTORATION_APPLICATION")), "process", "jsonrpc-glib",
      "serves", "[", "encodeRestorableStateWithCoder", "applicationStateSaved", "]"), NULL);
  gint64 version = 0;
  JSONRPC_MESSAGE_PARSE(opened, "protocolVersion", JSONRPC_MESSAGE_GET_INT64(&version));
  expect("initialize", version == 1, opened);

  g_autoptr(GVariant) registered = call(broker, "registerObjectForStateRestoration", JSONRPC_MESSAGE_NEW(
      "restorationIdentifier", "Notes", "objectClass", "Notes"), NULL);
  gint64 object = 0;
  JSONRPC_MESSAGE_PARSE(registered, "object", JSONRPC_MESSAGE_GET_INT64(&object), "path", "[", "Notes", "]");
  expect("register", object > 0, registered);

  GVariant *draft = JSONRPC_MESSAGE_NEW("object", "[", "Notes", "]",
                                        "state", "{", "draft", JSONRPC_MESSAGE_PUT_BOOLEAN(TRUE), "}");
  jsonrpc_client_send_notification(broker, "encodeRestorableState", draft, NULL, NULL);
  expect_state(broker, "notify", JSONRPC_MESSAGE_NEW("draft", JSONRPC_MESSAGE_PUT_BOOLEAN(TRUE)));

  g_autoptr(GVariant) stored = call(broker, "encodeRestorableState", g_variant_new_parsed(
      "{'object': <%x>, 'state': <%*>}", object, state_of_notes(FALSE)), NULL);
  expect("encode", JSONRPC_MESSAGE_PARSE(stored, "durability", "disk"), stored);
  expect_state(broker, "decode", state_of_notes(FALSE));

  // The library puts the whole error into its own message, as the text of a GVariant.
  g_autoptr(GError) failure = NULL;
  call(broker, "decodeRestorableState", JSONRPC_MESSAGE_NEW("object", "[", "Missing", "]"), &failure);
  g_autoptr(GVariant) object_error = g_variant_parse(NULL, failure->message, NULL, NULL, &error);
  if (!object_error) g_error("%s", error->message);
  gint64 code = 0;
  const char *kind = "";
  JSONRPC_MESSAGE_PARSE(object_error, "code", JSONRPC_MESSAGE_GET_INT64(&code),
                        "data", "{", "kind", JSONRPC_MESSAGE_GET_STRING(&kind), "}");
  expect("error -32002 unknownObject", code == -32002 && g_str_equal(kind, "unknownObject"), object_error);

  g_print("waiting\n");
  while (!is_saved) g_main_context_iteration(NULL, TRUE);
  g_autoptr(GVariant) gone = call(broker, "goodbye", JSONRPC_MESSAGE_NEW("reason", "restart"), NULL);
  expect("goodbye", g_variant_n_children(gone) == 0, gone);
  jsonrpc_client_close(broker, NULL, NULL);
  return 0;
}
