package events_test

import (
	"context"
	"fmt"

	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/bridge/events/pattern"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
)

func ExampleBus() {
	ctx := context.Background()
	engine := memkv.New(nil)
	writer := kv.NewWriter(engine, nil)
	bus := events.New(engine, writer, nil)

	for _, title := range []string{"first", "second"} {
		e := events.Event{Topic: "paper.found", Source: "researcher-1", Payload: fmt.Appendf(nil, "%q", title)}
		stored, err := bus.Emit(ctx, "default", e, events.EmitOptions{})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("stored", stored.Sequence)
	}

	found, err := pattern.Parse("paper.found")
	if err != nil {
		fmt.Println(err)
		return
	}
	seen := uint64(1) // go on behind the first
	sub, err := bus.Subscribe(ctx, "default", []events.Subscribed{{Pattern: found, After: &seen}}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	next, err := sub.Next(ctx)
	fmt.Println(next.Event.Sequence, string(next.Event.Payload), err)

	sub.Close()
	_, _, _ = bus.Close(), writer.Close(), engine.Close()
	// Output:
	// stored 1
	// stored 2
	// 2 "second" <nil>
}
