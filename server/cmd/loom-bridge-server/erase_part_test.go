package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"github.com/loom-bridge/loom-bridge/bridge/erasure"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// plantRecords saves records of a case with canaries in texts, metadata, vectors, versions,
// tags and keys, in an agent's memory or a person's.
func plantRecords(t *testing.T, p *process, agent, user, of string, n int) canaries {
	t.Helper()
	c, ctx := make(canaries), t.Context()
	last := ""
	for i := range n {
		request := &loombridgev1.MemorySaveRequest{
			AgentId: agent, UserId: user, Text: "The seal is " + c.text("texts"), Tags: []string{c.text("tags")}, Key: c.text("keys"), Id: c.text("ids"),
			MetadataForm: &loombridgev1.MemorySaveRequest_MetadataJson{MetadataJson: fmt.Sprintf(`{"case":%q,"seal":%q}`, of, c.text("metadata"))},
		}
		if user == "" { // of a person's memory a hash is kept
			request.RequestId = c.text("request ids")
		}
		if i > 0 {
			request.Relations = []*loombridgev1.RelationTo{{Name: "r" + c.text("relations"), ToId: last}}
		}
		if i%2 == 0 {
			request.Embedding, request.EmbeddingSpace = c.vector(8), "mine"
		}
		switch i % 5 {
		case 1:
			request.DerivedFrom = []string{last}
		case 2:
			request.Supersedes = last
		}
		saved, err := p.bridge().MemorySave(ctx, request)
		must(t, err)
		last = saved.GetId()
		if i%3 == 0 {
			_, err := p.memory().UpdateRecord(ctx, &loombridgev1.UpdateRecordRequest{
				AgentId: agent, UserId: user, Name: &loombridgev1.UpdateRecordRequest_Id{Id: last},
				Record: &loombridgev1.MemorySaveRequest{Text: "It was " + c.text("versions")}, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"text"}},
			})
			must(t, err)
		}
	}
	return c
}

// memoryLines are the lines of a memory without those that hold one of some texts.
func memoryLines(t *testing.T, p *process, agent, user string, without canaries) []string {
	t.Helper()
	stream, err := p.transfer().Export(t.Context(), &loombridgev1.ExportRequest{AgentId: agent, UserId: user})
	must(t, err)
	var all []string
	for {
		got, err := stream.Recv()
		if err != nil {
			break
		}
		for _, line := range got.GetLines() {
			if !slices.ContainsFunc(slices.Collect(maps.Keys(without)), func(name string) bool { return strings.Contains(line, name) }) {
				all = append(all, line)
			}
		}
	}
	return all
}

// part is a subject of an erasure, and what goes and stays of a store.
type part struct {
	name       string
	flags      []string
	dir        string
	gone, kept canaries
}

// sessionPart is a store with two sessions of an agent, of which one goes.
func sessionPart(t *testing.T, hundredth int) part {
	dir := t.TempDir()
	p, camera := mustServeCamera(t, dir)
	s := part{name: "session", flags: []string{"--agent", "a", "--session", "s"}, dir: dir}
	s.gone = plant(t, p, "a", "s", "b", hundredth)
	s.kept = plant(t, p, "a", "other", "b", hundredth)
	camera.plant(t, p, "a", "s", s.gone, 5*hundredth)
	camera.plant(t, p, "a", "other", s.kept, 5*hundredth)
	must(t, p.Stop())
	return s.settled(t)
}

// filterPart is a store with records that a filter lets through, of an agent, a person, or
// all of a tenant.
func filterPart(t *testing.T, of string, n int) part { return recordsPart(t, of, true, n) }

// recordsPart is a store with records, of which some go that are the agent's, the person's
// or the tenant's: all of them, or those that a filter lets through.
func recordsPart(t *testing.T, of string, filtered bool, n int) part {
	dir := t.TempDir()
	p := MustRun(t, dir)
	s := part{name: of + " filter", flags: []string{"--" + of, "a", "--filter", `metadata.case = "47"`}, dir: dir, gone: make(canaries), kept: make(canaries)}
	if of == "whole-tenant" {
		s.flags = []string{"--whole-tenant", "--filter", `metadata.case = "47"`}
	}
	if !filtered {
		s.name, s.flags = of, s.flags[:len(s.flags)-2]
	}
	for _, memory := range [][2]string{{"a", ""}, {"a", "a"}, {"b", ""}} {
		all := s.kept
		if of == "whole-tenant" || (of == "user") == (memory[1] != "") && memory[0] == "a" {
			all = s.gone
		}
		maps.Copy(all, plantRecords(t, p, memory[0], memory[1], "47", n))
		if filtered {
			all = s.kept
		}
		maps.Copy(all, plantRecords(t, p, memory[0], memory[1], "48", n/2))
	}
	// Prompts show the records, and are recorded.
	_, err := p.context().Assemble(t.Context(), &loombridgev1.AssembleRequest{
		AgentId: "a", SessionId: "s", Goal: "What is the seal?", MaxTokens: 100_000, Settings: &loombridgev1.PromptSettings{UserId: "a"},
	})
	must(t, err)
	must(t, p.Stop())
	return s.settled(t)
}

// settled leaves out of what stays what is there no more, such as the vector of a text that
// was changed, and answers of requests: of which session or record they are nothing says.
func (s part) settled(t *testing.T) part {
	t.Helper()
	s.kept = s.kept.logical(t, filepath.Join(s.dir, "store"))
	for name, where := range s.kept {
		if where == "request ids" {
			delete(s.kept, name)
		}
	}
	return s
}

func (s part) erase(t *testing.T, store, name string, more ...string) (out string, err error) {
	t.Helper()
	out = filepath.Join(filepath.Dir(store), name)
	_, err = loomCommand(t, slices.Concat([]string{"erase", "--key", filepath.Join(filepath.Dir(store), "k"), "--out", out, "--data-dir", store}, s.flags, more)...)
	return out, err
}

// Of a session, and of records that a filter lets through, no table, log or blob file has
// anything after the certificate; what else the agent, the person and the tenant have is as
// it was. The certificate fails for a store that was tampered with, and lists backups.
//
// Y24, Y25, Y26
func TestErasePartSoak(t *testing.T) {
	t.Parallel()
	for _, s := range []part{sessionPart(t, sized(2, 10)), filterPart(t, "agent", sized(54, 270)), filterPart(t, "user", sized(54, 270)), filterPart(t, "whole-tenant", sized(20, 100))} {
		t.Run(s.name, func(t *testing.T) {
			store := filepath.Join(s.dir, "store")
			before, kept := s.gone.found(t, store), s.kept.found(t, store)
			if len(s.gone) < sized(200, 1000) || sum(before) != len(s.gone) || sum(kept) != len(s.kept) {
				t.Fatalf("of %d and %d canaries %d and %d were found before: of %v only %v", len(s.gone), len(s.kept), sum(before), sum(kept), s.gone.where(), before)
			}
			p := MustRun(t, s.dir)
			lines := [][]string{memoryLines(t, p, "a", "", s.gone), memoryLines(t, p, "a", "a", s.gone), memoryLines(t, p, "b", "", s.gone)}
			must(t, p.Stop())
			copies := filepath.Join(t.TempDir(), "copies")
			_, err := loomCommand(t, "backup", "create", "--offline", "--data-dir", store, "--backup-dir", copies)
			must(t, err)

			out, err := s.erase(t, store, "out.json", "--backup-dir", copies)
			must(t, err)
			after := s.gone.found(t, store)
			t.Logf("of %d canaries found before %v, after %v; of %d others %d", len(s.gone), before, after, len(s.kept), sum(s.kept.found(t, store)))
			if sum(after) != 0 || sum(s.kept.found(t, store)) != len(s.kept) {
				t.Errorf("found after: %v; others before %v, after %v", after, kept, s.kept.found(t, store))
			}
			var c erasure.Certificate
			must(t, json.Unmarshal(mustRead(t, out), &c))
			if len(c.Backups) != 1 || c.TimeTravel == "" || len(c.Records) == 0 || c.RecordsAnew == 0 || c.Subject.Session+c.Subject.Filter == "" {
				t.Errorf("the certificate is %+v", c)
			}
			verify := func(flags ...string) error {
				_, err := loomCommand(t, append([]string{"erase", "verify", out, "--data-dir", store}, flags...)...)
				return err
			}
			must(t, verify())
			if said, err := loomCommand(t, "check", "--data-dir", store); err != nil {
				t.Errorf("check: %v: %s", err, said)
			}
			file := c.Files[rand.N(len(c.Files))]
			for whole := []byte(nil); len(whole) == 0; file = c.Files[rand.N(len(c.Files))] {
				path := filepath.Join(store, file.Name)
				if whole = mustRead(t, path); len(whole) == 0 {
					continue
				}
				broken := bytes.Clone(whole)
				broken[rand.N(len(broken))] ^= 1
				must(t, os.WriteFile(path, broken, 0o600))
				if err := verify(); !errors.Is(err, erasure.ErrNotTrue) {
					t.Errorf("%s with another bit: %v", file.Name, err)
				}
				must(t, os.WriteFile(path, whole, 0o600))
			}

			p = MustRun(t, s.dir)
			for i, now := range [][]string{memoryLines(t, p, "a", "", nil), memoryLines(t, p, "a", "a", nil), memoryLines(t, p, "b", "", nil)} {
				if !slices.Equal(now, lines[i]) {
					t.Errorf("memory %d had %d lines and has %d", i, len(lines[i]), len(now))
				}
			}
			found, err := p.bridge().MemoryQuery(t.Context(), &loombridgev1.MemoryQueryRequest{AgentId: "a", Query: "seal", Limit: 50})
			must(t, err)
			for _, hit := range found.GetHits() {
				for name := range s.gone {
					if strings.Contains(hit.String(), name) {
						t.Errorf("%s is found", name)
					}
				}
			}
			s.goesOn(t, p)
			must(t, p.Stop())
			must(t, verify("--changed"))
		})
	}
}

// goesOn looks at what the server still has of the agent.
func (s part) goesOn(t *testing.T, p *process) {
	t.Helper()
	save(t, p, "a seal, anew")
	if hits(t, p, "anew") == 0 {
		t.Error("what is saved anew is not found")
	}
	if s.name != "session" {
		return
	}
	steps := func(session string) int {
		listed, err := p.context().ListSteps(t.Context(), &loombridgev1.ListStepsRequest{AgentId: "a", SessionId: session})
		must(t, err)
		return len(listed.GetSteps())
	}
	if steps("s") != 0 || steps("other") == 0 {
		t.Errorf("the sessions have %d and %d steps", steps("s"), steps("other"))
	}
	prompt, err := p.context().Assemble(t.Context(), &loombridgev1.AssembleRequest{AgentId: "a", SessionId: "other", MaxTokens: 100_000})
	must(t, err)
	if !strings.Contains(prompt.String(), "canary") {
		t.Error("the other session's prompt is empty")
	}
}

// What can't be a session or a filter changes nothing.
//
// Y24, Y25
func TestErasePartRefuses(t *testing.T) {
	t.Parallel()
	s := sessionPart(t, 1)
	store := filepath.Join(s.dir, "store")
	files, err := erasure.Files(t.Context(), store)
	must(t, err)
	for _, flags := range [][]string{
		{"--agent", "a", "--session", ""},
		{"--agent", "a", "--filter", ""},
		{"--agent", "a", "--filter", "what ="},
		{"--agent", "a", "--filter", "nothing = 1"},
		{"--agent", "a", "--session", "s", "--filter", "kind = \"fact\""},
		{"--user", "a", "--session", "s"},
		{"--whole-tenant", "--session", "s"},
		{"--agent", "a", "--session", "s\x00"},
		{"--agent", "a", "--session", strings.Repeat("s", 300)},
	} {
		s.flags = flags
		_, err := s.erase(t, store, "o.json")
		bad, ok := errors.AsType[*ConfigError](err)
		if !ok || flags[len(flags)-2] != "--"+bad.Field && (bad.Field != "session" || !slices.Contains(flags, "--session")) {
			t.Errorf("%q: %v", flags, err)
		}
	}
	if after, err := erasure.Files(t.Context(), store); err != nil || !slices.Equal(files, after) {
		t.Errorf("the store has changed: %v", err)
	}
}

// Relations between what goes and what stays go: under both ends, and out of the names of
// both. What stays keeps those among itself.
//
// Y21, Y25
func TestErasePartEndsRelations(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := MustRun(t, dir)
	gone := make(canaries)
	for _, r := range []*loombridgev1.MemorySaveRequest{
		{Id: "stay-1", Text: "what stays"},
		{Id: gone.text("ids"), Text: "goes", Tags: []string{"x"}, Relations: []*loombridgev1.RelationTo{{Name: "r" + gone.text("names"), ToId: "stay-1"}}},
		{Id: "stay-2", Text: "what stays, too", Relations: []*loombridgev1.RelationTo{{Name: "next", ToId: "stay-1"}}},
	} {
		r.AgentId = "a"
		_, err := p.bridge().MemorySave(t.Context(), r)
		must(t, err)
	}
	for id, where := range gone {
		if where == "ids" {
			ended := &loombridgev1.Relation{FromId: "stay-1", Name: "r" + gone.text("names of ended"), ToId: id}
			_, err := p.memory().RelateRecords(t.Context(), &loombridgev1.RelateRecordsRequest{AgentId: "a", Relations: []*loombridgev1.Relation{ended, {FromId: "stay-2", Name: "r" + gone.text("names"), ToId: id}}})
			must(t, err)
			_, err = p.memory().UnrelateRecords(t.Context(), &loombridgev1.UnrelateRecordsRequest{AgentId: "a", Relations: []*loombridgev1.Relation{ended}})
			must(t, err)
		}
	}
	must(t, p.Stop())
	store := filepath.Join(dir, "store")
	if before := gone.found(t, store); sum(before) != len(gone) {
		t.Fatalf("before: %v", before)
	}
	s := part{flags: []string{"--agent", "a", "--filter", `tags:"x"`}}
	out, err := s.erase(t, store, "out.json")
	must(t, err)
	if after := gone.found(t, store); sum(after) != 0 {
		t.Errorf("after: %v", after)
	}
	_, err = loomCommand(t, "erase", "verify", out, "--data-dir", store)
	must(t, err)
	if said, err := loomCommand(t, "check", "--data-dir", store); err != nil {
		t.Errorf("check: %v: %s", err, said)
	}
	p = MustRun(t, dir)
	got, err := p.memory().ListRelations(t.Context(), &loombridgev1.ListRelationsRequest{AgentId: "a", Name: &loombridgev1.ListRelationsRequest_Id{Id: "stay-2"}})
	must(t, err)
	if r := got.GetRelations(); len(r) != 1 || r[0].GetName() != "next" || r[0].GetToId() != "stay-1" {
		t.Errorf("left: %v", r)
	}
}
