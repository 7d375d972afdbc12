package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"github.com/loom-bridge/loom-bridge/bridge/erasure"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// canaries are byte strings that stand nowhere by chance, with where they were put.
type canaries map[string]string

// canaryEnd is how much of one at its end no other has.
const canaryEnd = 16

// unhurried lets a child outlive a test on a busy machine: by default it has a minute.
var unhurried = &loombridgev1.ChildLimits{Timeout: durationpb.New(time.Hour)}

// text makes one that is put into a text.
func (c canaries) text(where string) string {
	name := fmt.Sprintf("canary%04dx%016x", len(c), rand.Uint64())
	c[name] = where
	return name
}

// vector makes one that is put into a vector: its first two numbers are the canary.
func (c canaries) vector(space int) []float32 {
	v := make([]float32, space)
	for i := range v {
		v[i] = rand.Float32() + 0.5
	}
	var b []byte
	for _, x := range v[:2] {
		bits := math.Float32bits(x)
		b = append(b, byte(bits), byte(bits>>8), byte(bits>>16), byte(bits>>24))
	}
	c[string(b)] = "vectors"
	return v
}

// plant has an agent store canaries in a session, in every place that the API leads to, each
// kind about a hundredth of them times its share.
func plant(t *testing.T, p *process, agent, session, other string, hundredth int) canaries {
	t.Helper()
	c := make(canaries)
	ctx := t.Context()
	ids := make([]string, 0, 20*hundredth)
	for i := range 20 * hundredth {
		request := &loombridgev1.MemorySaveRequest{AgentId: agent, Text: "The seal is " + c.text("texts"), SessionId: session}
		if i < 10*hundredth {
			request.Embedding, request.EmbeddingSpace = c.vector(8), "mine"
		}
		if i < 15*hundredth {
			request.MetadataForm = &loombridgev1.MemorySaveRequest_MetadataJson{MetadataJson: fmt.Sprintf(`{"seal":%q}`, c.text("metadata"))}
		}
		saved, err := p.bridge().MemorySave(ctx, request)
		must(t, err)
		ids = append(ids, saved.GetId())
	}
	for i := range 15 * hundredth {
		id := ids[len(ids)-1-i]
		_, err := p.memory().UpdateRecord(ctx, &loombridgev1.UpdateRecordRequest{
			AgentId: agent, Name: &loombridgev1.UpdateRecordRequest_Id{Id: id},
			Record:     &loombridgev1.MemorySaveRequest{Text: "It was " + c.text("versions")},
			UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"text"}},
		})
		must(t, err)
	}
	for i := range 15 * hundredth {
		long := ""
		if i == 0 { // so that the payload stands beside its event
			long = strings.Repeat("long ", 209_000)
		}
		payload := fmt.Sprintf(`{"seal":%q,"long":%q}`, c.text("events"), long)
		for _, from := range []string{agent, other} { // so that the topic goes on behind what is erased
			text := payload
			if from == other {
				text = `{"of":"another"}`
			}
			_, err := p.bridge().Emit(ctx, &loombridgev1.EmitRequest{
				AgentId: from, SessionId: session, Topic: "seals", PayloadForm: &loombridgev1.EmitRequest_PayloadJson{PayloadJson: text},
			})
			must(t, err)
		}
	}
	s := &stand{tb: t, process: p, ctx: ctx, agent: agent}
	for range hundredth {
		var lines []string
		for range 10 {
			lines = append(lines, c.text("blobs"), strings.Repeat("line after line ", 60))
		}
		content, err := json.Marshal(strings.Join(lines, "\n"))
		must(t, err)
		s.record(session, "fs:read_file", `{"path":"big.txt"}`, fmt.Sprintf(`{"path":"big.txt","content":%s}`, content))
	}
	for range hundredth {
		var texts []string
		for range 10 {
			texts = append(texts, "They said "+c.text("sessions"))
		}
		request := &loombridgev1.AppendMessagesRequest{AgentId: agent, SessionId: session, RequestId: c.text("request ids")}
		for _, text := range texts {
			request.Messages = append(request.Messages, &loombridgev1.Message{Role: loombridgev1.Role_ROLE_USER, Content: text})
		}
		_, err := p.context().AppendMessages(ctx, request)
		must(t, err)
	}
	for range 5 * hundredth {
		_, err := p.events().SendMessage(ctx, &loombridgev1.SendMessageRequest{AgentId: agent, Message: &loombridgev1.DirectMessage{SessionId: session, TargetAgentId: other, Content: c.text("messages")}})
		must(t, err)
	}
	_, err := p.events().SendMessage(ctx, &loombridgev1.SendMessageRequest{AgentId: other, Message: &loombridgev1.DirectMessage{TargetAgentId: other, Content: "a note to myself"}})
	must(t, err)
	_, err = p.bridge().Tool(ctx, &loombridgev1.ToolRequest{
		AgentId: agent, SessionId: session, Name: "fs:write_file",
		ArgumentsForm: &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: fmt.Sprintf(`{"path":"f.txt","content":%q}`, c.text("calls"))},
	})
	must(t, err)
	plantPrompts(t, p, agent, session, c)
	return c
}

// plantPrompts puts canaries into what prompts of a session are made of, and makes some.
func plantPrompts(t *testing.T, p *process, agent, session string, c canaries) {
	t.Helper()
	ctx := t.Context()
	_, err := p.context().ConfigureSession(ctx, &loombridgev1.ConfigureSessionRequest{
		AgentId: agent, SessionId: session, Prompt: &loombridgev1.PromptSettings{System: "You guard " + c.text("settings")}, RequestId: "configure " + session,
	})
	must(t, err)
	goal := "Keep " + c.text("working states")
	_, err = p.context().UpdateWorking(ctx, &loombridgev1.UpdateWorkingRequest{AgentId: agent, SessionId: session, Goal: &goal, RequestId: "work " + session})
	must(t, err)
	important := 0.9
	_, err = p.context().RecordStep(ctx, &loombridgev1.RecordStepRequest{
		AgentId: agent, SessionId: session, ToolName: "own:tool", Success: true, Thought: c.text("thoughts"),
		OutputForm: &loombridgev1.RecordStepRequest_OutputJson{OutputJson: fmt.Sprintf(`{"x":%q}`, c.text("results"))},
		Task:       &loombridgev1.Task{Action: "guard", Result: c.text("tasks"), Importance: &important},
	})
	must(t, err)
	_, err = p.context().CompressResult(ctx, &loombridgev1.CompressResultRequest{
		AgentId: agent, SessionId: session, ToolName: "own:tool", Content: strings.Repeat("line after line\n", 500) + c.text("compressed results"),
	})
	must(t, err)
	for range 3 {
		_, err = p.context().Assemble(ctx, &loombridgev1.AssembleRequest{AgentId: agent, SessionId: session, Goal: c.text("prompts"), MaxTokens: 100_000})
		must(t, err)
	}
	_, err = p.context().CompactHistory(ctx, &loombridgev1.CompactHistoryRequest{AgentId: agent, SessionId: session})
	must(t, err)
	_, err = p.context().Renew(ctx, &loombridgev1.RenewRequest{AgentId: agent, SessionId: session, Goal: c.text("renewals")})
	must(t, err)
	_, err = p.context().SpawnAgent(ctx, &loombridgev1.SpawnAgentRequest{
		AgentId: agent, SessionId: session, ChildId: agent + session + "child", Goal: "watch the sea", Limits: unhurried, ForkFrom: new(""),
	})
	must(t, err)
}

func (p *process) events() loombridgev1.EventServiceClient {
	return loombridgev1.NewEventServiceClient(p.conn)
}

// found are the canaries that a store has.
func (c canaries) found(t *testing.T, dir string) map[string]int {
	t.Helper()
	seen := make(map[string]bool)
	search := c.search()
	decodeStore(t, dir, func(b []byte) {
		search(b, func(name string, _ int) { seen[name] = true })
	})
	counts := make(map[string]int)
	for name := range seen {
		counts[c[name]]++
	}
	return counts
}

// search returns what shows the canaries of some bytes and where each ends. A sorted list of
// words may leave out how one begins.
func (c canaries) search() func(b []byte, show func(name string, end int)) {
	ends := make(map[string]string, len(c))
	var first [1 << 16]bool // the two bytes that an end begins with; few others do
	for name := range c {
		end := name[max(0, len(name)-canaryEnd):]
		ends[end] = name
		first[int(end[0])<<8|int(end[1])] = true
	}
	return func(b []byte, show func(name string, end int)) {
		for at := range max(0, len(b)-7) {
			if !first[int(b[at])<<8|int(b[at+1])] {
				continue
			}
			for _, size := range []int{8, canaryEnd} {
				if at+size <= len(b) {
					if name, ours := ends[string(b[at:at+size])]; ours {
						show(name, at+size)
					}
				}
			}
		}
	}
}

// decodeStore shows all bytes of a store: of its files as they are, of its logs without their
// frames, and of each entry as RocksDB reads it from tables, logs and blob files, with what
// zstd packed in it unpacked.
func decodeStore(t *testing.T, dir string, show func([]byte)) {
	t.Helper()
	engine, err := rockskv.OpenReadOnly(dir, nil)
	must(t, err)
	unpack, err := zstd.NewReader(nil)
	must(t, err)
	defer unpack.Close()
	var all []byte
	must(t, engine.Each(t.Context(), func(_ kv.Keyspace, p kv.Pair) error {
		all = append(append(append(all, p.Key...), p.Value...), '\n')
		for rest := p.Value; ; {
			at := bytes.Index(rest, []byte{0x28, 0xb5, 0x2f, 0xfd})
			if at < 0 {
				return nil
			}
			must(t, unpack.Reset(bytes.NewReader(rest[at:])))
			text, _ := io.ReadAll(unpack) // what follows the frame is not of it
			all = append(all, text...)
			rest = rest[at+4:]
		}
	}))
	show(all)
	must(t, engine.Close())
	must(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		show(content)
		if filepath.Ext(path) == ".log" {
			show(unframed(content))
		}
		return err
	}))
}

// unframed are the records of a log of RocksDB, one behind the other. A record that does not
// fit into what is left of a block of 32 KiB goes on in the next one behind a header of 7
// bytes, which may stand in the middle of a canary. Of a vector that was overwritten the log
// is all there is.
func unframed(log []byte) (records []byte) {
	const block, header = 32 << 10, 7
	for ; len(log) > 0; log = log[min(block, len(log)):] {
		for rest := log[:min(block, len(log))]; len(rest) >= header; {
			length := min(int(rest[4])|int(rest[5])<<8, len(rest)-header)
			records = append(records, rest[header:header+length]...)
			rest = rest[header+length:]
		}
	}
	return records
}

// logical are those that the entries of a store have, and not only its files.
func (c canaries) logical(t *testing.T, dir string) canaries {
	t.Helper()
	var entries []byte
	decodeStore(t, dir, func(b []byte) {
		if entries == nil {
			entries = append(b, 0)
		}
	})
	have := make(canaries)
	c.search()(entries, func(name string, end int) {
		if bytes.HasSuffix(entries[:end], []byte(name)) {
			have[name] = c[name]
		}
	})
	return have
}

// where counts the canaries by where they were put.
func (c canaries) where() map[string]int {
	counts := make(map[string]int)
	for _, where := range c {
		counts[where]++
	}
	return counts
}

func sum(counts map[string]int) (n int) {
	for _, of := range counts {
		n += of
	}
	return n
}

// erasable is a stopped store with canaries of agent a, and something of agent b.
func erasable(t *testing.T, hundredth int) (dir string, c canaries) {
	t.Helper()
	dir = t.TempDir()
	p, camera := mustServeCamera(t, dir)
	c = plant(t, p, "a", "s", "b", hundredth)
	camera.plant(t, p, "a", "s", c, 5*hundredth)
	for i := range 10 {
		_, err := p.bridge().MemorySave(t.Context(), &loombridgev1.MemorySaveRequest{AgentId: "b", Text: fmt.Sprintf("the %dth heron of b", i)})
		must(t, err)
	}
	must(t, p.Stop())
	return dir, c
}

// What is erased is in no file of the store any more, all else is as it was and can be used,
// and the certificate says so; one of another store, a changed one and one of a changed
// store do not hold.
//
// Y23
func TestErase(t *testing.T) {
	t.Parallel()
	dir, c := erasable(t, sized(2, 10))
	store, out, key := filepath.Join(dir, "store"), filepath.Join(dir, "a.json"), filepath.Join(dir, "key.pem")
	before := c.found(t, store)
	t.Logf("canaries put %d: %v; found before: %v", len(c), c.where(), before)
	if len(c) < sized(200, 1000) || sum(before) != len(c) {
		t.Fatalf("found %d of %d canaries before", sum(before), len(c))
	}

	said, err := loomCommand(t, "erase", "--agent", "a", "--key", key, "--out", out, "--data-dir", store)
	must(t, err)
	if !strings.Contains(said, "erased agent a of tenant default") {
		t.Errorf("erase said %q", said)
	}
	if after := c.found(t, dir+"/store"); sum(after) != 0 {
		t.Errorf("found after: %v", after)
	}
	if left, err := filepath.Glob(store + ".*"); err != nil || len(left) > 0 {
		t.Errorf("beside the store are %v, %v", left, err)
	}
	certificate := erasure.Certificate{}
	must(t, json.Unmarshal(mustRead(t, out), &certificate))
	for _, name := range []string{"records", "index", "log", "blobs", "events", "system"} {
		if tally := certificate.Erased[name]; tally.Erased+tally.Changed == 0 || tally.Kept == 0 && name != "blobs" && name != "log" {
			t.Errorf("%s: %+v", name, tally)
		}
	}
	if certificate.Found == 0 || !strings.HasPrefix(certificate.Statement, "Erased was agent a") {
		t.Errorf("the certificate states %q, found %d", certificate.Statement, certificate.Found)
	}
	if certificate.AuditRecords == 0 || certificate.TimeTravel == "" || len(certificate.Claimed) == 0 || len(certificate.NotClaimed) == 0 {
		t.Errorf("the certificate is %+v", certificate)
	}
	verify := func(file string, flags ...string) error {
		_, err := loomCommand(t, append([]string{"erase", "verify", file, "--data-dir", store}, flags...)...)
		return err
	}
	must(t, verify(out, "--signer", key))
	if said, err := loomCommand(t, "check", "--data-dir", store); err != nil || !strings.HasSuffix(said, "nothing is damaged\n") {
		t.Errorf("check: %v: %s", err, said)
	}
	_, err = loomCommand(t, "audit", "verify", "--data-dir", store)
	must(t, err)
	must(t, verify(out)) // nothing of this has written

	// A changed certificate, one of another key, and a store that was tampered with.
	changed := filepath.Join(dir, "changed.json")
	must(t, os.WriteFile(changed, bytes.Replace(mustRead(t, out), []byte(`"id": "a"`), []byte(`"id": "b"`), 1), 0o600))
	if err := verify(changed); !errors.Is(err, erasure.ErrNotTrue) {
		t.Errorf("a changed certificate: %v", err)
	}
	otherKey := filepath.Join(dir, "other.pem")
	if _, err := loomCommand(t, "erase", "--agent", "b", "--key", otherKey, "--out", filepath.Join(dir, "b.json"), "--data-dir", copyOf(t, store)); err != nil {
		t.Fatal(err)
	}
	if err := verify(out, "--signer", otherKey); !errors.Is(err, erasure.ErrNotTrue) {
		t.Errorf("another signer: %v", err)
	}
	extra := filepath.Join(store, "000001.extra")
	must(t, os.WriteFile(extra, []byte("x"), 0o600))
	if err := verify(out); !errors.Is(err, erasure.ErrNotTrue) {
		t.Errorf("a file more: %v", err)
	}
	must(t, os.Remove(extra))
	for _, f := range certificate.Files {
		path := filepath.Join(store, f.Name)
		whole := mustRead(t, path)
		if len(whole) == 0 {
			continue
		}
		broken := bytes.Clone(whole)
		broken[rand.N(len(broken))] ^= 1
		must(t, os.WriteFile(path, broken, 0o600))
		if err := verify(out); !errors.Is(err, erasure.ErrNotTrue) {
			t.Errorf("%s with another bit: %v", f.Name, err)
		}
		must(t, os.WriteFile(path, whole, 0o600))
	}
	must(t, verify(out))

	// The store goes on: b's is there, a's is not, and the topic has no gap.
	p := MustRun(t, dir)
	b, err := p.bridge().MemoryQuery(t.Context(), &loombridgev1.MemoryQueryRequest{AgentId: "b", Query: "heron"})
	must(t, err)
	inbox, err := p.events().ListMessages(t.Context(), &loombridgev1.ListMessagesRequest{AgentId: "b"})
	must(t, err)
	if len(b.GetHits()) == 0 || len(inbox.GetMessages()) != 1 || hits(t, p, "seal") != 0 {
		t.Errorf("b has %d hits and %d messages, a %d hits", len(b.GetHits()), len(inbox.GetMessages()), hits(t, p, "seal"))
	}
	must(t, p.Stop())
	if err := verify(out); !errors.Is(err, erasure.ErrNotTrue) {
		t.Errorf("a server has run since: %v", err)
	}
	must(t, verify(out, "--changed"))
	p = MustRun(t, dir)
	save(t, p, "a seal, anew")
	must(t, p.Stop())
	if err := verify(out, "--changed"); !errors.Is(err, erasure.ErrNotTrue) {
		t.Errorf("the agent has stored something since: %v", err)
	}
}

// Of an agent that has nothing, nothing is signed that sounds as if something was erased.
//
// Y23
func TestEraseNobody(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := MustRun(t, dir)
	save(t, p, "a seal")
	must(t, p.Stop())
	store := filepath.Join(dir, "store")
	files, err := erasure.Files(t.Context(), store)
	must(t, err)
	for name, flags := range map[string][]string{
		"nobody": {"--agent", "nobody"}, "no session": {"--agent", "a", "--session", "none"}, "no record": {"--agent", "a", "--filter", `kind = "none"`},
	} {
		out := filepath.Join(dir, name+".json")
		flags = append(flags, "--key", filepath.Join(dir, "k"), "--out", out, "--data-dir", store)
		_, err := loomCommand(t, append([]string{"erase"}, flags...)...)
		left, _ := filepath.Glob(out + "*")
		if !errors.Is(err, erasure.ErrNothing) || !strings.Contains(err.Error(), "--certify-absence") || len(left) > 0 {
			t.Errorf("%s: %v, files %v", name, err, left)
		}
		if after, err := erasure.Files(t.Context(), store); name == "nobody" && (err != nil || !slices.Equal(files, after)) {
			t.Errorf("%s: the store has changed: %v", name, err)
		}
		said, err := loomCommand(t, append([]string{"erase", "--certify-absence"}, flags...)...)
		must(t, err)
		var c erasure.Certificate
		text := mustRead(t, out)
		must(t, json.Unmarshal(text, &c))
		if c.Found != 0 || !strings.Contains(string(text), `"found": 0`) || !strings.HasPrefix(c.Statement, "Nothing of ") || !strings.HasPrefix(said, c.Statement) {
			t.Errorf("%s: said %q, certificate %s", name, said, text)
		}
		if said, err := loomCommand(t, "erase", "verify", out, "--data-dir", store); err != nil || !strings.Contains(said, "Nothing of ") {
			t.Errorf("%s: verify %v: %s", name, err, said)
		}
		files, err = erasure.Files(t.Context(), store)
		must(t, err)
	}
	p = MustRun(t, dir)
	if hits(t, p, "seal") != 1 {
		t.Error("what others have is gone")
	}
}

// Bad flags change nothing.
//
// Y23
func TestEraseRefuses(t *testing.T) {
	t.Parallel()
	dir, _ := erasable(t, 1)
	store := filepath.Join(dir, "store")
	files, err := erasure.Files(t.Context(), store)
	must(t, err)
	exists := filepath.Join(dir, "exists")
	must(t, os.WriteFile(exists, []byte("x"), 0o600))
	for _, flags := range [][]string{
		{"--key", "k", "--out", "o"},
		{"--agent", "a", "--user", "u", "--key", "k", "--out", "o"},
		{"--agent", "a", "--out", "o"},
		{"--agent", "a", "--key", dir + "/k"},
		{"--agent", "a", "--key", dir + "/k", "--out", exists},
		{"--agent", "a", "--key", exists, "--out", dir + "/o"},
		{"--agent", "a", "--key", store + "/k", "--out", dir + "/o"},
		{"--agent", "a", "--key", dir + "/k", "--out", store + "/o"},
		{"--agent", "a\x00", "--key", dir + "/k", "--out", dir + "/o"},
		{"--agent", "a", "--tenant", "", "--key", dir + "/k", "--out", dir + "/o"},
		{"--agent", "a", "--key", dir + "/k", "--out", dir + "/o", "--backup-dir", dir + "/none"},
	} {
		if _, err := loomCommand(t, append([]string{"erase", "--data-dir", store}, flags...)...); err == nil {
			t.Errorf("%q: no error", flags)
		}
	}
	if after, err := erasure.Files(t.Context(), store); err != nil || !slices.Equal(files, after) {
		t.Errorf("the store has changed: %v", err)
	}
}

// A store that a server uses is not erased from.
//
// Y23
func TestEraseBesideServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := MustRun(t, dir)
	save(t, p, "a seal")
	out := filepath.Join(dir, "o")
	for _, flags := range [][]string{{"--agent", "a"}, {"--user", "a"}} {
		_, err := loomCommand(t, append([]string{"erase", "--key", filepath.Join(dir, "k"), "--out", out, "--data-dir", filepath.Join(dir, "store")}, flags...)...)
		if !errors.Is(err, kv.ErrLocked) {
			t.Errorf("%q: %v", flags, err)
		}
	}
	if _, err := os.Stat(out); !errors.Is(err, fs.ErrNotExist) || hits(t, p, "seal") != 1 {
		t.Errorf("something has changed: %v", err)
	}
}

// A person's memory and a whole tenant go as an agent's does.
//
// Y23
func TestEraseOthers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store := filepath.Join(dir, "store")
	p := MustRun(t, dir)
	c := make(canaries)
	for _, request := range []*loombridgev1.MemorySaveRequest{
		{AgentId: "a", UserId: "u", Text: "See outputs/report.txt, " + c.text("user")},
		{AgentId: "a", UserId: "v", Text: "The wren is another person's"},
	} {
		_, err := p.bridge().MemorySave(t.Context(), request)
		must(t, err)
	}
	must(t, p.Stop())
	if sum(c.found(t, store)) != 1 {
		t.Fatal("not found before")
	}
	erase := func(name string, flags ...string) {
		t.Helper()
		out := filepath.Join(dir, name)
		_, err := loomCommand(t, append([]string{"erase", "--key", filepath.Join(dir, "k"), "--out", out, "--data-dir", store}, flags...)...)
		must(t, err)
		_, err = loomCommand(t, "erase", "verify", out, "--data-dir", store)
		must(t, err)
		said, err := loomCommand(t, "check", "--data-dir", store)
		if err != nil {
			t.Errorf("check: %v: %s", err, said)
		}
	}
	copies := filepath.Join(t.TempDir(), "copies")
	_, err := loomCommand(t, "backup", "create", "--offline", "--data-dir", store, "--backup-dir", copies)
	must(t, err)
	erase("u.json", "--user", "u", "--backup-dir", copies)
	var certificate erasure.Certificate
	must(t, json.Unmarshal(mustRead(t, filepath.Join(dir, "u.json")), &certificate))
	if len(certificate.Backups) != 1 {
		t.Errorf("backups that remain: %v", certificate.Backups)
	}
	if sum(c.found(t, store)) != 0 {
		t.Error("found after")
	}
	c = canaries{"The wren": "user"}
	if sum(c.found(t, store)) != 1 {
		t.Error("another person's is gone")
	}
	erase("t.json", "--whole-tenant")
	if sum(c.found(t, store)) != 0 {
		t.Error("the tenant's is found")
	}
}

// copyOf copies a store into a folder of its own.
func copyOf(t *testing.T, store string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "store")
	must(t, os.CopyFS(to, os.DirFS(store)))
	return to
}

func mustRead(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	must(t, err)
	return content
}
