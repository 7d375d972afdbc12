package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// sessions runs the command on a server, and returns what it said.
func (p *process) sessions(tb testing.TB, token string, args ...string) (string, error) {
	tb.Helper()
	var output, console bytes.Buffer
	env := environment{vars: map[string]string{envToken: token}}
	err := run(tb.Context(), append([]string{"sessions", args[0], "--addr", p.Address, "--agent", "a"}, args[1:]...), env, &output, &console)
	return output.String(), err
}

// plantSessions gives agent a two sessions whose steps alternate, with everything that a
// session can have, and returns the bytes of a long result.
func plantSessions(t *testing.T, p *process, camera *camera) []byte {
	t.Helper()
	long := noise(7, 3_000_000)
	for i, session := range []string{"s", "other", "s"} {
		c := make(canaries)
		if i < 2 {
			c = plant(t, p, "a", session, "b", 1)
		}
		camera.plant(t, p, "a", session, c, 2)
		s := &stand{tb: t, process: p, ctx: t.Context(), agent: "a"}
		s.record(session, "shell:run", `{"n":1}`, strconv.Quote(string(bytes.Repeat([]byte("line\n"), 20_000))))
	}
	stream, err := p.context().UploadStep(t.Context())
	must(t, err)
	must(t, stream.Send(&loombridgev1.UploadStepRequest{Item: &loombridgev1.UploadStepRequest_Step{Step: &loombridgev1.RecordStepRequest{
		AgentId: "a", SessionId: "s", ToolName: "own:camera", Success: true,
		OutputForm: &loombridgev1.RecordStepRequest_OutputUpload{OutputUpload: &loombridgev1.ResultUpload{Form: loombridgev1.ResultForm_RESULT_FORM_BYTES}},
	}}}))
	for rest := long; len(rest) > 0; rest = rest[min(len(rest), 1<<20):] {
		must(t, stream.Send(&loombridgev1.UploadStepRequest{Item: &loombridgev1.UploadStepRequest_Data{Data: rest[:min(len(rest), 1<<20)]}}))
	}
	_, err = stream.CloseAndRecv()
	must(t, err)
	return long
}

// blob reads all of an offloaded result.
func (p *process) blob(t *testing.T, name string) (all []byte) {
	t.Helper()
	stream, err := p.context().ReadBlob(t.Context(), &loombridgev1.ReadBlobRequest{AgentId: "a", Name: name})
	must(t, err)
	for {
		part, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return all
		}
		must(t, err)
		all = append(all, part.GetData()...)
	}
}

// Sessions that were exported and imported at another server, for another tenant, are the
// same export there, byte for byte, with their results, and go on there as they would have.
// An import made again changes nothing.
//
// Y44, Y45
func TestSessionsExportAndImport(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	from, camera := mustServeCamera(t, t.TempDir())
	long := plantSessions(t, from, camera)
	goal := "nothing else is in this session"
	_, err := from.context().UpdateWorking(t.Context(), &loombridgev1.UpdateWorkingRequest{AgentId: "a", SessionId: "aim", Goal: &goal})
	must(t, err)
	file := func(name string) string { return filepath.Join(dir, name) }
	for _, session := range []string{"s", "other", "aim"} {
		said, err := from.sessions(t, "", "export", "--session", session, "--out", file(session))
		if must(t, err); said != "exported 1 sessions to "+file(session)+"\n" {
			t.Errorf("export said %q", said)
		}
	}
	_, err = from.sessions(t, "", "export", "--out", file("all"))
	must(t, err)
	if each := string(mustRead(t, file("aim"))) + string(mustRead(t, file("other"))) + string(mustRead(t, file("s"))); each != string(mustRead(t, file("all"))) {
		t.Error("the export of all is not that of each")
	}
	for _, part := range []string{"head", "entry", "folds", "journal", "settings", "working", "sprints", "snapshot", "tally", "task"} {
		if !strings.Contains(string(mustRead(t, file("s"))), `"part":"`+part+`"`) {
			t.Errorf("the export has no %s, so nothing is shown of it", part)
		}
	}

	store := t.TempDir()
	callers := filepath.Join(store, "callers.toml")
	must(t, os.WriteFile(callers, fmt.Appendf(nil, "[[credential]]\ntoken_sha256 = %q\ntenant = \"t\"\nagents = [\"*\"]\n", hashOf("token")), 0o600))
	start := func() *process { return MustRun(t, store, "--credentials", callers) }
	server := start()
	for _, session := range []string{"s", "other", "aim"} { // whose steps lie between those of the first
		for i, want := range []string{"imported 1 sessions, 0 were there", "imported 0 sessions, 1 were there"} {
			said, err := server.sessions(t, "token", "import", file(session))
			if must(t, err); !strings.HasPrefix(said, want) {
				t.Errorf("import %d said %q", i, said)
			}
		}
		must(t, server.Stop())
		if said, err := checkStore(t, filepath.Join(store, "store")); err != nil {
			t.Errorf("check: %v\n%s", err, said)
		}
		server = start()
		_, err := server.sessions(t, "token", "export", "--session", session, "--out", file("again"))
		must(t, err)
		if !bytes.Equal(mustRead(t, file("again")), mustRead(t, file(session))) {
			t.Errorf("after the import %s is another export", session)
		}
	}
	_, err = server.sessions(t, "token", "export", "--out", file("again"))
	must(t, err)
	if !bytes.Equal(mustRead(t, file("again")), mustRead(t, file("all"))) {
		t.Error("after the imports the export of all is another one")
	}
	to := server.withToken(t, "token")
	shown := func(p *process) string {
		prompt, err := p.context().Assemble(t.Context(), &loombridgev1.AssembleRequest{AgentId: "a", SessionId: "s", MaxTokens: 100_000, DryRun: true})
		must(t, err)
		var b strings.Builder
		for _, m := range prompt.GetMessages() {
			b.WriteString(m.String() + "\n")
		}
		return b.String()
	}
	if a, b := shown(from), shown(to); a != b || !strings.Contains(a, "canary") {
		t.Errorf("the prompt was\n%.3000s\nand is\n%.3000s", a, b)
	}
	listed, err := to.context().ListSteps(t.Context(), &loombridgev1.ListStepsRequest{AgentId: "a", SessionId: "s"})
	must(t, err)
	last := listed.GetSteps()[len(listed.GetSteps())-1]
	if !bytes.Equal(to.blob(t, last.GetId()), long) {
		t.Errorf("%s has other bytes", last.GetId())
	}
	// Both go on alike, and then differ, which a further import does not hide.
	s := &stand{tb: t, process: to, ctx: t.Context(), agent: "a"}
	s.record("s", "shell:run", `{"n":2}`, `"more"`)
	if _, err := server.sessions(t, "token", "import", file("s")); status.Code(err) != codes.AlreadyExists || reasonOf(err) != "RECORD_EXISTS" {
		t.Errorf("an import over a session that went on: %v", err)
	}
	must(t, server.Stop())
	said, err := checkStore(t, filepath.Join(store, "store"))
	if err != nil {
		t.Errorf("check: %v\n%s", err, said)
	}
}

// Lines that can't be taken are named, and nothing of their session is there then; what
// looks like a secret is not imported by a server that stores none.
//
// Y44
func TestSessionsImportRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	from := MustRun(t, t.TempDir())
	s := &stand{tb: t, process: from, ctx: t.Context(), agent: "a"}
	s.record("s", "shell:run", "{}", strconv.Quote(strings.Repeat("line\n", 20_000)))
	_, err := from.context().AppendMessages(t.Context(), &loombridgev1.AppendMessagesRequest{
		AgentId: "a", SessionId: "s", Messages: []*loombridgev1.Message{{Role: loombridgev1.Role_ROLE_USER, Content: "the key is AKIAIOSFODNN7EXAMPLE"}},
	})
	must(t, err)
	file, other := filepath.Join(dir, "all"), filepath.Join(dir, "other")
	_, err = from.sessions(t, "", "export", "--out", file)
	must(t, err)
	lines := strings.SplitAfter(strings.TrimSuffix(string(mustRead(t, file)), "\n"), "\n")
	at := func(with string) int {
		for i, line := range lines {
			if strings.Contains(line, with) {
				return i
			}
		}
		t.Fatalf("no line has %s", with)
		return 0
	}
	without := func(i int) string { return strings.Join(lines[:i], "") + strings.Join(lines[i+1:], "") }
	replaced := func(i int, from, into string) string {
		return strings.Join(lines[:i], "") + strings.Replace(lines[i], from, into, 1) + strings.Join(lines[i+1:], "")
	}
	to := MustRun(t, t.TempDir())
	for name, c := range map[string]struct{ text, problem string }{
		"cut off":            {strings.Join(lines[:len(lines)-1], ""), "missing behind it"},
		"not an export":      {"id,text\n1,hello\n", "line 1"},
		"an entry less":      {without(at(`"part":"entry"`)), "line"},
		"a head less":        {without(at(`"part":"head"`)), "line"},
		"bytes less":         {without(at(`"kind":"bytes"`)), "can't stand here"},
		"other bytes":        {replaced(at(`"kind":"bytes"`), `"bytes":"`, `"bytes":"AAAA`), "hash"},
		"another part":       {replaced(at(`"part":"entry"`), `"entry"`, `"envelope"`), "no part"},
		"another position":   {replaced(at(`"part":"entry"`), `"number":1`, `"number":7`), "line"},
		"another session":    {replaced(at(`"kind":"session"`), `"s"`, `"t"`), "line"},
		"another format":     {replaced(at(`"kind":"session"`), `"format":1`, `"format":2`), "format"},
		"another count":      {replaced(at(`"kind":"end"`), `"lines":`, `"lines":1`), "line"},
		"a field more":       {replaced(at(`"kind":"end"`), `"kind"`, `"more":1,"kind"`), "unknown field"},
		"a path out of here": {replaced(at(`"kind":"result"`), `workspace/`, `../workspace/`), "path"},
		"spaces":             {replaced(at(`"kind":"end"`), `"lines":`, `"lines": `), "not as an export writes it"},
		"lines of nothing":   {lines[at(`"kind":"bytes"`)], "can't stand here"},
	} {
		t.Run(name, func(t *testing.T) {
			must(t, os.WriteFile(other, []byte(c.text), 0o600))
			_, err := to.sessions(t, "", "import", other)
			if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), c.problem) {
				t.Errorf("%v, want %q", err, c.problem)
			}
			if said, err := to.sessions(t, "", "export"); err != nil || said != "" {
				t.Errorf("%d bytes are there then, %v", len(said), err)
			}
		})
	}
	var odd strings.Builder
	for _, line := range lines {
		_, stored, _ := strings.Cut(line, `"stored":"`)
		stored = strings.TrimSuffix(stored, "\"}\n")
		if value, err := base64.StdEncoding.DecodeString(stored); err == nil && bytes.Contains(value, []byte("the key")) {
			line = strings.Replace(line, stored, base64.StdEncoding.EncodeToString(bytes.Replace(value, []byte("the key"), []byte("the \xffey"), 1)), 1)
		}
		odd.WriteString(line)
	}
	must(t, os.WriteFile(other, []byte(odd.String()), 0o600))
	if _, err := to.sessions(t, "", "import", other); status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "not UTF-8") {
		t.Errorf("a text that is not UTF-8: %v", err)
	}
	if _, err := to.sessions(t, "", "import", file); err != nil {
		t.Errorf("behind all that: %v", err)
	}
	if _, err := to.sessions(t, "", "export", "--session", "none", "--out", other+"none"); err == nil || !strings.Contains(err.Error(), `has no session "none"`) {
		t.Errorf("the export of a session that is not there: %v", err)
	}
	if _, err := os.Stat(other + "none"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its file: %v", err)
	}
	safe := MustRun(t, t.TempDir(), "--redact", "secrets")
	if _, err := safe.sessions(t, "", "import", file); status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "secret") {
		t.Errorf("where no secrets are stored: %v", err)
	}
	kept := s.record("tagged", "shell:run", "{}", strconv.Quote(strings.Repeat("line\n", 20_000)))
	_, err = from.context().UpdateBlob(t.Context(), &loombridgev1.UpdateBlobRequest{Archive: true, AgentId: "a", Name: kept.GetOutputBlob().GetPath(), Tags: []string{"AKIAIOSFODNN7EXAMPLE"}})
	must(t, err)
	_, err = from.sessions(t, "", "export", "--session", "tagged", "--out", file)
	must(t, err)
	if _, err := safe.sessions(t, "", "import", file); status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "secret") {
		t.Errorf("a tag of a result, where no secrets are stored: %v", err)
	}
	if said, err := safe.sessions(t, "", "export"); err != nil || said != "" {
		t.Errorf("where no secrets are stored %d bytes are there, %v", len(said), err)
	}
}

// A server that is killed while it imports has all of a session or nothing, of one of 20 MiB, too;
// the import made again ends, and its export is the same.
//
// Y44, Z48
func TestSessionsImportKilledSoak(t *testing.T) {
	t.Parallel()
	from, camera := mustServeCamera(t, t.TempDir())
	plantSessions(t, from, camera)
	for _, session := range []string{"s", "long"} {
		text := strings.Repeat("a long message ", 60_000)
		for i := range map[string]int{"s": 0, "long": 24}[session] {
			_, err := from.context().AppendMessages(t.Context(), &loombridgev1.AppendMessagesRequest{
				AgentId: "a", SessionId: session, Messages: []*loombridgev1.Message{{Role: loombridgev1.Role_ROLE_USER, Content: fmt.Sprint(i, text)}},
			})
			must(t, err)
		}
		mustImportKilled(t, from, session)
	}
}

func mustImportKilled(t *testing.T, from *process, session string) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "s")
	_, err := from.sessions(t, "", "export", "--session", session, "--out", file)
	must(t, err)
	want := string(mustRead(t, file))
	whole, nothing := 0, 0
	lives, rounds := 150*time.Millisecond, 2
	if session == "long" {
		lives, rounds = 1500*time.Millisecond, 1
	}
	for range soakRoundsOr(t, rounds) {
		store := t.TempDir()
		child := MustStartChild(t, store)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = run(ctx, []string{"sessions", "import", "--addr", child.Address, "--agent", "a", file}, noEnvironment, io.Discard, io.Discard) // the kill may come before its end
		}()
		time.Sleep(rand.N(lives))
		must(t, child.Process.Kill())
		_ = child.Wait()
		stop() // which ends waiting for the server
		<-ended
		server := MustRun(t, store)
		said, err := server.sessions(t, "", "export")
		must(t, err)
		switch said {
		case "":
			nothing++
		case want:
			whole++
		default:
			t.Fatalf("%d bytes of %d are there", len(said), len(want))
		}
		_, err = server.sessions(t, "", "import", file)
		must(t, err)
		if said, err = server.sessions(t, "", "export"); err != nil || said != want {
			t.Fatalf("after a further import: %d bytes of %d, %v", len(said), len(want), err)
		}
		must(t, server.Stop())
		if said, err := checkStore(t, filepath.Join(store, "store")); err != nil {
			t.Fatalf("check: %v\n%s", err, said)
		}
	}
	t.Logf("of %d bytes, sha256 %x, %d kills left nothing, %d all", len(want), sha256.Sum256([]byte(want)), nothing, whole)
}
