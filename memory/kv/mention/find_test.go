package mention_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/kv/mention"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
)

const ref = "9c41d07be2aa55c04d7c1a3f0d8b9e6c2b1a00ffeeddccbbaa99887766554433"

// matches reports whether a name of a text is found by a pattern.
func matches(names []mention.Name, patterns []mention.Pattern) bool {
	return slices.ContainsFunc(names, func(n mention.Name) bool {
		return slices.ContainsFunc(patterns, func(p mention.Pattern) bool { return strings.HasPrefix(string(n), string(p)) })
	})
}

// Every way to name a blob is found wherever it stands in a text, and nothing else is.
func TestNames(t *testing.T) {
	patterns := mention.Patterns(ref, 12, "workspace/outputs/read_012.txt", "persistent/al ice/c/Übersicht 1 <neu>.txt", "archive/reports/short")
	long := "archive/general/" + strings.Repeat("long name ", 12) + ".txt"
	for text, want := range map[string]bool{
		"workspace/outputs/read_012.txt":                                true,
		"see outputs/read_012.txt.":                                     true,
		"./outputs/file_012.txt":                                        true,
		`{"path":"workspace\/outputs\/file_012.txt"}`:                   true,
		"persistent/al ice/c/Übersicht 1 <neu>.txt":                     true,
		`"persistent\/al ice\/c\/\u00dcbersicht 1 \u003cneu\u003e.txt"`: true,
		"in archive/reports/short we find":                              true,
		"step_012":                                                      true,
		"outputs/step_012.json, for instance":                           true,
		ref:                                                             true,
		"sha256:" + ref[:12]:                                            true,
		"file" + ref[:12]:                                               true, // e is a digit, too
		"deadbeef" + ref[:20]:                                           true,
		`"\u00e9` + ref[:12] + `"`:                                      true,
		"%2F" + ref[:12]:                                                true,
		`\x2f` + ref[:12]:                                               true,
		strings.ToUpper(ref[:14]):                                       true,
		"x" + strings.Repeat(" ", 1000) + ref[:12] + "!":                true,
		ref[:11]:                          false,
		ref[1:13]:                         false,
		"0" + ref[:11]:                    false,
		"step_01":                         false,
		"step_0123":                       false,
		"step_112":                        false,
		"step_":                           false,
		"step_99999999999999999999999999": false,
		"read_012.txt":                    false, // no folder
		"docs/read_012.txt":               false,
		"outputs/read_01":                 false,
		"archive/short":                   false,
		"persistent/short":                false,
		"":                                false,
		"outputs/":                        false,
		strings.Repeat("/", 1000) + "\xff\x00" + ref[:10]: false,
		`outputs/\ud800\u`: false,
	} {
		if got := matches(mention.InText([]byte(text)), patterns); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
	if !matches(mention.InText([]byte("see "+long+" there")), mention.Patterns("", 0, long)) {
		t.Error("a long name is not found")
	}
	if !matches(mention.InText([]byte("[COMPRESSED:"+ref[:12]+"]")), mention.Patterns("", 0, "storage/tool_results/"+ref[:12]+".json")) {
		t.Error("the ref of a compressed result is not found")
	}
}

// Wherever a text stands in a message, its ends are known: what precedes it there is
// its length, which may look like a digit.
func TestNamesInMessages(t *testing.T) {
	patterns := mention.Patterns(ref, 12)
	for size := range 300 {
		for name, text := range map[string]string{
			"ref":  ref[:12] + strings.Repeat(".", size),
			"step": strings.Repeat(".", size) + "step_012",
		} {
			for depth := range 4 {
				message := wire.AppendItem(nil, 5, text)
				for range depth {
					message = wire.AppendItem(wire.AppendUint(nil, 1, 7), 6, message)
				}
				message = wire.AppendUint(message, 6, 48)
				if !matches(mention.In(message), patterns) {
					t.Fatalf("%s with %d bytes in depth %d is not found", name, size, depth)
				}
			}
		}
	}
}

// A text with too many names has the name that every blob has.
func TestTooManyNames(t *testing.T) {
	var text strings.Builder
	for i := range mention.MaxNames {
		fmt.Fprintf(&text, "%012x ", i*1000)
	}
	if got := len(mention.InText([]byte(text.String()))); got != mention.MaxNames {
		t.Errorf("%d names, want %d", got, mention.MaxNames)
	}
	for range 10 * mention.MaxNames {
		fmt.Fprintf(&text, "step_%d ", text.Len())
	}
	names := mention.InText([]byte(text.String()))
	if !slices.Equal(names, []mention.Name{mention.Any}) || !matches(names, mention.Patterns(ref, 0)) {
		t.Errorf("%d names", len(names))
	}
}

// Any bytes can be looked through, and what stands in them is found.
func FuzzIn(f *testing.F) {
	f.Add([]byte("step_012 in outputs/read_012.txt"))
	f.Add(wire.AppendItem(nil, 2, ref))
	f.Add([]byte(`persistent\/a\/b\/\u00dc`))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, names := range [][]mention.Name{mention.In(b), mention.InText(b)} {
			if !slices.IsSorted(names) || len(names) > mention.MaxNames {
				t.Fatalf("%q", names)
			}
		}
		with := slices.Concat(b, []byte(" "+ref+" "), b)
		if names := mention.InText(with); !matches(names, mention.Patterns(ref, 0)) {
			t.Fatalf("the ref is not found among %q", names)
		}
	})
}

func BenchmarkIn(b *testing.B) {
	text := strings.Repeat("The server answered 200 for /home/user/project/src/main.go at 2026-01-02T12:00:00Z; ", 24)[:2000]
	message := wire.AppendItem(nil, 4, text)
	b.SetBytes(int64(len(message)))
	for b.Loop() {
		mention.In(message)
	}
}
