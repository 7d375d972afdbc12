package native_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/bridge/native"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// One rule for every name that may mean a file or something stored.
func TestWhoWinsAName(t *testing.T) {
	blobs := fakeBlobs{
		"workspace/history/step_001.json": "log step\n", "history/step_001.json": "log step\n", "step_001": "log result\n",
		"message_001": "log message\n", "message_002": "log message\n", "history/message_001.json": "log message\n",
		"workspace/history/step_001.compact": "log line\n",
	}
	b := MustBench(t, map[string]string{
		"workspace/history/step_001.json": "file\n", "workspace/history/other.json": "file\n", "history/step_001.json": "file\n",
		"step_001": "file\n", "message_001": "file\n", "step_002": "file\n", "message_009": "file\n", "step_001.txt": "file\n",
	}, blobs)
	for path, want := range map[string]string{
		// Under the long name what is stored wins.
		"workspace/history/step_001.json":                       "log step\n",
		"./workspace//history/../history/step_001.json":         "log step\n",
		filepath.Join(b.dir, "workspace/history/step_001.json"): "log step\n",
		"workspace/history/step_001.compact":                    "log line\n",
		"workspace/history/other.json":                          "file\n",
		// Under the bare id of a step or message the log does, if it has one.
		"step_001":    "log result\n",
		"message_001": "log message\n",
		"message_002": "log message\n",
		"step_002":    "file\n",
		"message_009": "file\n",
		// Under every other name the file does.
		"./step_001":                     "file\n",
		"./message_001":                  "file\n",
		filepath.Join(b.dir, "step_001"): "file\n",
		"step_001.txt":                   "file\n",
		"history/step_001.json":          "file\n",
		"history/message_001.json":       "log message\n",
	} {
		if got, err := b.try("fs:read_file", args{"path": path}); err != nil || got["content"] != want {
			t.Errorf("%s: got %v, %v; want %q", path, got, err, want)
		}
	}
}

// P13: what is read back is told apart from a file, so that nobody stores it
// again.
func TestReadBackSaysWhereItCameFrom(t *testing.T) {
	b := MustBench(t, map[string]string{"file": "text"}, fakeBlobs{"step_001": "blob\n", "message_001": "log\n"})
	tool, err := b.registry.Lookup("fs:read_file")
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]struct{ file, blob, origin string }{
		"file":        {file: "file"},
		"step_001":    {blob: "step_001"},
		"message_001": {origin: "message_001"},
	} {
		for _, arguments := range []map[string]any{
			{"path": path},
			{"path": path, "offset": json.Number("1")},
			{"path": path, "offset_bytes": json.Number("1")},
		} {
			r, err := tool.Run(t.Context(), tools.Input{Scope: kv.AgentScope("default", "tester"), Root: b.root, Args: arguments})
			if err != nil {
				t.Fatal(err)
			}
			if err := r.Body.Close(); err != nil {
				t.Error(err)
			}
			whole := len(arguments) == 1
			if whole && r.File != want.file || !whole && r.File != "" || r.Origin != want.origin || (r.Blob != nil) != (want.blob != "") {
				t.Errorf("%v: file %q, blob %v, origin %q", arguments, r.File, r.Blob, r.Origin)
			}
		}
	}
}

func TestReadBackOfWhatIsGone(t *testing.T) {
	b := MustBench(t, map[string]string{"step_001": "not what the step gave"}, fakeBlobs{
		"step_001": "collected", "workspace/outputs/read_001.txt": "collected", "step_002": "missing", "message_003": "missing",
	})
	const gone = ": the stored result expired and was removed at 1970-01-01T00:00:00Z; to have it again, make the call again"
	for path, want := range map[string]string{
		"step_001":                       gone,
		"workspace/outputs/read_001.txt": gone,
		"step_002":                       ": it is not there",
		"message_003":                    ": it is not there",
		"message_004":                    "",
	} {
		_, err := b.try("fs:read_file", args{"path": path})
		wantFailure(t, err, tools.NotFound, "File not found: "+path+want)
	}
}

func TestHostileNames(t *testing.T) {
	b := MustBench(t, nil, fakeBlobs{"step_001": "blob", "": "nothing", ".": "nothing"})
	for path, code := range map[string]tools.Code{
		"../step_001":                      tools.PermissionDenied,
		"workspace/history/../../../x":     tools.PermissionDenied,
		"/step_001":                        tools.PermissionDenied,
		"step_001\x00":                     tools.Failed,
		"workspace/history/step_001\x00":   tools.Failed,
		"step_99999999999999999999":        tools.NotFound,
		"message_99999999999999999999":     tools.NotFound,
		"message_0":                        tools.NotFound,
		"workspace/history/":               tools.NotFound,
		"workspace/history/..":             tools.NotFound,
		"workspace/history/step_001.json/": tools.NotFound,
		strings.Repeat("a", 5000):          tools.TooLarge,
	} {
		_, err := b.try("fs:read_file", args{"path": path})
		if failed, ok := err.(*tools.Error); !ok || failed.Code != code { //nolint:errorlint // the tool's own error is wanted
			t.Errorf("%.40q: got %v, want %s", path, err, code)
		}
	}
}

// P13: what is longer than a part is read to its end by the offsets that are
// told, by lines and by bytes.
func TestEveryByteByTheOffsetsTold(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 10 {
		var text strings.Builder
		for range random.IntN(400) {
			text.WriteString([]string{"a", "é", "世", "😀", "line\n", "\n", "\\\""}[random.IntN(7)])
		}
		content := text.String()
		b := MustBench(t, map[string]string{"file": content}, fakeBlobs{"step_001": content})
		for _, path := range []string{"file", "step_001"} {
			for _, limit := range []int{1, 5, 64, 1000} {
				if got := readOn(t, b, path, "offset", "limit", 1, limit); got != content {
					t.Fatalf("%s by %d lines: got %q, want %q", path, limit, got, content)
				}
				if got := readOn(t, b, path, "offset_bytes", "limit_bytes", 0, limit); got != content {
					t.Fatalf("%s by %d bytes: got %q, want %q", path, limit, got, content)
				}
			}
		}
	}
}

// readOn reads by parts until no next one is told.
func readOn(t *testing.T, b *bench, path, offset, limit string, at any, n int) string {
	t.Helper()
	var all strings.Builder
	for range 10_000 {
		out := b.must("fs:read_file", args{"path": path, offset: at, limit: n})
		content := out["content"].(string)
		if !utf8.ValidString(content) {
			t.Fatalf("%s at %v: %q is no text", path, at, content)
		}
		all.WriteString(content)
		next, more := out["next_"+offset]
		if !more {
			return all.String()
		}
		if next == at {
			t.Fatalf("%s stays at %v", path, at)
		}
		at = next
	}
	t.Fatalf("%s has no end", path)
	return ""
}

func TestBytesOfAFile(t *testing.T) {
	long := strings.Repeat("x", native.MaxRangeBytes+100)
	b := MustBench(t, map[string]string{"file": "0123456789", "long": "short\n" + long + "\nlast\n"}, nil)
	for _, tt := range []struct {
		ask  args
		want string
		next any
	}{
		{args{"offset_bytes": 2, "limit_bytes": 4}, "2345", int64(6)},
		{args{"offset_bytes": 2}, "23456789", nil},
		{args{"limit_bytes": 1}, "0123", int64(4)}, // room for any character
		{args{"limit_bytes": 10}, "0123456789", nil},
		{args{"offset_bytes": 10}, "", nil},
		{args{"offset_bytes": 1 << 40}, "", nil},
		{args{"limit_bytes": 1 << 60}, "0123456789", nil},
	} {
		tt.ask["path"] = "file"
		out := b.must("fs:read_file", tt.ask)
		if out["content"] != tt.want || out["next_offset_bytes"] != tt.next || out["size"] != int64(10) {
			t.Errorf("%v: got %v", tt.ask, out)
		}
	}
	// A line that is longer than a part is read on by bytes.
	out := b.must("fs:read_file", args{"path": "long", "offset": 2})
	if len(out["content"].(string)) != native.MaxRangeBytes || out["next_offset_bytes"] != int64(len("short\n")+native.MaxRangeBytes) {
		t.Errorf("long line: got %d bytes, next %v and %v", len(out["content"].(string)), out["next_offset"], out["next_offset_bytes"])
	}
	out = b.must("fs:read_file", args{"path": "long", "offset_bytes": out["next_offset_bytes"]})
	if want := long[native.MaxRangeBytes:] + "\nlast\n"; out["content"] != want {
		t.Errorf("behind it: got %q", out["content"])
	}
	for _, ask := range []args{
		{"offset": 1, "offset_bytes": 1}, {"limit": 1, "limit_bytes": 1}, {"end_line": 3, "offset_bytes": 1}, {"offset_bytes": -1}, {"limit_bytes": 0},
	} {
		ask["path"] = "file"
		if out, err := b.try("fs:read_file", ask); err == nil || !strings.Contains(fmt.Sprintf("%T", err), "ArgumentsError") {
			t.Errorf("%v: got %v, %v", ask, out, err)
		}
	}
}
