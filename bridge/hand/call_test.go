package hand_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/bridge/hand"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

func sum(text string) string {
	hash := sha256.Sum256([]byte(text))
	return hex.EncodeToString(hash[:])
}

func TestReadBecomesAStep(t *testing.T) {
	// A01, A09
	long := strings.Repeat("line of text\n", 300_000) // several chunks
	tests := []struct {
		name, path, content string
		kind                string
		blobPath            string // empty when nothing is offloaded
	}{
		{"up to the limit", "a.txt", strings.Repeat("x", 1024), "text", ""},
		{"over the limit", "a.txt", strings.Repeat("x", 1025), "text", "workspace/outputs/read_001.txt"},
		{"JSON", "a.JSON", "{" + strings.Repeat(" ", 2000) + "}", "JSON", "workspace/outputs/read_001.json"},
		{"binary", "a.txt", strings.Repeat("\xff\x00", 1000), "binary", "workspace/outputs/read_001.bin"},
		{"short binary", "a.txt", "ab\x00c", "binary", "workspace/outputs/read_001.bin"},
		{"bytes", "a.txt", "caf\xe9\x01", "binary", "workspace/outputs/read_001.bin"},
		{"empty", "a.txt", "", "text", ""},
		{"several chunks", "a.txt", long, "text", "workspace/outputs/read_001.txt"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := MustWorld(t, map[string]string{tt.path: tt.content}, nil)
			req := request("read_file", map[string]any{"path": tt.path})
			req.Thought, req.TurnID, req.CallID, req.SessionID = "why", "t1", "c1", "s1"
			a := w.must(req)
			observation := fmt.Sprintf("Read %s (%d bytes, %s)", tt.path, len(tt.content), tt.kind)
			want := step.Step{
				Number: 1, SessionID: "s1", ToolName: "fs:read_file", CalledAs: "read_file",
				Observation: observation, Time: epoch, Thought: "why", TurnID: "t1", CallID: "c1",
				OutcomePath: tt.blobPath, Given: step.Given{Form: step.FormText, Source: step.SourceInline},
			}
			if tt.kind == "binary" {
				want.Given.Form = step.FormBytes
			}
			if tt.blobPath != "" {
				want.OutcomeRef, want.Given.Source = sum(tt.content), step.SourceOutcome
				observation += ". Saved to " + tt.blobPath + "\nUse fs:read_file to retrieve if needed."
			}
			got := w.steps("s1")[0]
			if diff := cmp.Diff(got, *a.Step); diff != "" {
				t.Errorf("the step in the answer differs from the log's (-log +answer):\n%s", diff)
			}
			if string(got.MinimalArgs) != fmt.Sprintf(`{"path":%q}`, tt.path) {
				t.Errorf("minimal args are %s", got.MinimalArgs)
			}
			if field(t, got.Metadata, "sha256") != sum(tt.content) || field(t, got.Metadata, "type") != tt.kind {
				t.Errorf("metadata is %s", got.Metadata)
			}
			got.MinimalArgs, got.Args, got.Metadata, got.Inline = nil, nil, nil, ""
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("step (-want +got):\n%s", diff)
			}
			if a.Observation != observation || a.Position != 1 || !a.Success || a.ErrorCode != "" {
				t.Errorf("answer: %q at %d, %v %s", a.Observation, a.Position, a.Success, a.ErrorCode)
			}
			if tt.blobPath == "" {
				if a.Blob != nil {
					t.Errorf("offloaded to %s", a.Blob.Path)
				}
				return
			}
			for _, name := range []string{tt.blobPath, "step_001", sum(tt.content), sum(tt.content)[:12]} {
				if w.content(name) != tt.content {
					t.Errorf("%s does not read back byte for byte", name)
				}
			}
		})
	}
}

func TestOutputIsCutToItsLimit(t *testing.T) {
	var text strings.Builder
	for i := range 200_000 {
		fmt.Fprintf(&text, "line %d with \"quotes\" and \x01\n", i+1)
	}
	w := MustWorld(t, map[string]string{"long": text.String(), "one": strings.Repeat("é", 1_500_000)}, nil)
	a := w.must(request("fs:read_file", map[string]any{"path": "long"}))
	if !a.Truncated || len(a.Output) > hand.MaxOutputBytes || a.Blob == nil || field(t, a.Output, "truncated") != true {
		t.Fatalf("truncated %v, %d bytes, blob %v", a.Truncated, len(a.Output), a.Blob)
	}
	// Reading on from where it was cut gives everything.
	whole := field(t, a.Output, "content").(string)
	for next := field(t, a.Output, "next_offset"); next != nil; {
		a = w.must(request("fs:read_file", map[string]any{"path": a.Blob.Path, "offset": next, "limit": 1_000_000}))
		whole += field(t, a.Output, "content").(string)
		next = field(t, a.Output, "next_offset")
	}
	if whole != text.String() {
		t.Errorf("read %d bytes in parts, want %d", len(whole), text.Len())
	}
	a = w.must(request("fs:read_file", map[string]any{"path": "one"}))
	content := field(t, a.Output, "content").(string)
	if !a.Truncated || !strings.HasPrefix(strings.Repeat("é", 1_500_000), content) || content == "" || field(t, a.Output, "next_offset") != nil {
		t.Errorf("one line: truncated %v, %d bytes", a.Truncated, len(content))
	}
}

func TestBinaryIsDescribed(t *testing.T) {
	png := "\x89PNG\r\n\x1a\n" + strings.Repeat("\xfe", 10)
	w := MustWorld(t, map[string]string{"a.png": png, "nul.txt": "a\x00b", "long": strings.Repeat("x", 2<<20) + "\xff"}, nil)
	a := w.must(request("fs:read_file", map[string]any{"path": "a.png"}))
	want := fmt.Sprintf(`{"binary":true,"content":"","sha256":%q,"size":18}`, sum(png))
	if string(a.Output) != want {
		t.Errorf("got %s\nwant %s", a.Output, want)
	}
	a = w.must(request("fs:read_file", map[string]any{"path": "nul.txt"}))
	if want := `{"content":"a\u0000b"}`; string(a.Output) != want {
		t.Errorf("text with a NUL: got %s, want %s", a.Output, want)
	}
	a = w.must(request("fs:read_file", map[string]any{"path": "long"}))
	if field(t, a.Output, "binary") != true || a.Blob.Size != 2<<20+1 {
		t.Errorf("binary at the end: got %.100s", a.Output)
	}
}

func TestBlobsAreStoredOnce(t *testing.T) {
	// D03
	content := strings.Repeat("same\n", 1000)
	w := MustWorld(t, map[string]string{"a": content, "b": content}, nil)
	a := w.must(request("fs:read_file", map[string]any{"path": "a"}))
	b := w.must(request("fs:read_file", map[string]any{"path": "b"}))
	if a.Blob.Ref != b.Blob.Ref || a.Blob.Path == b.Blob.Path {
		t.Errorf("equal content: got %+v and %+v", a.Blob, b.Blob)
	}
	if w.content(a.Blob.Path) != content || w.content(b.Blob.Path) != content {
		t.Error("one of the paths does not lead to the content")
	}
}

func TestReadBack(t *testing.T) {
	// D05
	long := strings.Repeat("0123456789abcde\n", 200_000) // 3.2 MB
	for name, content := range map[string]string{"short": strings.Repeat("line\n", 500), "long": long} {
		t.Run(name, func(t *testing.T) {
			w := MustWorld(t, map[string]string{"a.txt": content}, nil)
			first := w.must(request("fs:read_file", map[string]any{"path": "a.txt"}))
			if err := os.Remove(filepath.Join(w.dir, "a.txt")); err != nil {
				t.Fatal(err)
			}
			names := []string{
				"workspace/outputs/read_001.txt", "outputs/read_001.txt", "step_001", "step_001.txt",
				first.Blob.Ref, first.Blob.Ref[:12],
			}
			for _, name := range names {
				a := w.must(request("fs:read_file", map[string]any{"path": name}))
				if diff := cmp.Diff(first.Blob, a.Blob); diff != "" {
					t.Errorf("%s: another blob (-first +got):\n%s", name, diff)
				}
				if a.Step.OutcomeRef != first.Blob.Ref || a.Step.OutcomePath != first.Blob.Path {
					t.Errorf("%s: the step refers to %s", name, a.Step.OutcomePath)
				}
				got := field(t, a.Output, "content").(string)
				if !strings.HasPrefix(content, got) || got != content && !a.Truncated {
					t.Errorf("%s: read %d of %d bytes, truncated %v", name, len(got), len(content), a.Truncated)
				}
				if field(t, a.Step.Metadata, "sha256") != sum(content) {
					t.Errorf("%s: metadata is %s", name, a.Step.Metadata)
				}
			}
			a := w.must(request("fs:read_file", map[string]any{"path": "step_001", "offset": 2, "limit": 400}))
			line := strings.SplitAfterN(content, "\n", 2)[0]
			if field(t, a.Output, "content") != strings.Repeat(line, 400) || a.Blob.Path != first.Blob.Path {
				t.Errorf("lines: got %.100s from %+v", a.Output, a.Blob)
			}
			for n := 2; n <= len(names)+2; n++ {
				if _, err := w.blobs.Lookup(t.Context(), agent, step.ID(uint64(n))); !errors.Is(err, blob.ErrNotFound) {
					t.Errorf("reading back made a blob of %s: %v", step.ID(uint64(n)), err)
				}
			}
		})
	}
}

func TestNoAgentReadsAnothersBlobs(t *testing.T) {
	w := MustWorld(t, map[string]string{"a.txt": strings.Repeat("x", 5000)}, nil)
	first := w.must(request("fs:read_file", map[string]any{"path": "a.txt"}))
	for _, name := range []string{first.Blob.Path, "step_001", first.Blob.Ref} {
		req := request("fs:read_file", map[string]any{"path": name})
		req.Scope = other
		if a := w.must(req); a.Success || a.ErrorCode != tools.NotFound {
			t.Errorf("%s: the other agent got %.100s", name, a.Output)
		}
	}
}

func TestWrittenContentIsKept(t *testing.T) {
	// A11
	w := MustWorld(t, nil, nil)
	content := strings.Repeat("secret words ", 200)
	a := w.must(request("fs:write_file", map[string]any{"path": "a.txt", "content": content}))
	if want := `{"bytes_written":2600,"path":"a.txt","success":true}`; string(a.Output) != want {
		t.Errorf("output: got %s, want %s", a.Output, want)
	}
	s := w.steps("default")[0]
	if s.Observation != "Wrote a.txt (2600 bytes)" || s.OutcomeRef != "" || s.OutcomePath != "" || a.Blob != nil {
		t.Errorf("step: %q refers to %q", s.Observation, s.OutcomePath)
	}
	if all := fmt.Sprintf("%s%s%s%s%s%s", s.MinimalArgs, s.Args, s.Observation, s.Inline, s.Metadata, a.Observation); strings.Contains(all, "secret") {
		t.Errorf("the content is in the step: %.300s", all)
	}
	if field(t, s.Metadata, "sha256") != sum(content) || field(t, s.Metadata, "size") != float64(2600) {
		t.Errorf("metadata is %s", s.Metadata)
	}
	if w.content("step_001") != content {
		t.Error("the content is not found by the step's id")
	}
	read := func() any {
		return field(t, w.must(request("fs:read_file", map[string]any{"path": "./a.txt"})).Step.Metadata, "changed_since_write")
	}
	if got := read(); got != nil {
		t.Errorf("unchanged: changed_since_write is %v", got)
	}
	w.put("a.txt", "changed from outside")
	if got := read(); got != true {
		t.Errorf("changed: changed_since_write is %v", got)
	}
	w.must(request("fs:write_file", map[string]any{"path": "a.txt", "content": ", then added to", "append": true}))
	if got := read(); got != nil {
		t.Errorf("appended: changed_since_write is %v", got)
	}
	if left := w.intents(); len(left) != 0 {
		t.Errorf("intents are left: %v", left)
	}
}

func TestReadStaysInline(t *testing.T) {
	// A10
	content := strings.Repeat("still needed\n", 200)
	w := MustWorld(t, map[string]string{"a.txt": content}, nil)
	a := w.must(request("fs:read_file", map[string]any{"path": "a.txt"}))
	if a.Step.OutcomeRef == "" || a.Step.Inline != content {
		t.Errorf("ref %q, %d bytes inline", a.Step.OutcomeRef, len(a.Step.Inline))
	}
}

func TestListBecomesAStep(t *testing.T) {
	// A12
	files := map[string]string{"eleven/sub/x": ""}
	for i := range 10 {
		files[fmt.Sprintf("ten/%d", i)], files[fmt.Sprintf("eleven/%d", i)] = "", ""
	}
	w := MustWorld(t, files, nil)
	ten := w.must(request("fs:list_dir", map[string]any{"path": "ten"}))
	if ten.Step.Observation != "Listed ten: 10 items (10 files, 0 dirs)" || ten.Blob != nil {
		t.Errorf("ten: %q, blob %v", ten.Step.Observation, ten.Blob)
	}
	eleven := w.must(request("list_dir", map[string]any{"path": "eleven"}))
	if eleven.Step.Observation != "Listed eleven: 11 items (10 files, 1 dirs)" || eleven.Blob == nil {
		t.Fatalf("eleven: %q, blob %v", eleven.Step.Observation, eleven.Blob)
	}
	if eleven.Blob.Path != "workspace/outputs/list_002.json" || w.content("outputs/list_002.json") != string(eleven.Output) {
		t.Errorf("eleven: blob %s differs from the output", eleven.Blob.Path)
	}
}

func TestFailedToolsAreRecorded(t *testing.T) {
	// A06
	w := MustWorld(t, nil, nil)
	w.add(tools.Descriptor{Name: "odd:result"}, give(map[string]any{"path": 7, "entries": "none"}, nil))
	w.add(tools.Descriptor{Name: "no:json"}, give(map[string]any{"x": make(chan int)}, nil))
	w.add(tools.Descriptor{Name: "ask:first", RequiresApproval: true, Mutates: true}, give(nil, nil))
	w.add(tools.Descriptor{Name: "plain:error"}, give(nil, errors.New("it broke")))
	w.add(tools.Descriptor{Name: "long:error"}, give(nil, errors.New(strings.Repeat("é", 100_000))))
	tests := []struct {
		tool    string
		args    map[string]any
		code    tools.Code
		message string
	}{
		{"fs:read_file", map[string]any{"path": "missing"}, tools.NotFound, "File not found: missing"},
		{"fs:read_file", map[string]any{"path": "../x"}, tools.PermissionDenied, "Permission denied: Path traversal detected"},
		{"fs:delete", map[string]any{"path": "missing"}, tools.NotFound, "File not found: missing"},
		{"ask:first", nil, tools.PermissionDenied, "Permission denied: ask:first needs the approval of a person, but no approver is connected: run `loom-bridge-server approvals watch --answer`, then call again"},
		{"plain:error", nil, tools.Failed, "it broke"},
		{"no:json", nil, tools.Failed, "Internal error: the result is no JSON: json: unsupported type: chan int"},
	}
	for i, tt := range tests {
		a := w.must(request(tt.tool, tt.args))
		if a.Success || a.Output != nil || a.ErrorCode != tt.code || a.ErrorMessage != tt.message {
			t.Errorf("%s: got %v, %s: %s", tt.tool, a.Success, a.ErrorCode, a.ErrorMessage)
		}
		s := w.steps("default")[i]
		if s.Outcome != step.Failed || s.ErrorCode != string(tt.code) || s.Error != tt.message || s.Observation != tt.tool+" failed: "+tt.message {
			t.Errorf("%s: the step is %+v", tt.tool, s)
		}
	}
	if a := w.must(request("long:error", nil)); len(a.ErrorMessage) > step.MaxErrorBytes || a.Step.Error != a.ErrorMessage {
		t.Errorf("long error: %d bytes, %d in the step", len(a.ErrorMessage), len(a.Step.Error))
	}
	if a := w.must(request("odd:result", nil)); !a.Success {
		t.Errorf("odd result: %s", a.ErrorMessage)
	}
	if left := w.intents(); len(left) != 0 {
		t.Errorf("intents are left: %v", left)
	}
}

func TestRefusedCallsLeaveNoTrace(t *testing.T) {
	w := MustWorld(t, map[string]string{"a": "x"}, nil)
	bad := func(change func(*hand.Request)) hand.Request {
		req := request("fs:read_file", map[string]any{"path": "a"})
		change(&req)
		return req
	}
	tests := []struct {
		name string
		req  hand.Request
		want error
	}{
		{"unknown tool", bad(func(r *hand.Request) { r.Name = "fs:read" }), tools.ErrToolNotFound},
		{"bad JSON", bad(func(r *hand.Request) { r.Args = []byte(`{"path":`) }), tools.ErrInvalidArguments},
		{"bad JSON for an unknown tool", bad(func(r *hand.Request) { r.Name, r.Args = "x", []byte(`{`) }), tools.ErrInvalidArguments},
		{"no object", bad(func(r *hand.Request) { r.Args = []byte(`[]`) }), tools.ErrInvalidArguments},
		{"missing argument", bad(func(r *hand.Request) { r.Args = nil }), tools.ErrInvalidArguments},
		{"refused by the tool", request("fs:search", map[string]any{"query": "(", "regex": true}), tools.ErrInvalidArguments},
		{"no agent", bad(func(r *hand.Request) { r.Scope.Owner = "" }), kv.ErrBadScope},
		{"long session", bad(func(r *hand.Request) { r.SessionID = strings.Repeat("x", 257) }), hand.ErrInvalid},
		{"session not UTF-8", bad(func(r *hand.Request) { r.SessionID = "\xff" }), hand.ErrInvalid},
		{"long thought", bad(func(r *hand.Request) { r.Thought = strings.Repeat("x", hand.MaxThoughtBytes+1) }), hand.ErrInvalid},
		{"long request id", bad(func(r *hand.Request) { r.RequestID = strings.Repeat("x", hand.MaxIDBytes+1) }), hand.ErrInvalid},
		{"NUL in the call id", bad(func(r *hand.Request) { r.CallID = "\x00" }), hand.ErrInvalid},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if a, err := w.Call(t.Context(), tt.req); !errors.Is(err, tt.want) {
				t.Errorf("got %+v, %v; want %v", a, err, tt.want)
			}
		})
	}
	if got := w.steps("default"); len(got) != 0 {
		t.Errorf("refused calls are in the log: %+v", got)
	}
	_, err := w.Call(t.Context(), hand.Request{Scope: agent, Name: "fs_search", Args: []byte(`{"query":"(","regex":true}`)})
	refusal, ok := errors.AsType[*tools.ArgumentsError](err)
	if !ok || refusal.Tool != "fs:search" || len(refusal.Schema) == 0 || refusal.Violations[0].Path != "query" {
		t.Errorf("a tool's own refusal: got %#v", err)
	}
}

func TestStepNumbersHaveNoGap(t *testing.T) {
	w := MustWorld(t, map[string]string{"a": strings.Repeat("x", 3000)}, nil)
	var all sync.WaitGroup
	for i := range 32 {
		all.Go(func() {
			name, args := "fs:read_file", map[string]any{"path": "a"}
			if i%4 == 0 {
				name, args = "fs:write_file", map[string]any{"path": fmt.Sprint("w", i), "content": "x"}
			}
			w.must(request(name, args))
		})
	}
	all.Wait()
	for i, s := range w.steps("default") {
		if s.Number != uint64(i+1) {
			t.Errorf("step %d has number %d", i+1, s.Number)
		}
		if s.NeedsOffload() && w.content(s.ID()) != strings.Repeat("x", 3000) {
			t.Errorf("%s does not lead to its content", s.ID())
		}
	}
}
