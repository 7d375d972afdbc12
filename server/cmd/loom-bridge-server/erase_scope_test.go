package main

import (
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/loom-bridge/loom-bridge/bridge/erasure"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// eraseScope erases a subject on a running server.
func (p *process) eraseScope(t *testing.T, subject *loombridgev1.EraseSubject, dry bool) (*loombridgev1.EraseResult, error) {
	t.Helper()
	stream, err := p.memory().EraseScope(t.Context(), &loombridgev1.EraseScopeRequest{Subject: subject, DryRun: dry})
	if err != nil {
		return nil, err
	}
	var result *loombridgev1.EraseResult
	for {
		got, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return result, nil
		case err != nil:
			return nil, err
		}
		result = got.GetResult()
	}
}

func erasedAgent(id string) *loombridgev1.EraseSubject {
	return &loombridgev1.EraseSubject{Owner: &loombridgev1.EraseSubject_AgentId{AgentId: id}}
}

// What a running server has erased is in no file of its store when it says so, also when it
// was killed on the way and the next one has gone on: canaries of all kinds, in tables, logs
// and blob files. All else is as it was, the offline command finds nothing of the agent, and
// a certificate of before holds.
//
// Y28
func TestEraseScope(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store := filepath.Join(dir, "store")
	child := MustStartChild(t, dir)
	p := &process{conn: MustDial(t, child.Address)}
	kept := plantRecords(t, p, "b", "", "48", 10)
	c := plant(t, p, "a", "s", "box", 1)
	lines := memoryLines(t, p, "b", "", nil)
	counted, err := p.eraseScope(t, erasedAgent("a"), true)
	must(t, err)
	begun := make(chan struct{})
	go func() {
		defer close(begun)
		_, _ = p.eraseScope(t, erasedAgent("a"), false) // it is cut off, or through before that
	}()
	select {
	case <-begun:
	case <-time.After(rand.N(300 * time.Millisecond)):
	}
	must(t, child.Process.Kill())
	_ = child.Wait()
	<-begun
	if have := kept.found(t, copyOf(t, store)); len(have) < 5 {
		t.Fatalf("of the neighbour's canaries %v are found", have)
	}

	p = MustRun(t, dir)
	done, err := p.eraseScope(t, erasedAgent("a"), false)
	switch {
	case status.Code(err) == codes.NotFound: // it had gone on by itself, or was through before
	case err != nil:
		t.Fatal(err)
	case !maps.Equal(done.GetCounts(), counted.GetCounts()) || done.GetBytesState() != loombridgev1.EraseBytesState_ERASE_BYTES_STATE_RECLAIMED:
		t.Errorf("erased were %v, a dry run found %v", done, counted)
	}
	if after := c.found(t, copyOf(t, store)); sum(after) != 0 {
		t.Errorf("in files of the running server are %v", after)
	}
	if now := memoryLines(t, p, "b", "", nil); len(lines) == 0 || !slices.Equal(now, lines) {
		t.Errorf("b exports %d lines, before %d", len(now), len(lines))
	}
	must(t, p.Stop())
	if have := kept.logical(t, store); len(have) < len(kept)*9/10 {
		t.Errorf("of the neighbour's %d canaries %d are left", len(kept), len(have))
	}
	if said, err := loomCommand(t, "check", "--data-dir", store); err != nil || !strings.HasSuffix(said, "nothing is damaged\n") {
		t.Errorf("check: %v: %s", err, said)
	}
	erase := func(out string, flags ...string) (string, error) {
		return loomCommand(t, append([]string{"erase", "--agent", "a", "--key", filepath.Join(dir, "k"), "--out", filepath.Join(dir, out), "--data-dir", store}, flags...)...)
	}
	if _, err := erase("none.json"); !errors.Is(err, erasure.ErrNothing) {
		t.Errorf("the command finds something: %v", err)
	}
	_, err = erase("absent.json", "--certify-absence")
	must(t, err)
	p = MustRun(t, dir)
	save(t, p, "a seal, anew")
	_, err = p.eraseScope(t, erasedAgent("a"), false)
	must(t, err)
	must(t, p.Stop())
	_, err = loomCommand(t, "erase", "verify", "--changed", filepath.Join(dir, "absent.json"), "--data-dir", store)
	must(t, err)
}
