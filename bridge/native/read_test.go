package native_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/bridge/native"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

func TestReadFile(t *testing.T) {
	b := MustBench(t, map[string]string{"a.txt": "one\ntwo\nthree\n", "empty": "", "dir/x": "x"}, nil)
	for name, want := range map[string]string{"a.txt": "one\ntwo\nthree\n", "empty": ""} {
		if diff := cmp.Diff(map[string]any{"content": want}, b.must("fs:read_file", args{"path": name})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	_, err := b.try("fs:read_file", args{"path": "missing.txt"})
	wantFailure(t, err, tools.NotFound, "File not found: missing.txt")
	_, err = b.try("fs:read_file", args{"path": "a.txt/below"})
	wantFailure(t, err, tools.NotFound, "File not found: a.txt/below")
	_, err = b.try("fs:read_file", args{"path": "a.txt/"})
	wantFailure(t, err, tools.NotFound, "File not found: a.txt/")
	_, err = b.try("fs:read_file", args{"path": "dir"})
	wantFailure(t, err, tools.Failed, "dir: is a directory")
	for _, bad := range []args{{}, {"path": ""}, {"path": 3}, {"path": "a.txt", "offset": -1}, {"path": "a.txt", "limit": "two"}, {"path": "a.txt", "end_line": -2}, {"path": "a.txt", "start_line": 3, "end_line": 2}} {
		if _, err := b.try("fs:read_file", bad); !errors.Is(err, tools.ErrInvalidArguments) {
			t.Errorf("%v: got %v, want ErrInvalidArguments", bad, err)
		}
	}
}

func TestReadFileLines(t *testing.T) {
	lines := func(from, to int) string {
		var b strings.Builder
		for i := from; i <= to; i++ {
			fmt.Fprintf(&b, "line %d\n", i)
		}
		return b.String()
	}
	b := MustBench(t, map[string]string{
		"ten":      lines(1, 10),
		"open":     "a\nb",
		"many":     lines(1, 5000),
		"one long": strings.Repeat("é", 2*native.MaxRangeBytes),
		"two long": "short\n" + strings.Repeat("x", native.MaxRangeBytes) + "\nlast\n",
		"empty":    "",
	}, nil)
	part := func(content string, offset, lines, total int64, more ...any) map[string]any {
		out := map[string]any{"content": content, "offset": offset, "lines": lines, "total_lines": total, "truncated": false}
		for i := 0; i < len(more); i += 2 {
			out[more[i].(string)] = more[i+1]
		}
		return out
	}
	tests := []struct {
		name string
		args args
		want map[string]any
	}{
		{"middle", args{"path": "ten", "offset": 3, "limit": 2}, part(lines(3, 4), 3, 2, 10, "next_offset", int64(5))},
		{"other names", args{"path": "ten", "start_line": 3, "end_line": 4}, part(lines(3, 4), 3, 2, 10, "next_offset", int64(5))},
		{"end line alone", args{"path": "ten", "end_line": 1}, part(lines(1, 1), 1, 1, 10, "next_offset", int64(2))},
		{"to the end, as loom-py writes it", args{"path": "ten", "start_line": 9, "end_line": -1}, part(lines(9, 10), 9, 2, 10)},
		{"to the end of many", args{"path": "many", "start_line": 2, "end_line": 0}, part(lines(2, 5000), 2, 4999, 5000)},
		{"all, by loom-py's defaults", args{"path": "ten", "start_line": 1, "end_line": -1}, args{"content": lines(1, 10)}},
		{"all, from line zero", args{"path": "ten", "start_line": 0, "end_line": nil, "limit": 0}, part(lines(1, 10), 1, 10, 10)},
		{"limit zero is none", args{"path": "ten", "limit": 0}, args{"content": lines(1, 10)}},
		{"limit wins", args{"path": "ten", "start_line": 2, "end_line": -1, "limit": 1}, part(lines(2, 2), 2, 1, 10, "next_offset", int64(3))},
		{"numbers as text", args{"path": "ten", "start_line": "3", "end_line": "4"}, part(lines(3, 4), 3, 2, 10, "next_offset", int64(5))},
		{"limit alone", args{"path": "ten", "limit": 1}, part(lines(1, 1), 1, 1, 10, "next_offset", int64(2))},
		{"to the end", args{"path": "ten", "offset": 9, "limit": 2}, part(lines(9, 10), 9, 2, 10)},
		{"over the end", args{"path": "ten", "offset": 9, "limit": 9_000_000_000_000_000_000}, part(lines(9, 10), 9, 2, 10)},
		{"behind the end", args{"path": "ten", "offset": 11}, part("", 11, 0, 10)},
		{"no line feed at the end", args{"path": "open", "offset": 2}, part("b", 2, 1, 2)},
		{"empty file", args{"path": "empty", "offset": 1}, part("", 1, 0, 0)},
		{"default length", args{"path": "many", "offset": 2}, part(lines(2, 2001), 2, 2000, 5000, "next_offset", int64(2002))},
		{
			"a line over the limit",
			args{"path": "one long", "offset": 1},
			part(strings.Repeat("é", native.MaxRangeBytes/2), 1, 1, 1, "truncated", true, "next_offset_bytes", int64(native.MaxRangeBytes)),
		},
		{
			"a line that has no room",
			args{"path": "two long", "offset": 1},
			part("short\n", 1, 1, 3, "truncated", true, "next_offset", int64(2)),
		},
		{
			"that line",
			args{"path": "two long", "offset": 2},
			part(strings.Repeat("x", native.MaxRangeBytes), 2, 1, 3, "truncated", true, "next_offset", int64(3),
				"next_offset_bytes", int64(len("short\n")+native.MaxRangeBytes)),
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, b.must("fs:read_file", tt.args)); diff != "" {
				t.Errorf("(-want +got):\n%.2000s", diff)
			}
		})
	}
}

// MustSparse makes a file of a size without writing it, with a last line.
func MustSparse(tb testing.TB, b *bench, name string, size int64) {
	tb.Helper()
	file, err := os.Create(filepath.Join(b.dir, name))
	if err != nil {
		tb.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteAt([]byte("first\nsecond\n"), 0); err != nil {
		tb.Fatal(err)
	}
	if err := file.Truncate(size); err != nil {
		tb.Fatal(err)
	}
}

func TestReadFileOfOneGiB(t *testing.T) {
	const size = 1 << 30
	b := MustBench(t, nil, nil)
	MustSparse(t, b, "huge", size)
	_, err := b.try("fs:read_file", args{"path": "huge"})
	wantFailure(t, err, tools.TooLarge,
		"huge has 1073741824 bytes, more than the limit of 67108864 for one read; read it in parts with offset and limit (lines)")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	out := b.must("fs:read_file", args{"path": "huge", "offset": 2, "limit": 1})
	want := map[string]any{"content": "second\n", "offset": int64(2), "lines": int64(1), "truncated": false, "next_offset": int64(3)}
	if diff := cmp.Diff(want, out); diff != "" {
		t.Errorf("a part (-want +got):\n%s", diff)
	}
	out = b.must("fs:read_file", args{"path": "huge", "offset": 4})
	if out["content"] != "" || out["total_lines"] != int64(3) {
		t.Errorf("behind the end: got %.200v", out)
	}
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 8<<20 {
		t.Errorf("reading parts took %d bytes of memory", used)
	}
}

// fakeBlobs are blobs by name; content that holds "damaged" can't be read.
type fakeBlobs map[string]string

func (f fakeBlobs) Lookup(_ context.Context, _ kv.Scope, _, name string) (blob.Entry, error) {
	content, ok := f[name]
	switch {
	case !ok:
		return blob.Entry{}, blob.ErrNotFound
	case content == "collected":
		return blob.Entry{}, &blob.CollectedError{Name: name, Time: time.Unix(0, 0).UTC()}
	case content == "missing":
		return blob.Entry{}, &blob.MissingError{Name: name, Reason: "it is not there"}
	}
	e := blob.Entry{Path: name, Size: int64(len(content))}
	if !strings.HasPrefix(content, "log") {
		e.Ref = "ab"
	}
	return e, nil
}

func (f fakeBlobs) Read(_ context.Context, _ kv.Scope, e blob.Entry, offset, limit int64) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		content := []byte(f[e.Path])
		content = content[min(offset, int64(len(content))):]
		if limit >= 0 {
			content = content[:min(limit, int64(len(content)))]
		}
		if bytes.Contains(content, []byte("damaged")) {
			yield(nil, &blob.DamagedError{Ref: "aa", Chunk: 0, Problem: "test"})
			return
		}
		_ = yield(content[:len(content)/2], nil) && yield(content[len(content)/2:], nil)
	}
}

func TestReadFileFindsBlobs(t *testing.T) {
	// D05
	ref := strings.Repeat("0a", 32)
	blobs := fakeBlobs{
		"workspace/outputs/read_001.txt": "blob long\n",
		"outputs/read_001.txt":           "blob short\n",
		"outputs/only_blob.txt":          "blob only\n",
		"workspace/history/h.txt":        "blob history\n",
		"step_001":                       "blob by step\n",
		"step_002.json":                  "blob by step and ending\n",
		ref:                              "blob by ref\n",
		"workspace/outputs/bad.txt":      "damaged",
		"notes.txt":                      "never looked up\n",
	}
	b := MustBench(t, map[string]string{
		"workspace/outputs/read_001.txt": "file long\n",
		"workspace/outputs/file.txt":     "file without a blob\n",
		"outputs/read_001.txt":           "file short\n",
		"step_003":                       "file called like a step\n",
	}, blobs)
	for path, want := range map[string]string{
		"workspace/outputs/read_001.txt":    "blob long\n", // the blob wins
		"./workspace//outputs/read_001.txt": "blob long\n",
		"workspace/history/h.txt":           "blob history\n",
		"workspace/outputs/file.txt":        "file without a blob\n",
		"outputs/read_001.txt":              "file short\n", // the file wins
		"outputs/only_blob.txt":             "blob only\n",
		"step_001":                          "blob by step\n",
		"step_002.json":                     "blob by step and ending\n",
		"step_003":                          "file called like a step\n",
		ref:                                 "blob by ref\n",
	} {
		if got, err := b.try("fs:read_file", args{"path": path}); err != nil || got["content"] != want {
			t.Errorf("%s: got %v, %v; want %q", path, got, err, want)
		}
	}
	if got := b.must("fs:read_file", args{"path": "step_001", "offset": 1, "limit": 1}); got["content"] != "blob by step\n" || got["total_lines"] != int64(1) {
		t.Errorf("lines of a blob: got %v", got)
	}
	_, err := b.try("fs:read_file", args{"path": "workspace/outputs/bad.txt"})
	wantFailure(t, err, tools.Failed, "workspace/outputs/bad.txt: the stored result is damaged")
	for _, path := range []string{"notes.txt", "step_009", "outputs/none", "workspace/outputs/none"} {
		_, err := b.try("fs:read_file", args{"path": path})
		wantFailure(t, err, tools.NotFound, "File not found: "+path)
	}
}

func TestReadFileEndsWithItsContext(t *testing.T) {
	b := MustBench(t, nil, nil)
	MustSparse(t, b, "huge", 1<<30)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, name := range []string{"fs:read_file", "fs:list_dir", "fs:search", "fs:write_file", "fs:delete"} {
		tool, err := b.registry.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		call := tools.Input{Root: b.root, Args: map[string]any{"path": ".", "query": "x", "content": "x"}}
		if _, err := tool.Run(ctx, call); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v, want the context's error", name, err)
		}
	}
}
