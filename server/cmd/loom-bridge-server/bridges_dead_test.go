package main

import (
	"context"
	"slices"
	"testing"

	"github.com/loom-bridge/loom-bridge/internal/testkit/pgtest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// Clients of a server that was killed go on at another one before the dead server's lease has
// run out: it is still listed when all of their calls have been answered.
//
// Z01
func TestKilledServerHoldsNoClientUp(t *testing.T) {
	t.Parallel()
	for _, mesh := range []string{"off", "embedded"} {
		t.Run(mesh, func(t *testing.T) {
			t.Parallel()
			store := postgresPlace(t, pgtest.Address(t))
			args := []string{"--workspace-shared", "--mesh", mesh}
			lives := MustBridge(t, store, "lives", args...)
			for range 5 { // a slow machine may need longer than the lease
				dead := MustBridgeApart(t, store, "dead", args...)
				lives.listed(t, "dead", "lives")
				goOn(t, &dead.process, false)
				dead.Kill(t)
				goOn(t, lives, mesh != "off")
				if slices.ContainsFunc(lives.bridges(t), func(b *loombridgev1.BridgeStatus) bool { return b.GetName() == "dead" }) {
					return
				}
				lives.listed(t, "lives")
			}
			t.Error("the calls of the dead server's clients waited for its lease to run out")
		})
	}
}

// goOn makes the calls of an agent at a server, and of one that asks a tool of the agent, where
// the two could have been apart.
func goOn(t *testing.T, at *process, apart bool) {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	if apart { // the tool's agent has not come back from the dead server
		got, err := at.bridge().Tool(ctx, &loombridgev1.ToolRequest{AgentId: "asks", Name: "walk", ArgumentsForm: &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: `{}`}})
		if err == nil && got.GetSuccess() {
			t.Error("a tool of an agent that is gone ran")
		}
	}
	at.attach(ctx, t, "walker", []string{"news"}, "walk")
	save(t, at, "tides follow the moon")
	if hits(t, at, "moon") == 0 {
		t.Error("what was saved is not found")
	}
	at.MustRecord(t, "s", "my:tool", `{}`, "done")
	_, err := at.bridge().Emit(ctx, emitOf("a", "news", "it is so"))
	must(t, err)
	_, err = at.bridge().Emit(ctx, emitOf("a", "agent/walker", "go"))
	must(t, err)
	got, err := at.bridge().Tool(ctx, &loombridgev1.ToolRequest{AgentId: "a", SessionId: "s", Name: "fs:list_dir", ArgumentsForm: &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: `{"path":"."}`}})
	if must(t, err); !got.GetSuccess() {
		t.Errorf("a tool call: %v", got)
	}
	_, err = at.context().Assemble(ctx, &loombridgev1.AssembleRequest{AgentId: "a", SessionId: "s", Goal: "see the moon"})
	must(t, err)
}
