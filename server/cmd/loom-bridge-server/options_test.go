package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/internal/testkit/contexts"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// readOf is a read of so many bytes in one line.
func (f *promptFigures) readOf(bytes int) *loombridgev1.RecordStepResponse {
	f.tb.Helper()
	return f.observe("fs:read_file", `{"path":"a"}`, fmt.Sprintf(`{"path":"a","content":%q}`, strings.Repeat("x", bytes)))
}

// From which size on results are offloaded by each option, and by a file of rules,
// which is stronger.
//
// K01
func TestOptionsOfOffloading(t *testing.T) {
	t.Parallel()
	rules := MustFile(t, "[tools.\"fs:read_file\"]\nfrom_bytes = 10\n")
	for _, tt := range []struct {
		args  []string
		bytes int // as many are offloaded, one less is not
	}{
		{nil, 1025},
		{[]string{"--history-preset=design"}, 1000},
		{[]string{"--history-preset=three_phase"}, 1501},
		{[]string{"--history-preset=design", "--rules=" + rules}, 10},
	} {
		f := MustFigures(t, tt.args...)
		if less, enough := f.readOf(tt.bytes-1), f.readOf(tt.bytes); less.GetOutputBlob() != nil || enough.GetOutputBlob() == nil {
			t.Errorf("%v: %d bytes are offloaded: %v, %d bytes: %v", tt.args, tt.bytes-1, less.GetOutputBlob() != nil, tt.bytes, enough.GetOutputBlob() != nil)
		}
	}
}

// What a read is called and how it is referred to, by each option and by the presets
// that have their own.
//
// K06, K54
func TestOptionsOfObservations(t *testing.T) {
	t.Parallel()
	const saved, hint = ". Saved to workspace/outputs/read_001.txt", "\nUse fs:read_file to retrieve if needed."
	const design, reduction = "Read file (1100 bytes)", "Read a (1100 bytes, text)"
	const long = "Read completed. Results saved to workspace/outputs/read_001.txt" + hint
	for _, tt := range []struct {
		args              []string
		step, observation string
	}{
		{nil, reduction, reduction + saved + hint},
		{[]string{"--history-preset=design"}, design, long},
		{[]string{"--history-preset=reduction"}, reduction, reduction + saved},
	} {
		got := MustFigures(t, tt.args...).readOf(1100)
		if got.GetStep().GetObservation() != tt.step || got.GetObservation() != tt.observation {
			t.Errorf("%v: %q, %q, want %q", tt.args, got.GetStep().GetObservation(), got.GetObservation(), tt.observation)
		}
	}
}

// How results are called by each preset. A path stays what it was made as when the
// server starts with another, and steps and references lead there under each.
//
// K08
func TestOptionsOfNaming(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	made := []*loombridgev1.BlobInfo{}
	for i, tt := range []struct {
		args []string
		want []string // of a command and a read
	}{
		{nil, []string{"shell_001.log", "read_002.txt"}},
		{[]string{"--history-preset=reduction"}, []string{"shell_001_2.log", "read_001.txt"}},
		{nil, []string{"shell_005.log", "read_006.txt"}},
		{[]string{"--history-preset=reduction"}, []string{"shell_002.log", "read_002_2.txt"}},
	} {
		p := MustRun(t, dir, tt.args...)
		f := &promptFigures{tb: t, context: contexts.New(p.conn), agent: "a"}
		text := strings.Repeat(fmt.Sprintf("line of server %d\n", i), 100)
		command := f.observe("system:shell", `{"command":"ls"}`, fmt.Sprintf(`{"stdout":%q,"exit_code":0}`, text)).GetOutputBlob()
		read := f.observe("fs:read_file", `{"path":"a"}`, fmt.Sprintf(`{"content":%q}`, "read: "+text)).GetOutputBlob()
		for at, b := range []*loombridgev1.BlobInfo{command, read} {
			name := strings.TrimPrefix(b.GetPath(), "workspace/outputs/")
			if name != tt.want[at] {
				t.Errorf("%v: %s, want %s", tt.args, name, tt.want[at])
			}
		}
		made = append(made, command, read)
		for n, b := range made {
			listed, err := f.context.ListBlobs(t.Context(), &loombridgev1.ListBlobsRequest{AgentId: "a", StepId: b.GetStepId()})
			must(t, err)
			if len(listed.GetBlobs()) != 1 || listed.GetBlobs()[0].GetPath() != b.GetPath() {
				t.Errorf("%v: the path of %s became %v", tt.args, b.GetPath(), listed.GetBlobs())
			}
			if got := f.blobOf(b.GetStepId()); got.GetStepId() != b.GetStepId() { // the result as it was given
				t.Errorf("%v: %s leads to %v", tt.args, b.GetStepId(), got)
			}
			for _, name := range []string{b.GetPath(), b.GetRef(), b.GetRef()[:12], "workspace/outputs/" + b.GetStepId() + b.GetPath()[len(b.GetPath())-4:]} {
				if got := f.blobOf(name); got.GetRef() != b.GetRef() || b.GetStepId() != fmt.Sprintf("step_%03d", n+1) {
					t.Errorf("%v: %s leads to %v, want %s", tt.args, name, got, b.GetPath())
				}
			}
		}
		must(t, p.Stop())
	}
}

// blobOf is what a name leads to.
func (f *promptFigures) blobOf(name string) *loombridgev1.BlobInfo {
	f.tb.Helper()
	stream, err := f.context.ReadBlob(f.tb.Context(), &loombridgev1.ReadBlobRequest{AgentId: f.agent, Name: name})
	must(f.tb, err)
	first, err := stream.Recv()
	must(f.tb, err)
	return first.GetInfo()
}

// The lines of older steps by each preset and by a file of rules; a placeholder that
// nobody knows stops the server from starting.
//
// K07, B04
func TestOptionsOfLines(t *testing.T) {
	t.Parallel()
	own := MustFile(t, "[tools.\"my:counter\"]\ncompact = \"Counted {path}\"\n")
	for _, tt := range []struct {
		preset string
		args   []string
		lines  []string
	}{
		{"design", nil, []string{"Wrote out.md (5 bytes)", `my:counter({"path":"sheep"})`}},
		{"reduction", nil, []string{"Wrote out.md\n", `my:counter({"path":"sheep"})`}},
		{"reduction", []string{"--rules=" + own}, []string{"Wrote out.md\n", "Counted sheep"}},
		{"design", []string{"--rules=" + own}, []string{"Counted sheep"}},
	} {
		f := MustFigures(t, tt.args...)
		f.observe("fs:write_file", `{"path":"out.md","content":"12345"}`, `{"bytes_written":5}`)
		f.observe("my:counter", `{"path":"sheep"}`, `{"n":3}`)
		for range 4 {
			f.observe("fs:stat", `{"path":"f"}`, `"ok"`)
		}
		text, _ := f.history(&loombridgev1.HistorySettings{Preset: tt.preset, Literal: new(true)})
		for _, line := range tt.lines {
			if !strings.Contains(text, line) {
				t.Errorf("%v: no %q in\n%s", tt.args, line, text)
			}
		}
	}
	bad := MustFile(t, "[tools.\"my:counter\"]\ncompact = \"Counted {nonsense}\"\n")
	if err := runBriefly(t, "--addr", "127.0.0.1:0", "--data-dir", t.TempDir()+"/store", "--rules", bad); err == nil || !strings.Contains(err.Error(), "nonsense") {
		t.Errorf("with an unknown placeholder the server starts: %v", err)
	}
}

// What a session is told by the server, by itself and by a call: the last wins.
//
// K50, X01
func TestOptionsOfHistories(t *testing.T) {
	t.Parallel()
	policy := func(f *promptFigures, session string, history *loombridgev1.HistorySettings) string {
		t.Helper()
		got, err := f.context.Assemble(t.Context(), &loombridgev1.AssembleRequest{AgentId: "a", SessionId: session, WithoutTools: true, History: history})
		must(t, err)
		return got.GetReceipt().GetPolicy()
	}
	for _, tt := range []struct {
		args []string
		want string
	}{
		{nil, "ledger"},
		{[]string{"--history-policy=ledger"}, "ledger"},
		{[]string{"--history-policy=append_only"}, "append_only"},
		{[]string{"--history-preset=design"}, "design"},
		{[]string{"--history-preset=debug"}, "debug"},
		{[]string{"--history-preset=reduction"}, "reduction"},
		{[]string{"--history-preset=task_context"}, "task_context"},
		{[]string{"--history-preset=three_phase"}, "three_phase"},
	} {
		f := MustFigures(t, tt.args...)
		_, err := f.context.ConfigureSession(t.Context(), &loombridgev1.ConfigureSessionRequest{AgentId: "a", SessionId: "own", History: &loombridgev1.HistorySettings{Preset: "code"}})
		must(t, err)
		for i, got := range []string{policy(f, "s", nil), policy(f, "own", nil), policy(f, "own", appendOnly()), policy(f, "s", &loombridgev1.HistorySettings{Preset: "chat"}), policy(f, "own", nil)} {
			if want := []string{tt.want, "code", "append_only", "chat", "code"}[i]; got != want {
				t.Errorf("%v, prompt %d: %s, want %s", tt.args, i+1, got, want)
			}
		}
	}
	for _, literal := range []bool{false, true} {
		f := MustFigures(t, "--history-preset=design")
		boundaries := 0
		for n := range 12 {
			f.observe("fs:stat", fmt.Sprintf(`{"path":"f%d"}`, n), `"ok"`)
			if text, _ := f.history(&loombridgev1.HistorySettings{Literal: &literal}); strings.Count(text, "• ") == n-2 && n > 4 {
				boundaries++
			}
		}
		if (boundaries == 7) != literal {
			t.Errorf("literal %v: the boundary is where the preset says %d times of 7", literal, boundaries)
		}
	}
}
