package hand_test

import (
	"context"
	"fmt"
	"os"

	"github.com/loom-bridge/loom-bridge/bridge/hand"
	"github.com/loom-bridge/loom-bridge/bridge/native"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
)

func ExampleHand_Call() {
	engine := memkv.New(nil)
	writer := kv.NewWriter(engine, nil)
	blobs := blob.New(engine, writer, nil)
	registry := tools.NewRegistry(nil)
	_ = native.Register(registry, nil)
	dir, _ := os.MkdirTemp("", "workspace")
	defer os.RemoveAll(dir)
	folders, _ := hand.OpenFolders(dir, nil)
	defer folders.Close()

	h := hand.New(hand.Deps{
		Tools:      tools.NewCatalogue(registry, nil),
		Log:        session.New(engine, writer, nil),
		Blobs:      blobs,
		Reducer:    step.NewReducer(nil),
		Engine:     engine,
		Writer:     writer,
		Workspaces: folders,
	}, nil)
	answer, err := h.Call(context.Background(), hand.Request{
		Scope: kv.AgentScope("default", "researcher"),
		Name:  "fs:write_file",
		Args:  []byte(`{"path": "notes.txt", "content": "hello"}`),
	})
	fmt.Println(err, answer.Recorded, answer.Step.ID(), string(answer.Output))
	fmt.Println(answer.Observation)
	// Output:
	// <nil> true step_001 {"bytes_written":5,"path":"notes.txt","success":true}
	// Wrote notes.txt (5 bytes)
}
