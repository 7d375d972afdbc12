package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"google.golang.org/grpc/metadata"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// MustNameCallers writes credentials of one tenant, a token for each agent, which is its name.
// The first may write to the memory of ann.
func MustNameCallers(tb testing.TB, dir string, agents ...string) (file string) {
	tb.Helper()
	var text strings.Builder
	users := "writes_users = [\"ann\"]\n"
	for _, agent := range agents {
		sum := sha256.Sum256([]byte(agent))
		fmt.Fprintf(&text, "[[credential]]\ntoken_sha256 = %q\ntenant = \"acme\"\nagents = [%q]\n%s", hex.EncodeToString(sum[:]), agent, users)
		users = ""
	}
	file = filepath.Join(dir, "callers.toml")
	must(tb, os.WriteFile(file, []byte(text.String()), 0o600))
	return file
}

// all are the bytes of everything that a host gets for what can name a record or a result:
// tools, prompts and resources, errors included.
func (h host) all(space, id, step string) []byte {
	h.tb.Helper()
	var got bytes.Buffer
	for _, c := range []struct {
		tool      string
		arguments object
	}{
		{"memory_query", object{"query": "secret of the seal", "limit": 100, "space": space}},
		{"memory_query", object{"query": "secret of the seal", "limit": 100, "user": "ann"}},
		{"memory_query", object{"query": "secret of the seal", "limit": 100}},
		{"memory_query", object{"query": "secret of the seal", "limit": 1, "space": space, "related": true}},
		{"memory_relations", object{"id": id, "space": space}},
		{"memory_relations", object{"key": "seal", "space": space}},
		{"memory_relations", object{"id": id}},
		{"memory_get", object{"id": id, "space": space}},
		{"memory_get", object{"key": "seal", "space": space}},
		{"memory_get", object{"key": "seal", "user": "ann"}},
		{"blob_read", object{"name": step}},
		{"blob_read", object{"name": step, "search": "canary"}},
		{"context_assemble", object{"goal": "the secret of the seal"}},
	} {
		text, _ := h.call(c.tool, c.arguments)
		got.WriteString(text)
	}
	for _, arguments := range []map[string]string{{"query": "secret of the seal", "space": space}, {"query": "secret of the seal"}} {
		prompt, err := h.GetPrompt(h.tb.Context(), &sdk.GetPromptParams{Name: "recall", Arguments: arguments})
		fmt.Fprint(&got, err)
		if err == nil {
			got.WriteString(prompt.Messages[0].Content.(*sdk.TextContent).Text)
		}
	}
	listed, err := h.ListResources(h.tb.Context(), nil)
	must(h.tb, err)
	uris := []string{"loom://blob/" + step, "loom://step/" + step, "loom://record/" + id}
	for _, r := range listed.Resources {
		uris = append(uris, r.URI)
	}
	for _, uri := range uris {
		read, err := h.ReadResource(h.tb.Context(), &sdk.ReadResourceParams{URI: uri})
		fmt.Fprint(&got, err)
		if err == nil {
			got.WriteString(read.Contents[0].Text)
			got.Write(read.Contents[0].Blob)
		}
	}
	return got.Bytes()
}

// Through the Model Context Protocol a space is open to those agents that are granted it, as
// far as they are, and to nobody else: agents without a grant get no byte of what is in it, in
// a person's memory, or in the results and pictures of others.
//
// Y35, Y38
func TestHostsHoldGrants(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := MustRun(t, dir, "--mcp-addr", "127.0.0.1:0", "--credentials", MustNameCallers(t, dir, "maker", "reader", "writer", "stranger"))
	hosts := make(map[string]host)
	for _, name := range []string{"maker", "reader", "writer", "stranger"} {
		hosts[name] = MustHost(t, p.mcpURL(t)+"?agent="+name, "", name, nil)
	}
	maker := hosts["maker"]
	as := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer maker")
	sharing := loombridgev1.NewSharingServiceClient(p.conn)
	_, err := sharing.CreateSpace(as, &loombridgev1.CreateSpaceRequest{AgentId: "maker", SpaceId: "team"})
	must(t, err)
	for name, access := range map[string]loombridgev1.Access{"reader": loombridgev1.Access_ACCESS_READ, "writer": loombridgev1.Access_ACCESS_WRITE} {
		_, err := sharing.GrantAccess(as, &loombridgev1.GrantAccessRequest{
			AgentId: "maker", Owner: &loombridgev1.GrantAccessRequest_SpaceId{SpaceId: "team"}, Grantee: name, Access: access,
		})
		must(t, err)
	}
	const canaries = 100
	names := make([]string, canaries)
	var saved struct{ ID string }
	for i := range names {
		names[i] = fmt.Sprintf("canary%04dx%016x", i, rand.Uint64())
		owner := object{"space": "team"}
		switch {
		case i >= 3*canaries/4:
			owner = object{} // its own memory
		case i >= canaries/2:
			owner = object{"user": "ann"}
		}
		owner["text"] = "The secret of the seal is " + names[i]
		if i == 0 || i == canaries/2 {
			owner["key"] = "seal"
		}
		var one struct{ ID string }
		if maker.works("memory_save", owner, &one); i == 0 {
			saved = one
		}
	}
	var other struct{ ID string }
	maker.works("memory_save", object{"text": "Who keeps the seal", "space": "team"}, &other)
	maker.works("memory_relate", object{"from_id": other.ID, "name": names[0], "to_id": saved.ID, "space": "team"}, nil)
	var step struct{ Step string }
	maker.works("step_record", object{"tool": "bash", "arguments": object{"command": "cat"}, "result": strings.Repeat(strings.Join(names, " "), 20)}, &step)
	picture := append([]byte("\x89PNG\r\n\x1a\n"), strings.Join(names, "\n")...)
	drawn, err := p.context().RecordStep(as, &loombridgev1.RecordStepRequest{
		AgentId: "maker", ToolName: "draw", Success: true, OutputForm: &loombridgev1.RecordStepRequest_OutputBytes{OutputBytes: &loombridgev1.ResultBytes{Data: bytes.Repeat(picture, 20), MediaType: "image/png"}},
	})
	must(t, err)

	counts := func(got []byte) (n int) {
		for _, name := range names {
			if bytes.Contains(got, []byte(name)) {
				n++
			}
		}
		return n
	}
	for _, of := range []string{step.Step, drawn.GetStep().GetId()} {
		if n := counts(maker.all("team", saved.ID, of)); n != canaries {
			t.Errorf("the one who stored them gets %d of %d canaries", n, canaries)
		}
		if n := counts(hosts["stranger"].all("team", saved.ID, of)); n != 0 {
			t.Errorf("one without a grant gets %d canaries", n)
		}
		for _, name := range []string{"reader", "writer"} {
			if n := counts(hosts[name].all("team", saved.ID, of)); n != canaries/2 {
				t.Errorf("%s gets %d canaries, want the %d of the space", name, n, canaries/2)
			}
		}
	}
	for name, may := range map[string][2]bool{"maker": {true, true}, "writer": {true, true}, "reader": {true, false}, "stranger": {false, false}} {
		text, failed := hosts[name].call("memory_query", object{"query": "seal", "space": "team"})
		if failed == may[0] || failed && !strings.HasPrefix(text, "ACCESS_DENIED: ") {
			t.Errorf("%s queries: %.200s", name, text)
		}
		text, failed = hosts[name].call("memory_relations", object{"key": "seal", "space": "team"})
		if failed == may[0] || failed && !strings.HasPrefix(text, "ACCESS_DENIED: ") || !failed && !strings.Contains(text, names[0]) {
			t.Errorf("%s lists relations: %.200s", name, text)
		}
		text, failed = hosts[name].call("memory_save", object{"text": "from " + name, "key": name, "space": "team"})
		if failed == may[1] || failed && !strings.HasPrefix(text, "ACCESS_DENIED: ") {
			t.Errorf("%s saves: %.200s", name, text)
		}
		own := struct{ ID string }{other.ID}
		if !failed {
			must(t, json.Unmarshal([]byte(text), &own))
		}
		for _, tool := range []string{"memory_relate", "memory_unrelate"} {
			text, failed = hosts[name].call(tool, object{"from_id": own.ID, "name": "guards", "to_id": saved.ID, "space": "team"})
			if failed == may[1] || failed && !strings.HasPrefix(text, "ACCESS_DENIED: ") || !failed && text != "Related." && text != "Ended." {
				t.Errorf("%s calls %s: %.200s", name, tool, text)
			}
		}
		text, failed = hosts[name].call("memory_forget", object{"key": name, "space": "team"})
		if failed == may[1] || failed && !strings.HasPrefix(text, "ACCESS_DENIED: ") {
			t.Errorf("%s forgets: %.200s", name, text)
		}
	}
	if text, failed := hosts["writer"].call("memory_relate", object{"from_id": other.ID, "name": "guards", "to_id": saved.ID, "space": "team"}); !failed || !strings.HasPrefix(text, "AGENT_NOT_OWNED: ") {
		t.Errorf("a relation from another's record: %.200s", text)
	}
	if text, failed := maker.call("memory_query", object{"query": "seal", "space": "team", "user": "ann"}); !failed || !strings.HasPrefix(text, "INVALID_REQUEST: ") {
		t.Errorf("two owners: %.200s", text)
	}
	_, err = sharing.RevokeAccess(as, &loombridgev1.RevokeAccessRequest{AgentId: "maker", Owner: &loombridgev1.RevokeAccessRequest_SpaceId{SpaceId: "team"}, Grantee: "reader"})
	must(t, err)
	if n := counts(hosts["reader"].all("team", saved.ID, step.Step)); n != 0 {
		t.Errorf("one whose grant was taken back gets %d canaries", n)
	}
}
