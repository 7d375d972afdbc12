package blob_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/context/blob"
)

const resultRef = "0a1b2c3d4e5f"

// A compressed tool result is found by its own ref, which is no hash of what is
// stored, and by that of the blob.
func TestResultsAreFoundByTheirRef(t *testing.T) {
	f := newMemory(t)
	text := f.mustStage(t, alice, []byte(`{"content":"x"}`), blob.Entry{Path: blob.ResultPath(resultRef, blob.KindJSON), Category: "tool"})
	longer := f.mustStage(t, alice, []byte(`{"content":"y"}`), blob.Entry{Path: blob.ResultPath(resultRef+"6", blob.KindJSON), Category: "tool"})
	image := f.mustStage(t, alice, []byte("\x89PNG\r\n\x1a\n\x00"), blob.Entry{Path: blob.ResultPath("ffffffffffff", blob.KindImage), Category: "tool"})
	for name, want := range map[string]blob.Entry{
		"storage/tool_results/" + resultRef + ".json": text,
		resultRef:                               text,
		strings.ToUpper(resultRef):              text,
		text.Ref:                                text,
		text.Ref[:12]:                           text,
		resultRef + "6":                         longer,
		"ffffffffffff":                          image,
		"storage/tool_results/ffffffffffff.bin": image,
	} {
		if got := f.mustLookup(t, alice, name); got.Path != want.Path {
			t.Errorf("%s leads to %s, want %s", name, got.Path, want.Path)
		}
	}
	for _, name := range []string{resultRef[:11], resultRef + "7", resultRef + ".json", "storage/tool_results/" + resultRef, "gggggggggggg", "ａｂｃｄｅｆａｂｃｄｅｆ"} {
		if e, err := f.Lookup(t.Context(), alice, name); !errors.Is(err, blob.ErrNotFound) {
			t.Errorf("%q leads to %s, %v", name, e.Path, err)
		}
	}
	if _, err := f.Lookup(t.Context(), bob, resultRef); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("another owner finds it: %v", err)
	}
}

// A text that shows nothing but the ref keeps the result.
func TestResultRefsKeep(t *testing.T) {
	for text, keeps := range map[string]bool{
		"[COMPRESSED:" + resultRef + "] Found 8 results.":           true,
		"Full data: storage/tool_results/" + resultRef + ".json":    true,
		`{"text":"[COMPRESSED:` + resultRef + `] 4 keys\nid: 1"}`:   true,
		"[COMPRESSED:" + resultRef[:11] + "] is another, of course": false,
	} {
		f := newFixtureWith(t, blob.Options{Sessions: &world{}, CollectEvery: -1})
		e := f.mustStage(t, alice, []byte(`{"content":"x"}`), blob.Entry{Path: blob.ResultPath(resultRef, blob.KindJSON), Category: "tool"})
		f.now = late
		f.say(t, alice, text)
		f.mustCollect(t, alice, nil)
		_, err := f.Lookup(t.Context(), alice, e.Path)
		if kept := err == nil; kept != keeps {
			t.Errorf("%s: kept %v, want %v (%v)", text, kept, keeps, err)
		}
		if _, byRef := f.Lookup(t.Context(), alice, resultRef); !keeps && !errors.Is(byRef, blob.ErrCollected) {
			t.Errorf("by its ref it is not known to be collected: %v", byRef)
		}
	}
}

func TestRenew(t *testing.T) {
	f := newMemory(t)
	f.mustStage(t, alice, []byte("x"), blob.Entry{StepID: "step_001", Category: "shell"})
	f.now = noon.Add(time.Hour)
	if e := f.mustLookup(t, alice, "step_001"); !e.Expired {
		t.Fatal("it has not expired")
	}
	e, err := f.Renew(t.Context(), alice, "step_001")
	if at, _ := e.ExpireTime(); err != nil || e.Expired || !at.Equal(f.now.Add(30*time.Minute)) || len(e.Aliases) > 0 {
		t.Errorf("renewed: %+v, %v", e, err)
	}
	if again := f.mustLookup(t, alice, "step_001"); again.Expired || again.Path != e.Path {
		t.Errorf("stored: %+v", again)
	}
	if _, err := f.Renew(t.Context(), alice, "step_002"); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("what is not there: %v", err)
	}
}

// What bytes look like is the same before they are stored and after.
func TestKindOf(t *testing.T) {
	f := newMemory(t)
	for _, data := range []string{
		"", "text", `{"a":1}`, `{"a":1`, "\x89PNG\r\n\x1a\n\x00", "RIFF0000WAVE\x00", "%PDF-1.7\x00", "a\x00b", "\xff", "é", "\xc3", "data: image",
	} {
		e := f.mustStage(t, alice, []byte(data), blob.Entry{Path: "x/" + strings.Repeat("y", len(data)+1), Category: "tool"})
		if kind, media := blob.KindOf([]byte(data)); kind != e.Kind || media != e.MediaType {
			t.Errorf("%q: %s %q, stored as %s %q", data, kind, media, e.Kind, e.MediaType)
		}
	}
}
