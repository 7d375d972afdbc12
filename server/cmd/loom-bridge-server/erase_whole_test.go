package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/loom-bridge/loom-bridge/bridge/erasure"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// camera is a tool of an MCP server that gives images.
type camera struct {
	image []byte // the next one
}

// mustServeCamera starts a server that has a camera.
func mustServeCamera(t *testing.T, dir string) (*process, *camera) {
	t.Helper()
	c := &camera{}
	server := sdk.NewServer(&sdk.Implementation{Name: "camera", Version: "1"}, nil)
	server.AddTool(&sdk.Tool{Name: "photograph", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "a picture"}, &sdk.ImageContent{Data: c.image, MIMEType: "image/png"}}}, nil
	})
	there := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil))
	t.Cleanup(there.Close)
	p := MustServe(t, dir, object{"camera": object{"url": there.URL}})
	p.waitFor(t, "camera:photograph")
	return p, c
}

// plant has an agent take pictures, each with a canary in its bytes.
func (c *camera) plant(t *testing.T, p *process, agent, session string, planted canaries, n int) {
	t.Helper()
	for i := range n {
		seal := make([]byte, 12)
		for j := range seal {
			seal[j] = byte(rand.IntN(256))
		}
		// Images are kept as they came over MCP, as base64.
		planted[base64.StdEncoding.EncodeToString(seal)] = "media"
		c.image = slices.Concat(seal, picture(8+i, 8))
		got, err := p.bridge().Tool(t.Context(), &loombridgev1.ToolRequest{
			AgentId: agent, SessionId: session, Name: "camera:photograph", ArgumentsForm: &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: `{}`},
		})
		must(t, err)
		if !got.GetSuccess() {
			t.Fatalf("no picture: %s", got.GetErrorMessage())
		}
	}
}

// everyCall is a token that every call of a connection has.
type everyCall string

func (b everyCall) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(b)}, nil
}

func (everyCall) RequireTransportSecurity() bool { return false }

// withToken is a server as the holder of a token calls it.
func (p *process) withToken(t *testing.T, token string) *process {
	t.Helper()
	conn, err := grpc.NewClient(p.Address, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithPerRPCCredentials(everyCall(token)))
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return &process{conn: conn, Address: p.Address}
}

// tenantPart is a store of two tenants, of which one goes.
func tenantPart(t *testing.T, hundredth int) part {
	dir := t.TempDir()
	callers := filepath.Join(dir, "callers.toml")
	var text []byte
	for _, tenant := range []string{"t", "other"} {
		text = fmt.Appendf(text, "[[credential]]\ntoken_sha256 = %q\ntenant = %q\nagents = [\"*\"]\nreads_users = [\"*\"]\nwrites_users = [\"*\"]\n", hashOf(tenant), tenant)
	}
	must(t, os.WriteFile(callers, text, 0o600))
	server := MustRun(t, dir, "--credentials", callers)
	s := part{name: "whole-tenant", flags: []string{"--whole-tenant", "--tenant", "t"}, dir: dir, gone: make(canaries), kept: make(canaries)}
	for _, tenant := range []string{"t", "other"} {
		p, all := server.withToken(t, tenant), s.gone
		if tenant == "other" {
			all = s.kept
		}
		maps.Copy(all, plant(t, p, "a", "s", "b", hundredth))
		maps.Copy(all, plantRecords(t, p, "a", "a", "47", 5*hundredth))
	}
	must(t, server.Stop())
	return s.settled(t)
}

// All of a person's memory goes, and all of a tenant, whatever others have.
//
// Y23
func TestEraseWholeSoak(t *testing.T) {
	t.Parallel()
	for _, s := range []part{recordsPart(t, "user", false, sized(40, 200)), tenantPart(t, sized(2, 9))} {
		t.Run(s.name, func(t *testing.T) {
			store := filepath.Join(s.dir, "store")
			before, kept := s.gone.found(t, store), s.kept.found(t, store)
			if len(s.gone) < sized(200, 1000) || sum(before) != len(s.gone) || len(kept) == 0 || sum(kept) != len(s.kept) {
				t.Fatalf("of %d and %d canaries %d and %d were found before: of %v only %v", len(s.gone), len(s.kept), sum(before), sum(kept), s.gone.where(), before)
			}
			out, err := s.erase(t, store, "out.json")
			must(t, err)
			after := s.gone.found(t, store)
			t.Logf("of %d canaries found before %v, after %v; of %d others %d", len(s.gone), before, after, len(s.kept), sum(s.kept.found(t, store)))
			if sum(after) != 0 || sum(s.kept.found(t, store)) != len(s.kept) {
				t.Errorf("found after: %v; others before %v, after %v", after, kept, s.kept.found(t, store))
			}
			_, err = loomCommand(t, "erase", "verify", out, "--data-dir", store)
			must(t, err)
			if said, err := loomCommand(t, "check", "--data-dir", store); err != nil {
				t.Errorf("check: %v: %s", err, said)
			}
		})
	}
}

// Words of records that were deleted, which pieces of the index still have, go with what is
// erased of the memory: all of the agent, or records that a filter lets through.
//
// Y23, Y25
func TestEraseDeletedWordsSoak(t *testing.T) {
	t.Parallel()
	for name, flags := range map[string][]string{
		"agent": {"--agent", "a"}, "filter": {"--agent", "a", "--filter", `metadata.case = "47"`},
		"session": {"--agent", "a", "--session", "s"}, "tenant": {"--whole-tenant"},
	} {
		t.Run(name, func(t *testing.T) {
			s := part{dir: t.TempDir(), flags: flags}
			store := filepath.Join(s.dir, "store")
			p := MustRun(t, s.dir)
			c, ids := make(canaries), []string(nil)
			for range 8 {
				r := &loombridgev1.BatchSaveRequest{AgentId: "a"}
				for range 100 {
					r.Records = append(r.Records, &loombridgev1.MemorySaveRequest{Text: "The seal is " + c.text("deleted words")})
				}
				got, err := p.memory().BatchSave(t.Context(), r)
				must(t, err)
				for _, saved := range got.GetSaved() {
					ids = append(ids, saved.GetId())
				}
			}
			_, err := p.bridge().MemorySave(t.Context(), &loombridgev1.MemorySaveRequest{AgentId: "a", SessionId: "s", Text: "a heron", MetadataForm: &loombridgev1.MemorySaveRequest_MetadataJson{MetadataJson: `{"case":"47"}`}})
			must(t, err)
			eventually(t, waitTime, func() error { // until they are packed
				got, err := p.memory().ListRecords(t.Context(), &loombridgev1.ListRecordsRequest{AgentId: "a", StatsOnly: true})
				if err == nil && (got.GetStats().GetSegments() == 0 || got.GetStats().GetUnpacked() > 300) {
					err = fmt.Errorf("%d segments, %d records are not packed", got.GetStats().GetSegments(), got.GetStats().GetUnpacked())
				}
				return err
			})
			for _, id := range ids[:200] {
				_, err := p.memory().DeleteRecords(t.Context(), &loombridgev1.DeleteRecordsRequest{AgentId: "a", Name: &loombridgev1.DeleteRecordsRequest_Id{Id: id}})
				must(t, err)
			}
			must(t, p.Stop())
			deleted := make(canaries)
			for name, where := range c {
				if name < fmt.Sprintf("canary%04d", 200) {
					deleted[name] = where
				}
			}
			before := deleted.entries(t, store)
			if before == 0 {
				t.Fatal("the words are not there before, so nothing would be shown")
			}
			_, err = s.erase(t, store, "out.json")
			must(t, err)
			files := sum(deleted.found(t, store))
			t.Logf("words of %d deleted records: the index has %d before, all files %d after", len(deleted), before, files)
			if files != 0 {
				t.Errorf("words of %d deleted records are found after", files)
			}
		})
	}
}

// entries counts those whose ends the entries of a store have, unpacked.
func (c canaries) entries(t *testing.T, dir string) (n int) {
	t.Helper()
	var all []byte
	decodeStore(t, dir, func(b []byte) {
		if all == nil {
			all = append(b, 0)
		}
	})
	for name := range c {
		if bytes.Contains(all, []byte(name[len(name)-canaryEnd:])) {
			n++
		}
	}
	return n
}

// An erasure that is killed leaves the old store or the new one, whatever is erased, and
// ends when it is run again.
//
// Y23, Y26
func TestEraseKilledSoak(t *testing.T) {
	agent := func(t *testing.T) part {
		dir, c := erasable(t, 2)
		return part{name: "agent", dir: dir, gone: c, flags: []string{"--agent", "a"}}
	}
	for name, make := range map[string]func(t *testing.T) part{
		"agent": agent, "user": func(t *testing.T) part { return recordsPart(t, "user", false, 30) }, "session": func(t *testing.T) part { return sessionPart(t, 2) },
		"tenant": func(t *testing.T) part { return tenantPart(t, 2) }, "agent filter": func(t *testing.T) part { return filterPart(t, "agent", 40) },
		"user filter": func(t *testing.T) part { return filterPart(t, "user", 40) }, "tenant filter": func(t *testing.T) part { return filterPart(t, "whole-tenant", 30) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := make(t)
			killErasures(t, filepath.Join(s.dir, "store"), s.gone, s.kept, s.flags...)
		})
	}
}

// killErasures kills erasures of copies of a store at random, until as many were killed as
// are wanted before they had written their certificate.
func killErasures(t *testing.T, full string, c, others canaries, subject ...string) {
	t.Helper()
	program, kept, gone := mustBuild(t), 0, 0
	args := func(dir, store string) []string {
		return append([]string{"erase", "--key", filepath.Join(dir, "k"), "--out", filepath.Join(dir, "a.json"), "--data-dir", store}, subject...)
	}
	// What RocksDB still had of overwritten values goes with the log at the next open.
	_, err := loomCommand(t, "audit", "erase", "--agent", "nobody", "--data-dir", full)
	must(t, err)
	before := sum(c.found(t, full))
	began := time.Now()
	unkilled := copyOf(t, full)
	if out, err := exec.Command(program, args(filepath.Dir(unkilled), unkilled)...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	took := time.Since(began)
	want, rounds := soakRoundsOr(t, 1), 0
	for ; kept+gone < want; rounds++ {
		if rounds > 10*want {
			t.Fatalf("%d kills hit in %d rounds, want %d", kept+gone, rounds, want)
		}
		store := copyOf(t, full)
		out := filepath.Join(filepath.Dir(store), "a.json")
		written := func() bool {
			_, err := os.Stat(out)
			return err == nil
		}
		for range 3 { // killed more than once
			process := exec.Command(program, args(filepath.Dir(store), store)...)
			must(t, process.Start())
			if rounds%2 == 0 {
				time.Sleep(rand.N(took))
			} else { // about when the stores change places
				for range 3000 {
					if text, _ := os.ReadFile(out + ".loom-partial"); bytes.Contains(text, []byte(`"erased": {`)) || written() {
						break
					}
					time.Sleep(100 * time.Microsecond)
				}
				time.Sleep(rand.N(took / 20))
			}
			_ = process.Process.Kill()
			_ = process.Wait()
			if written() {
				break
			}
			switch counts := c.found(t, store); sum(counts) {
			case 0:
				gone++
			case before, before - 1: // the record of the call goes first, in a commit of its own
				kept++
			default:
				t.Fatalf("round %d: the store is neither old nor new: %v", rounds, counts)
			}
		}
		if !written() {
			if said, err := exec.Command(program, args(filepath.Dir(store), store)...).CombinedOutput(); err != nil {
				t.Fatalf("round %d: %v: %s", rounds, err, said)
			}
		}
		if said, err := loomCommand(t, "erase", "verify", out, "--data-dir", store); err != nil {
			t.Fatalf("round %d: %v: %s", rounds, err, said)
		}
		if counts := c.found(t, store); sum(counts) != 0 || sum(others.found(t, store)) != len(others) {
			t.Fatalf("round %d: found after: %v, of others %d of %d", rounds, counts, sum(others.found(t, store)), len(others))
		}
		var certificate erasure.Certificate
		must(t, json.Unmarshal(mustRead(t, out), &certificate))
		if certificate.Erased["records"].Erased+int64(len(certificate.Records)) == 0 || certificate.AuditRecords > 1+c.where()["media"] {
			t.Errorf("round %d: the certificate says %+v", rounds, certificate)
		}
		if left, err := filepath.Glob(filepath.Dir(store) + "/*.loom-*"); err != nil || len(left) > 0 {
			t.Errorf("round %d: left are %v, %v", rounds, left, err)
		}
		must(t, os.RemoveAll(filepath.Dir(store)))
	}
	t.Logf("an erasure took %s; %d of %d kills left the old store with its %d canaries, %d the new one; each ended with 0 canaries", took, kept, kept+gone, before, gone)
}
