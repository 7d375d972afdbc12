package transfers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// server has the lines of one memory and one agent's sessions. It fails behind some of them.
type server struct {
	loombridgev1.UnimplementedMemoryServiceServer
	loombridgev1.UnimplementedTransferServiceServer

	mu       sync.Mutex
	lines    []string
	failing  int // after so many lines; 0: never
	imports  []*loombridgev1.ImportRequest
	sessions []*loombridgev1.ImportRequest
	deleted  []*loombridgev1.DeleteRecordsRequest
	related  []*loombridgev1.ListRelationsRequest
}

func (s *server) Export(ask *loombridgev1.ExportRequest, out grpc.ServerStreamingServer[loombridgev1.ExportResponse]) error {
	if ask.GetSessions() {
		return out.Send(&loombridgev1.ExportResponse{Lines: s.lines})
	}
	for i, line := range s.lines {
		if s.failing > 0 && i == s.failing {
			return status.Error(codes.DataLoss, "damaged")
		}
		if err := out.Send(&loombridgev1.ExportResponse{Lines: []string{line}}); err != nil {
			return err
		}
	}
	return nil
}

func (s *server) Import(in grpc.ClientStreamingServer[loombridgev1.ImportRequest, loombridgev1.ImportResponse]) error {
	saved := 0
	for {
		part, err := in.Recv()
		if errors.Is(err, io.EOF) && len(s.sessions) > 0 {
			return in.SendAndClose(&loombridgev1.ImportResponse{Saved: 1})
		}
		if errors.Is(err, io.EOF) {
			return in.SendAndClose(&loombridgev1.ImportResponse{Saved: int64(saved), ImportId: s.imports[0].GetImportId()})
		}
		if err != nil {
			return err
		}
		if part.GetSessions() {
			s.sessions = append(s.sessions, part)
			continue
		}
		s.mu.Lock()
		s.imports = append(s.imports, part)
		s.mu.Unlock()
		if saved += len(part.GetLines()); s.failing > 0 && saved >= s.failing {
			return status.Error(codes.InvalidArgument, "line 7 is no record")
		}
	}
}

func (s *server) DeleteRecords(_ context.Context, ask *loombridgev1.DeleteRecordsRequest) (*loombridgev1.DeleteRecordsResponse, error) {
	s.deleted = append(s.deleted, ask)
	return &loombridgev1.DeleteRecordsResponse{Deleted: 2, NotOwned: 1}, nil
}

func (s *server) ListRelations(_ context.Context, ask *loombridgev1.ListRelationsRequest) (*loombridgev1.ListRelationsResponse, error) {
	s.related = append(s.related, ask)
	return &loombridgev1.ListRelationsResponse{Relations: []*loombridgev1.Relation{{FromId: "a", Name: "part_of", ToId: "b"}}}, nil
}

func (s *server) RelateRecords(context.Context, *loombridgev1.RelateRecordsRequest) (*loombridgev1.RelateRecordsResponse, error) {
	return &loombridgev1.RelateRecordsResponse{}, nil
}

// run runs a command against the server.
func (s *server) run(t *testing.T, command func(Options) *cobra.Command, in string, args ...string) (string, error) {
	t.Helper()
	listener := bufconn.Listen(1 << 20)
	served := grpc.NewServer()
	loombridgev1.RegisterMemoryServiceServer(served, s)
	loombridgev1.RegisterTransferServiceServer(served, s)
	go func() { _ = served.Serve(listener) }()
	defer served.Stop()
	var out bytes.Buffer
	c := command(Options{
		Dial: func(ctx context.Context) (context.Context, *grpc.ClientConn, error) {
			conn, err := grpc.NewClient("passthrough:///memory", grpc.WithTransportCredentials(insecure.NewCredentials()),
				grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return listener.Dial() }))
			return ctx, conn, err
		},
		Progress: func(int) {}, Told: func() {}, In: strings.NewReader(in), Out: &out,
	})
	c.SetArgs(append(args, "--agent", "a"))
	c.SetOut(io.Discard)
	c.SilenceErrors, c.SilenceUsage = true, true
	err := c.ExecuteContext(t.Context())
	return out.String(), err
}

// TestExport: the lines come as they are, to the output or to a file that appears when it is
// whole.
func TestExport(t *testing.T) {
	t.Parallel()
	s := &server{lines: []string{`{"id":"a"}`, `{"earlier":true,"id":"a"}`, `{"id":"ü"}`}}
	want := strings.Join(s.lines, "\n") + "\n"
	if out, err := s.run(t, Command, "", "export"); err != nil || out != want {
		t.Errorf("%q, %v", out, err)
	}
	path := filepath.Join(t.TempDir(), "out.jsonl")
	out, err := s.run(t, Command, "", "export", "--out", path)
	if err != nil || out != "exported 2 records to "+path+"\n" {
		t.Errorf("%q, %v", out, err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != want {
		t.Errorf("%q, %v", text, err)
	}
	s.failing = 2
	if _, err := s.run(t, Command, "", "export", "--out", path); status.Code(err) != codes.DataLoss {
		t.Error(err)
	}
	left, _ := os.ReadDir(filepath.Dir(path))
	if text, err := os.ReadFile(path); err != nil || string(text) != want || len(left) != 1 {
		t.Errorf("an export that failed leaves %v, and %q", left, text)
	}
}

// TestExportNotes: a folder of notes appears when it is whole, and has what is remembered now.
func TestExportNotes(t *testing.T) {
	t.Parallel()
	const line = `{"id":%q,"version":1,"text":"t","kind":"k","create_time":"2026-01-02T00:00:00Z","importance":0.5,"origin":"user","tier":3%s}`
	s := &server{lines: []string{
		`{"earlier":true,` + fmt.Sprintf(line, "a", "")[1:], fmt.Sprintf(line, "a", ""), fmt.Sprintf(line, "b", `,"superseded_by":"a"`), fmt.Sprintf(line, "../c", ""),
	}}
	path := filepath.Join(t.TempDir(), "notes")
	out, err := s.run(t, Command, "", "export", "--as", "markdown", "--out", path)
	all, _ := filepath.Glob(filepath.Join(path, "k", "t-*.md"))
	if err != nil || out != "exported 2 records to "+path+"\n" || len(all) != 2 {
		t.Errorf("%q, %q, %v", out, all, err)
	}
	s.failing = 3
	other := filepath.Join(filepath.Dir(path), "other")
	if _, err := s.run(t, Command, "", "export", "--as", "markdown", "--out", other); status.Code(err) != codes.DataLoss {
		t.Error(err)
	}
	if left, _ := os.ReadDir(filepath.Dir(path)); len(left) != 1 {
		t.Errorf("an export that failed leaves %v", left)
	}
}

// TestImportParts: whatever the lines are, all come once and in order, and no part is larger
// than a message may be.
func TestImportParts(t *testing.T) {
	t.Parallel()
	long := func(n int) string { return `{"text":"` + strings.Repeat("x", n) + `"}` }
	many := make([]string, 25_000)
	for i := range many {
		many[i] = fmt.Sprintf(`{"id":"%d"}`, i)
	}
	for name, lines := range map[string][]string{
		"none": nil, "one": {`{"id":"a"}`}, "blank ones": {"", `{"id":"a"}`, "  ", `{"id":"b"}`, ""}, "many": many,
		"long ones": {long(partBytes - 20), long(partBytes), long(3 * partBytes), `{"id":"a"}`, long(maxLine - 100)},
	} {
		s := &server{}
		if _, err := s.run(t, Command, strings.Join(lines, "\n"), "import"); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var got []string
		for i, part := range s.imports {
			size := 0
			for _, line := range part.GetLines() {
				size += len(line)
			}
			if len(part.GetLines()) > 1 && size > partBytes || len(part.GetLines()) > partLines {
				t.Errorf("%s: %d lines with %d bytes in one part", name, len(part.GetLines()), size)
			}
			if (part.GetImportId() != "") != (i == 0) || part.GetAgentId() != "a" {
				t.Errorf("%s: part %d names import %q of %q", name, i, part.GetImportId(), part.GetAgentId())
			}
			got = append(got, part.GetLines()...)
		}
		want := slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return strings.TrimSpace(line) == "" })
		if !slices.Equal(got, want) {
			t.Errorf("%s: %d lines came, %d were sent", name, len(got), len(want))
		}
	}
	s := &server{}
	_, err := s.run(t, Command, "{}\n"+long(maxLine), "import")
	if err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("a line that is too long: %v", err)
	}
}

// TestFailedImport: the error says why, and how to undo what was saved.
func TestFailedImport(t *testing.T) {
	t.Parallel()
	s := &server{failing: 1}
	_, err := s.run(t, Command, strings.Repeat("{}\n", 30_000), "import", "--user", "u")
	if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "records undo --agent a --user u "+s.imports[0].GetImportId()) {
		t.Error(err)
	}
	if _, err := s.run(t, Command, "", "import", filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if _, err := s.run(t, Command, "", "import", t.TempDir()); err == nil || !strings.Contains(err.Error(), "import markdown") {
		t.Errorf("a folder: %v", err)
	}
}

func TestPlainText(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		`{"id":"a"}`: `{"id":"a"}`, "\ufeff" + `{"id":"a"}`: `{"id":"a"}`, ` {"id":"a"}`: ` {"id":"a"}`, "": "", "  ": "  ", "\ufeff": "",
		"said \"so\"": `{"text":"said \"so\""}`, "\ufeffü": `{"text":"ü"}`, "[1]": `{"text":"[1]"}`,
	} {
		if got := asLine(line); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

func TestUndo(t *testing.T) {
	t.Parallel()
	s := &server{}
	out, err := s.run(t, Command, "", "undo", `I"D`)
	if err != nil || !strings.HasPrefix(out, `deleted 2 records of import I"D; 3 were changed since and stay, 1 are`) {
		t.Errorf("%q, %v", out, err)
	}
	if len(s.deleted) != 2 || s.deleted[0].GetDryRun() || !s.deleted[1].GetDryRun() || s.deleted[0].GetFilter() != `import_id = "I\"D" AND import_changes = 0` {
		t.Errorf("%v", s.deleted)
	}
}

func TestRelations(t *testing.T) {
	t.Parallel()
	s := &server{}
	out, err := s.run(t, Command, "", "relations", "k", "--key", "--direction", "in")
	if err != nil || !strings.Contains(out, `"part_of"`) || s.related[0].GetKey() != "k" || s.related[0].GetDirection() != loombridgev1.RelationDirection_RELATION_DIRECTION_IN {
		t.Errorf("%q, %v, %v", out, err, s.related)
	}
	if _, err := s.run(t, Command, "", "relations", "k", "--direction", "up"); err == nil || len(s.related) != 1 {
		t.Errorf("%v", err)
	}
	if out, err := s.run(t, Command, "", "relate", "a", "part_of", "b"); err != nil || out != "the relation was there already\n" {
		t.Errorf("%q, %v", out, err)
	}
}

func TestSessions(t *testing.T) {
	t.Parallel()
	s := &server{lines: []string{`{"kind":"session"}`, `{"kind":"end"}`, `{"kind":"session"}`, `{"kind":"end"}`}}
	path := filepath.Join(t.TempDir(), "s.jsonl")
	if out, err := s.run(t, Sessions, "", "export", "--out", path); err != nil || out != "exported 2 sessions to "+path+"\n" {
		t.Errorf("%q, %v", out, err)
	}
	out, err := s.run(t, Sessions, "", "import", path)
	if err != nil || !strings.HasPrefix(out, "imported 1 sessions") || !slices.Equal(s.sessions[0].GetLines(), s.lines) {
		t.Errorf("%q, %v, %v", out, err, s.sessions)
	}
	s.lines = nil
	if _, err := s.run(t, Sessions, "", "export", "--session", "none", "--out", path+"x"); err == nil {
		t.Error("a session that is not there is exported")
	}
	if _, err := os.Stat(path + "x"); err == nil {
		t.Error("and leaves a file")
	}
}
