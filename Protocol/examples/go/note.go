// SPDX-License-Identifier: Apache-2.0

// A note that outlives its process: note IDENTIFIER [PARENT_COMPONENT ...]
//
// Every line on standard input becomes the note. However the program ends, the next one with the same identifier has
// the note again. See ../README.md for the broker's part. Needs only Go's standard library.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
)

const language = "go"

type object = map[string]any

// message is a request, a notification or an answer of the broker.
type message struct {
	ID     *int64          `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string
		Data    struct{ Hint string }
	} `json:"error"`
}

// The connection: JSON-RPC both ways, one message a line.
var (
	connection net.Conn
	messages   = make(chan message)
	lastID     int64
)

var note *string // nothing yet

func state() object { return object{"language": language, "note": *note} }

func fail(status int, lines ...string) {
	fmt.Fprintln(os.Stderr, strings.Join(lines, "\n"))
	os.Exit(status)
}

// lines returns lines of any length, including a last one without a line feed.
func lines(file *os.File) <-chan string {
	lines := make(chan string)
	go func() {
		defer close(lines)
		reader := bufio.NewReader(file)
		for {
			line, err := reader.ReadString('\n')
			if line != "" {
				lines <- strings.TrimSuffix(line, "\n")
			}
			if err != nil {
				return
			}
		}
	}()
	return lines
}

// receive reads messages; the goroutine that waits for one handles it, so that only one goroutine uses the note.
func receive() {
	decoder := json.NewDecoder(connection)
	for {
		var next message
		if decoder.Decode(&next) != nil {
			fail(69, "the broker has ended the connection")
		}
		messages <- next
	}
}

// send ignores errors: reading the next message shows that the connection is lost.
func send(members object) {
	members["jsonrpc"] = "2.0"
	_ = json.NewEncoder(connection).Encode(members)
}

// serve answers the broker, which saves. If there is no note yet, the saved state stays.
func serve(request message) {
	if request.ID == nil {
		return
	}
	if request.Method != "encodeRestorableStateWithCoder" {
		send(object{"id": request.ID, "error": object{"code": -32601, "message": "there is no " + request.Method}})
		return
	}
	var asked struct{ Objects []struct{ Object int64 } }
	_ = json.Unmarshal(request.Params, &asked)
	states := []object{}
	for _, one := range asked.Objects {
		if note == nil {
			states = append(states, object{"object": one.Object, "unchanged": true})
		} else {
			states = append(states, object{"object": one.Object, "state": state()})
		}
	}
	send(object{"id": request.ID, "result": object{"states": states}})
}

// call calls the broker, serves it until the answer comes, and decodes the result unless the target is nil.
func call(method string, params object, result any) {
	lastID++
	send(object{"id": lastID, "method": method, "params": params})
	answer := <-messages
	for answer.Method != "" {
		serve(answer)
		answer = <-messages
	}
	if answer.Error != nil {
		if hint := answer.Error.Data.Hint; hint != "" {
			fail(1, answer.Error.Message, "hint: "+hint)
		}
		fail(1, answer.Error.Message)
	}
	if result != nil {
		_ = json.Unmarshal(answer.Result, result)
	}
}

func environment(name, otherwise string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return otherwise
}

func main() {
	if len(os.Args) < 2 {
		fail(64, "usage: note IDENTIFIER [PARENT_COMPONENT ...]")
	}
	socket := environment("RESTORATIOND_SOCKET", os.Getenv("XDG_RUNTIME_DIR")+"/restorationd/broker.sock")
	var err error
	if connection, err = net.Dial("unix", socket); err != nil {
		var reason syscall.Errno
		errors.As(err, &reason)
		fail(69, fmt.Sprintf("no broker at %s (%v): start restorationd, or set RESTORATIOND_SOCKET", socket, reason))
	}
	go receive()

	session := object{
		"application": environment("RESTORATION_APPLICATION", "org.example.notes"),
		"process":     language,
		"serves":      []string{"encodeRestorableStateWithCoder"},
	}
	if unit := os.Getenv("RESTORATION_UNIT"); unit != "" {
		session["storyboard"] = object{"unit": unit}
	}
	call("initialize", session, nil)
	registration := object{"restorationIdentifier": os.Args[1], "awaitParentMilliseconds": 10000}
	if parent := os.Args[2:]; len(parent) > 0 {
		registration["restorationParent"] = parent
	}
	var registered struct{ Object int64 }
	call("registerObjectForStateRestoration", registration, &registered)
	handle := registered.Object
	var saved struct{ State struct{ Note any } }
	call("decodeRestorableState", object{"object": handle}, &saved)
	// Another program may have saved a state of another form.
	if text, isText := saved.State.Note.(string); isText {
		note = &text
		fmt.Println("restored: " + *note)
	} else {
		fmt.Println("new")
	}
	call("completeStateRestoration", object{}, nil)

	typed := lines(os.Stdin)
	for isOver := false; !isOver; {
		select {
		case request := <-messages:
			serve(request)
		case line, isOpen := <-typed:
			if isOver = !isOpen || line == "quit"; !isOver {
				note = &line
				fmt.Println("noted: " + *note)
				call("invalidateRestorableState", object{"object": handle}, nil)
			}
		}
	}
	// After goodbye the broker would not ask for a note that was typed a moment ago.
	if note != nil {
		call("encodeRestorableState", object{"object": handle, "state": state()}, nil)
	}
	call("goodbye", object{"reason": "restart"}, nil)
}
