package hand_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/bridge/hand"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/compress"
	"github.com/loom-bridge/loom-bridge/internal/testkit/kvtest"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
)

// compressRequest is the result of a tool that nobody knows.
func compressRequest(content string) hand.CompressRequest {
	return hand.CompressRequest{Scope: agent, SessionID: "s1", CallID: "call-7", Result: compress.Result{Tool: "my:tool", Content: content}}
}

// compressed is a result that was compressed and stored.
func (w *world) compressed(r hand.CompressRequest) hand.CompressAnswer {
	w.tb.Helper()
	a, err := w.Compress(w.tb.Context(), r)
	if err != nil {
		w.tb.Fatal(err)
	}
	if !a.IsCompressed || a.Blob == nil {
		w.tb.Fatalf("not compressed: %.200q", a.Text)
	}
	return a
}

func longText(n int) string { return strings.Repeat("a line of a long result\n", n/24+1)[:n] }

func TestCompressedResultsAreStored(t *testing.T) {
	// J01, J02
	w := MustWorld(t, nil, nil)
	content := longText(1500) + "\"<é\u2028>\\"
	a := w.compressed(compressRequest(content))
	hash := sum(content)
	path := "storage/tool_results/" + hash[:12] + ".json"
	if !strings.HasPrefix(a.Text, "[COMPRESSED:"+hash[:12]+"] ") || !strings.HasSuffix(a.Text, "\nFull data: "+path) {
		t.Errorf("short form:\n%s", a.Text)
	}
	var file struct {
		RefID          string    `json:"ref_id"`
		ToolName       string    `json:"tool_name"`
		ToolID         string    `json:"tool_id"`
		CreatedAt      time.Time `json:"created_at"`
		OriginalLength int       `json:"original_length"`
		Content        string    `json:"content"`
	}
	decoder := json.NewDecoder(strings.NewReader(w.content(path)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&file); err != nil {
		t.Fatal(err)
	}
	if file.RefID != hash[:12] || file.ToolName != "my:tool" || file.ToolID != "call-7" || !file.CreatedAt.Equal(epoch) ||
		file.OriginalLength != 1506 || file.Content != content {
		t.Errorf("the stored file is %+v", file)
	}
	for _, name := range []string{path, hash[:12], strings.ToUpper(hash[:12])} {
		if got := w.content(name); got != w.content(path) {
			t.Errorf("%s leads to %.100q", name, got)
		}
	}
	if a.Blob.Path != path || a.Blob.Kind != blob.KindJSON || a.Blob.SessionID != "s1" || a.Blob.Category != blob.CategoryTool {
		t.Errorf("blob %+v", a.Blob)
	}
}

// The agent itself reads it back, whole.
func TestCompressedResultsAreReadBack(t *testing.T) {
	// J01, J02
	content := longText(9000)
	path := "storage/tool_results/" + sum(content)[:12] + ".json"
	// A file of the workspace does not take the place of what was stored.
	w := MustWorld(t, map[string]string{path: "something else"}, nil)
	a := w.compressed(compressRequest(content))
	whole := w.content(a.Blob.Path)
	for _, name := range []string{path, "./" + path, sum(content)[:12]} {
		read := w.must(request("fs:read_file", map[string]any{"path": name}))
		if !read.Success || field(t, read.Output, "content") != whole || read.Blob.Ref != a.Blob.Ref {
			t.Errorf("%s: %v, %.200s", name, read.ErrorMessage, read.Output)
		}
	}
	if used := w.usage(); used.Blobs != 1 {
		t.Errorf("reading it back made %d blobs", used.Blobs)
	}
}

func TestShortResultsAreNotStored(t *testing.T) {
	w := MustWorld(t, nil, nil)
	for _, r := range []hand.CompressRequest{
		compressRequest(longText(1500)), compressRequest(""),
		{Scope: agent, Result: compress.Result{Tool: "x", Content: longText(5000), Hint: compress.HintSkip}},
		{Scope: agent, Result: compress.Result{Tool: "x", Content: longText(5000), Failed: true}},
		{Scope: agent, Result: compress.Result{Tool: "x", Content: longText(5000), IsCompressed: true}},
	} {
		a, err := w.Compress(t.Context(), r)
		if err != nil || a.Text != r.Result.Content || a.Blob != nil || a.IsCompressed != r.Result.IsCompressed {
			t.Errorf("%+v, %v", a, err)
		}
	}
	if used := w.usage(); used.Blobs != 0 {
		t.Errorf("%d blobs are stored", used.Blobs)
	}
}

// usage is what the test's agent has stored.
func (w *world) usage() blob.Usage {
	w.tb.Helper()
	used, err := w.blobs.Usage(context.Background(), agent)
	if err != nil {
		w.tb.Fatal(err)
	}
	return used
}

func TestTheSameResultIsStoredOnce(t *testing.T) {
	// J02
	now := epoch
	w := MustWorld(t, nil, &hand.Options{Now: func() time.Time { return now }})
	r := compressRequest(longText(4000))
	first := w.compressed(r)
	now = now.Add(time.Hour)
	r.SessionID, r.CallID, r.Result.Tool, r.Result.Hint = "s2", "other", "other:tool", compress.HintForce
	second := w.compressed(r)
	if diff := cmp.Diff(first.Blob, second.Blob); diff != "" {
		t.Errorf("the same content has another blob (-first +second):\n%s", diff)
	}
	if first.Text == second.Text {
		t.Error("the hint does not count")
	}
	if used := w.usage(); used.Blobs != 1 {
		t.Errorf("%d blobs are stored", used.Blobs)
	}
	// When half of its time is over, it begins again.
	now = now.Add(12 * time.Hour)
	renewed := w.compressed(r)
	expires, _ := renewed.Blob.ExpireTime()
	if renewed.Blob.Ref != first.Blob.Ref || !expires.Equal(now.Add(24*time.Hour)) || w.usage().Blobs != 1 {
		t.Errorf("expires at %v, stored in %d blobs", expires, w.usage().Blobs)
	}
	// A place of its own does not take the path away.
	if _, err := w.blobs.Archive(t.Context(), agent, first.Blob.Path, blob.Archiving{}); err != nil {
		t.Fatal(err)
	}
	if archived := w.compressed(r); archived.Blob.Ref != first.Blob.Ref || !strings.HasSuffix(archived.Text, first.Blob.Path) {
		t.Errorf("archived: %+v, %s", archived.Blob, archived.Text)
	}
}

// A path whose ref begins the hash of other content is left to that.
func TestRefsGrowOnCollision(t *testing.T) {
	// J02
	w := MustWorld(t, nil, nil)
	content := longText(4000)
	hash := sum(content)
	squat := func(digits int, data string) {
		stored, err := w.blobs.Add(t.Context(), agent, []byte(data))
		if err != nil {
			t.Fatal(err)
		}
		err = w.writer.Do(t.Context(), kv.Request{Refs: []kv.Ref{w.blobs.Ref(agent)}, Stage: func(ctx context.Context, tx *kv.Tx) error {
			_, err := w.blobs.Stage(ctx, tx, agent, stored, blob.Entry{Path: blob.ResultPath(hash[:digits], blob.KindJSON), Category: "tool"})
			return err
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	squat(12, `{"content":"something else"}`)
	squat(13, `no JSON`)
	a := w.compressed(compressRequest(content))
	if a.Blob.Path != "storage/tool_results/"+hash[:14]+".json" || !strings.HasPrefix(a.Text, "[COMPRESSED:"+hash[:14]+"] ") {
		t.Errorf("stored at %s: %.40s", a.Blob.Path, a.Text)
	}
	if again := w.compressed(compressRequest(content)); again.Blob.Path != a.Blob.Path || again.Text != a.Text {
		t.Errorf("again it is at %s", again.Blob.Path)
	}
	if !strings.Contains(w.content(hash[:14]), content[:20]) || w.content(hash[:12]) != `{"content":"something else"}` {
		t.Error("a ref leads elsewhere")
	}
}

func TestCompressedResultsBelongToTheirAgent(t *testing.T) {
	w := MustWorld(t, nil, nil)
	r := compressRequest(longText(4000))
	path := w.compressed(r).Blob.Path
	if _, err := w.blobs.Lookup(t.Context(), other, path); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("another agent finds it: %v", err)
	}
	r.Scope = other
	if again := w.compressed(r); again.Blob.Path != path || w.usage().Blobs != 1 {
		t.Errorf("the other agent's is at %s", again.Blob.Path)
	}
}

func TestWhatIsNoTextIsStoredAsItIs(t *testing.T) {
	// J09
	w := MustWorld(t, nil, nil)
	for _, tt := range []struct{ content, kind, ext string }{
		{"\x89PNG\r\n\x1a\n" + strings.Repeat("\xfe\x00", 2000), blob.KindImage, "bin"},
		{"OggS" + strings.Repeat("\xfe", 2000), blob.KindAudio, "bin"},
		{strings.Repeat("x", 2000) + "\xff", blob.KindBinary, "bin"},
		{strings.Repeat("x", 2000) + "\x00", blob.KindBinary, "json"},
	} {
		a := w.compressed(compressRequest(tt.content))
		path := "storage/tool_results/" + sum(tt.content)[:12] + "." + tt.ext
		if a.ContentKind != tt.kind || a.Blob.Path != path || !strings.HasSuffix(a.Text, " → "+path+"]") {
			t.Errorf("%s: %s at %s: %s", tt.kind, a.ContentKind, a.Blob.Path, a.Text)
		}
		if tt.ext == "json" {
			continue
		}
		if a.Blob.Kind != tt.kind || w.content(path) != tt.content || w.content(sum(tt.content)[:12]) != tt.content {
			t.Errorf("%s: stored as %s, not byte for byte", tt.kind, a.Blob.Kind)
		}
		if again := w.compressed(compressRequest(tt.content)); again.Blob.Path != path {
			t.Errorf("%s: again at %s", tt.kind, again.Blob.Path)
		}
	}
}

// Nothing is returned that is not stored; what comes at once is stored once.
func TestCompressCommits(t *testing.T) {
	w := MustWorld(t, nil, nil)
	full := errors.New("no space left")
	w.engine.Replan(kvtest.FailurePlan{Commit: 1, Err: full})
	r := compressRequest(longText(4000))
	if a, err := w.Compress(t.Context(), r); !errors.Is(err, full) || a.Text != "" {
		t.Errorf("with a full disk: %+v, %v", a, err)
	}
	w.engine.Replan(kvtest.FailurePlan{})
	var all sync.WaitGroup
	paths := make([]string, 16)
	for i := range paths {
		all.Go(func() {
			a, err := w.Compress(t.Context(), r)
			if err != nil {
				t.Error(err)
				return
			}
			paths[i] = a.Blob.Path
		})
	}
	all.Wait()
	for _, path := range paths {
		if path != paths[0] {
			t.Errorf("stored at %s and %s", path, paths[0])
		}
	}
	if used := w.usage(); used.Blobs != 1 {
		t.Errorf("%d blobs are stored", used.Blobs)
	}
}

func TestToolsChooseTheStrategy(t *testing.T) {
	// J01
	w := MustWorld(t, nil, nil)
	w.add(tools.Descriptor{Name: "corpus:find", ResultKind: "search"}, give(nil, nil))
	w.add(tools.Descriptor{Name: "says:text", ResultKind: "text"}, give(nil, nil))
	hits := `{"results":[{"title":"a hit"}],"pages":"` + longText(100) + strings.ReplaceAll(longText(3000), "\n", " ") + `"}`
	hits = strings.ReplaceAll(hits, "\n", " ")
	for _, tt := range []struct {
		tool string
		want compress.Strategy
	}{
		{"corpus:find", compress.Search},
		{"says:text", compress.API},
		{"unknown:tool", compress.API},
		{"fs:read_file", compress.File},
		{"system:shell", compress.Exec},
	} {
		r := compressRequest(hits)
		r.Result.Tool = tt.tool
		if got := w.compressed(r).Strategy; got != tt.want {
			t.Errorf("%s: %s, want %s", tt.tool, got, tt.want)
		}
	}
}

func TestCompressRefuses(t *testing.T) {
	w := MustWorld(t, nil, nil)
	for field, spoil := range map[string]func(*hand.CompressRequest){
		"tool_name":       func(r *hand.CompressRequest) { r.Result.Tool = "" },
		"content":         func(r *hand.CompressRequest) { r.Result.Content = strings.Repeat("x", hand.MaxResultBytes+1) },
		"result_kind":     func(r *hand.CompressRequest) { r.Result.Kind = "cap" },
		"hint":            func(r *hand.CompressRequest) { r.Result.Hint = 4 },
		"threshold_chars": func(r *hand.CompressRequest) { r.Result.Threshold = -1 },
		"path":            func(r *hand.CompressRequest) { r.Result.Path = "\xff" },
		"session_id":      func(r *hand.CompressRequest) { r.SessionID = strings.Repeat("s", 300) },
		"call_id":         func(r *hand.CompressRequest) { r.CallID = "\x00" },
	} {
		r := compressRequest(longText(3000))
		spoil(&r)
		_, err := w.Compress(t.Context(), r)
		if bad, ok := errors.AsType[*invalid.Error](err); !ok || bad.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	if _, err := w.Compress(t.Context(), hand.CompressRequest{}); !errors.Is(err, kv.ErrBadScope) {
		t.Errorf("no agent: %v", err)
	}
	small := MustWorld(t, nil, nil)
	small.blobs = blob.New(small.engine, small.writer, &blob.Options{MaxOwnerBytes: 100})
	small.Hand = hand.New(hand.Deps{
		Tools: tools.NewCatalogue(small.registry, nil), Log: small.log, Blobs: small.blobs, Engine: small.engine, Writer: small.writer,
	}, nil)
	if _, err := small.Compress(t.Context(), compressRequest(longText(3000))); !errors.Is(err, blob.ErrQuota) {
		t.Errorf("over the quota: %v", err)
	}
}

// A damaged whole is not taken for the content.
func TestCompressStoresAgainWhatIsDamaged(t *testing.T) {
	w := MustWorld(t, nil, nil)
	content := longText(4000)
	first := w.compressed(compressRequest(content))
	hash, err := hex.DecodeString(first.Blob.Ref)
	if err != nil {
		t.Fatal(err)
	}
	err = w.writer.Do(t.Context(), kv.Request{Refs: []kv.Ref{w.blobs.Ref(agent)}, Stage: func(ctx context.Context, tx *kv.Tx) error {
		for pair, err := range tx.Scan(ctx, kv.Blobs, kv.Prefix(agent.Key('m'))) {
			if err != nil || !bytes.Contains(pair.Key, hash) {
				return fmt.Errorf("manifest %x: %w", pair.Key, err)
			}
			pair.Value[len(pair.Value)/2] ^= 1
			tx.Put(kv.Blobs, pair.Key, pair.Value)
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	second := w.compressed(compressRequest(content))
	if second.Blob.Path == first.Blob.Path {
		t.Fatal("the damaged file is referred to again")
	}
	if !strings.Contains(w.content(second.Blob.Path), content[:20]) {
		t.Error("the whole can't be read")
	}
}
