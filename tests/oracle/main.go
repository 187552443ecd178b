// The oracle: reference implementations behind one small protocol, for differential tests.
//
// One JSON request a line on stdin, {"op": "...", ...}; one JSON answer a line on stdout, {"ok": ...} or
// {"error": "..."}. Answers come in the order of the requests. It ends with its input.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
)

// An operation reads its own fields from the whole request.
type operation func(request json.RawMessage) (any, error)

// Each file of the package registers its operations here.
var operations = map[string]operation{}

func answer(line []byte) (result any) {
	defer func() {
		if cause := recover(); cause != nil {
			result = map[string]string{"error": fmt.Sprintf("panic: %v", cause)}
		}
	}()
	var head struct {
		Op string `json:"op"`
	}
	if err := json.Unmarshal(line, &head); err != nil {
		return map[string]string{"error": "request: " + err.Error()}
	}
	run, known := operations[head.Op]
	if !known {
		return map[string]string{"error": "no such operation: " + head.Op}
	}
	value, err := run(line)
	if err != nil {
		return map[string]string{"error": err.Error()}
	}
	return map[string]any{"ok": value}
}

func main() {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := bufio.NewWriterSize(os.Stdout, 1<<20)
	encode := json.NewEncoder(out)
	encode.SetEscapeHTML(false)
	for {
		line, err := in.ReadBytes('\n')
		if len(line) > 1 {
			if failed := encode.Encode(answer(line)); failed != nil {
				_ = encode.Encode(map[string]string{"error": "answer: " + failed.Error()})
			}
			// Flush only when no further request waits: thousands of pipelined cases cost few writes.
			if in.Buffered() == 0 {
				_ = out.Flush()
			}
		}
		if err != nil {
			_ = out.Flush()
			return
		}
	}
}
