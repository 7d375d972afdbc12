package main

import (
	"context"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/loom-bridge/loom-bridge/bridge/cluster/registry"
	"github.com/loom-bridge/loom-bridge/internal/testkit/pgtest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// mustBeNoted waits until the store says of children that they are attached.
func mustBeNoted(t *testing.T, store string, children ...string) {
	t.Helper()
	place, err := url.Parse(store)
	must(t, err)
	admin, err := pgx.Connect(t.Context(), pgtest.Address(t))
	must(t, err)
	defer admin.Close(context.Background())
	for _, child := range children {
		waitUntil(t, "it is noted that the child is attached", func() bool {
			var noted int
			must(t, admin.QueryRow(t.Context(), `SELECT count(*) FROM `+place.Query().Get("schema")+`.system WHERE position('`+child+`\000v'::bytea IN key) > 0`).Scan(&noted))
			return noted == 1
		})
	}
}

// A server that starts beside others does not take their agents' children for lost, which
// are attached there.
func TestBridgesLeaveChildren(t *testing.T) {
	t.Parallel()
	store := postgresPlace(t, pgtest.Address(t))
	a := MustBridge(t, store, "a", "--workspace-shared")
	spawn := func(p *process, child string, timeout time.Duration) {
		t.Helper()
		_, err := p.context().SpawnAgent(t.Context(), &loombridgev1.SpawnAgentRequest{AgentId: "a", ChildId: child, Goal: "work", Limits: &loombridgev1.ChildLimits{Timeout: durationpb.New(timeout)}})
		must(t, err)
	}
	spawn(a, "kept", 10*time.Minute)
	stream, err := a.bridge().Attach(t.Context())
	must(t, err)
	must(t, stream.Send(&loombridgev1.AttachRequest{Item: &loombridgev1.AttachRequest_Hello{Hello: &loombridgev1.AttachHello{AgentId: "kept"}}}))
	_, err = stream.Recv()
	must(t, err)
	mustBeNoted(t, store, "kept")
	b := MustRunWith(t, t.TempDir(), func(c *Config) { c.ChildGrace = time.Millisecond }, "--store", store, "--bridge-name", "b", "--workspace-shared")
	spawn(b, "late", time.Second) // by the end of it the other one would have been lost
	ended, err := b.context().WaitAgents(t.Context(), &loombridgev1.WaitAgentsRequest{AgentId: "a", ChildIds: []string{"late"}, Timeout: durationpb.New(20 * time.Second)})
	must(t, err)
	all, err := a.context().WaitAgents(t.Context(), &loombridgev1.WaitAgentsRequest{AgentId: "a"})
	must(t, err)
	if len(ended.GetPending()) > 0 || !slices.Equal(all.GetPending(), []string{"kept"}) {
		t.Errorf("%v; pending: %v, want the child that is attached elsewhere", ended, all.GetPending())
	}
}

// A child of a server that is killed is given its result at its deadline by one that was
// started before it was spawned, and whoever waits for it there hears so.
//
// Z28
func TestBridgesTakeChildrenUpSoak(t *testing.T) {
	t.Parallel()
	store := postgresPlace(t, pgtest.Address(t))
	b := MustBridge(t, store, "b")
	a := MustBridgeApart(t, store, "a")
	_, err := a.context().SpawnAgent(t.Context(), &loombridgev1.SpawnAgentRequest{
		AgentId: "parent", ChildId: "orphan", Goal: "work", Limits: &loombridgev1.ChildLimits{Timeout: durationpb.New(2 * time.Second)},
	})
	must(t, err)
	a.Kill(t)
	got, err := b.context().WaitAgents(t.Context(), &loombridgev1.WaitAgentsRequest{
		AgentId: "parent", ChildIds: []string{"orphan"}, Timeout: durationpb.New(2 * registry.Term),
	})
	must(t, err)
	if len(got.GetChildren()) != 1 || len(got.GetPending()) > 0 || got.GetChildren()[0].GetStatus() != loombridgev1.ChildStatus_CHILD_STATUS_FAILED {
		t.Errorf("the parent hears %v", got)
	}
	steps, err := b.context().ListSteps(t.Context(), &loombridgev1.ListStepsRequest{AgentId: "parent"})
	must(t, err)
	if len(steps.GetSteps()) != 2 { // that of the spawn, and that of the result
		t.Errorf("%d steps of the parent", len(steps.GetSteps()))
	}
}

// A child that was attached to a server which is killed beside others has the grace to come
// back. One that does not gets its result as disconnected, though other servers live to which
// it could be attached; one that comes back at another server is left alone.
//
// Z43
func TestBridgesEndOrphansSoak(t *testing.T) {
	t.Parallel()
	store := postgresPlace(t, pgtest.Address(t))
	grace := func(c *Config) { c.ChildGrace = 3 * time.Second }
	of := func(name string) []string { return []string{"--store", store, "--bridge-name", name} }
	a, b, c := MustBridgeApart(t, store, "a"), MustRunWith(t, t.TempDir(), grace, of("b")...), MustRunWith(t, t.TempDir(), grace, of("c")...)
	for _, child := range []string{"orphan", "moved"} {
		_, err := a.context().SpawnAgent(t.Context(), &loombridgev1.SpawnAgentRequest{
			AgentId: "parent", ChildId: child, Goal: "work", Limits: &loombridgev1.ChildLimits{Timeout: durationpb.New(10 * time.Minute)},
		})
		must(t, err)
		a.attach(t.Context(), t, child, nil)
	}
	mustBeNoted(t, store, "orphan", "moved")
	a.Kill(t)
	c.attach(t.Context(), t, "moved", nil)
	got, err := b.context().WaitAgents(t.Context(), &loombridgev1.WaitAgentsRequest{
		AgentId: "parent", ChildIds: []string{"orphan"}, Timeout: durationpb.New(4 * registry.Term),
	})
	must(t, err)
	if len(got.GetChildren()) != 1 || len(got.GetPending()) > 0 || got.GetChildren()[0].GetError() != "disconnected" {
		t.Errorf("the parent hears %v", got)
	}
	for _, p := range []*process{b, c} {
		all, err := p.context().WaitAgents(t.Context(), &loombridgev1.WaitAgentsRequest{AgentId: "parent", ChildIds: []string{"moved"}, Timeout: durationpb.New(4 * time.Second)})
		must(t, err)
		if !slices.Equal(all.GetPending(), []string{"moved"}) {
			t.Errorf("the child that came back: %v", all)
		}
	}
}
