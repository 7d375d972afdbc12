package agents_test

import (
	"context"
	"fmt"

	"github.com/loom-bridge/loom-bridge/bridge/agents"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
)

// One agent calls a tool of another.
func Example() {
	engine := memkv.New(nil)
	defer engine.Close()
	writer := kv.NewWriter(engine, nil)
	defer writer.Close()
	directory := agents.New(engine, writer, nil)
	defer directory.Close()

	registration := agents.Registration{Tools: []agents.ProvidedTool{{Name: "shout"}}}
	if _, err := directory.Register("default", "helper", registration); err != nil {
		fmt.Println(err)
		return
	}
	link, err := directory.Open("default", "helper", agents.OpenOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	go func() {
		for call := range link.Calls() {
			link.Complete(call.ID, agents.ToolResult{Output: call.Arguments + "!"})
		}
	}()
	call := agents.ToolCall{Name: "shout", Arguments: `"hello"`, CallerID: "other"}
	result, err := directory.Call(context.Background(), "default", call)
	fmt.Println(result.Output, err)
	link.Close()
	_, err = directory.Call(context.Background(), "default", call)
	fmt.Println(err)
	// Output:
	// "hello"! <nil>
	// agent helper is not connected
}
