// SPDX-License-Identifier: Apache-2.0

// Go's sourcegraph/jsonrpc2 with its VSCodeObjectCodec: Content-Length frames, both directions.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"reflect"

	"github.com/sourcegraph/jsonrpc2"
)

type state struct {
	Text   string   `json:"text"`
	Nested any      `json:"nested"`
	Ratio  float64  `json:"ratio"`
	Big    int64    `json:"big"`
	Huge   *big.Int `json:"huge"`
	Asked  bool     `json:"asked,omitempty"`
}

type params map[string]any

type decoded struct {
	Status string
	State  json.RawMessage
}

var path = []string{"Notes"}

func stateOfNotes() state {
	huge, _ := new(big.Int).SetString("12345678901234567890123", 10)
	deep := map[string]any{"a": map[string]any{"b": []any{}}}
	return state{
		Text: "Grüße, 世界 🗒 \"\\\u2028",
		Nested: map[string]any{
			"list": []any{1.0, []any{true, nil}, deep},
			"":     map[string]any{},
		},
		Ratio: 0.1,
		Big:   9007199254740993,
		Huge:  huge,
	}
}

// expect reports a step, or ends the program if the value is not the expected one.
func expect(step string, actual, expected any) {
	if !reflect.DeepEqual(actual, expected) {
		fmt.Printf("not ok %s: %v instead of %v\n", step, actual, expected)
		os.Exit(1)
	}
	fmt.Printf("ok %s\n", step)
}

func check(err error) {
	if err != nil {
		fmt.Printf("not ok: %v\n", err)
		os.Exit(1)
	}
}

// served answers the broker's calls; saved gets the number of the generation.
func served(saved chan<- int) jsonrpc2.Handler {
	return jsonrpc2.HandlerWithError(func(_ context.Context, _ *jsonrpc2.Conn, request *jsonrpc2.Request) (any, error) {
		var given struct {
			Generation int
			Objects    []struct {
				Object int64
				Path   []string
			}
		}
		check(json.Unmarshal(*request.Params, &given))
		switch request.Method {
		case "encodeRestorableStateWithCoder":
			expect("encodeRequest", given.Objects[0].Path, path)
			answer := stateOfNotes()
			answer.Asked = true
			return params{"states": []params{{"object": given.Objects[0].Object, "state": answer}}}, nil
		case "applicationStateSaved":
			saved <- given.Generation
			return nil, nil
		}
		return nil, &jsonrpc2.Error{Code: jsonrpc2.CodeMethodNotFound, Message: request.Method}
	})
}

func main() {
	ctx := context.Background()
	connection, err := net.Dial("unix", os.Getenv("RESTORATIOND_SOCKET"))
	check(err)
	saved := make(chan int, 1)
	stream := jsonrpc2.NewBufferedStream(connection, jsonrpc2.VSCodeObjectCodec{})
	broker := jsonrpc2.NewConn(ctx, stream, jsonrpc2.AsyncHandler(served(saved)))

	var opened struct{ ProtocolVersion int }
	check(broker.Call(ctx, "initialize", params{
		"application": os.Getenv("RESTORATION_APPLICATION"),
		"process":     "sourcegraph-jsonrpc2",
		"serves":      []string{"encodeRestorableStateWithCoder", "applicationStateSaved"},
	}, &opened))
	expect("initialize", opened.ProtocolVersion, 1)

	var registered struct {
		Object int64
		Path   []string
	}
	object := params{"restorationIdentifier": "Notes", "objectClass": "Notes"}
	check(broker.Call(ctx, "registerObjectForStateRestoration", object, &registered))
	expect("register", registered.Path, path)

	check(broker.Notify(ctx, "encodeRestorableState", params{"object": path, "state": params{"draft": true}}))
	var answer decoded
	check(broker.Call(ctx, "decodeRestorableState", params{"object": path}, &answer))
	expect("notify", string(answer.State), `{"draft":true}`)

	var stored struct{ Durability string }
	check(broker.Call(ctx, "encodeRestorableState", params{"object": registered.Object, "state": stateOfNotes()}, &stored))
	expect("encode", stored.Durability, "disk")
	check(broker.Call(ctx, "decodeRestorableState", []any{path}, &answer))
	var found state
	check(json.Unmarshal(answer.State, &found))
	expect("decode", []any{answer.Status, found}, []any{"available", stateOfNotes()})

	var failure *jsonrpc2.Error
	err = broker.Call(ctx, "decodeRestorableState", params{"object": []string{"Missing"}}, &answer)
	if !errors.As(err, &failure) {
		check(fmt.Errorf("no error of the broker: %v", err))
	}
	var data struct{ Kind string }
	check(json.Unmarshal(*failure.Data, &data))
	expect("error -32002 unknownObject", []any{failure.Code, data.Kind}, []any{int64(-32002), "unknownObject"})

	fmt.Println("waiting")
	expect("saved", <-saved, 1)
	var nothing params
	check(broker.Call(ctx, "goodbye", params{"reason": "restart"}, &nothing))
	expect("goodbye", nothing, params{})
	check(broker.Close())
}
