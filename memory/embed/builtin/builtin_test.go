package builtin

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/embed"
)

// referenceFile names a file as testdata/reference.py writes it, for a wide comparison.
const referenceFile = "LOOM_EMBED_REFERENCE"

// MustFind returns the model's file as `make model` leaves it.
func MustFind(tb testing.TB) string {
	tb.Helper()
	path := Find(filepath.Join("..", "..", "..", "bin", "loom-bridge-server"))
	if path == "" {
		tb.Skip("no model of embeddings in bin: `make model` fetches it")
	}
	return path
}

func MustOpen(tb testing.TB) *Model {
	tb.Helper()
	m, err := New(MustFind(tb))
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

// Pieces and vectors are those of the package that the model comes from.
func TestReference(t *testing.T) {
	t.Parallel()
	m := MustOpen(t)
	if _, err := m.EmbedQuery(t.Context(), "load"); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join("testdata", "reference.jsonl"), os.Getenv(referenceFile)} {
		if path == "" {
			continue
		}
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		lines, least := 0, 1.0
		scanner := bufio.NewScanner(file)
		scanner.Buffer(nil, 1<<20)
		for scanner.Scan() {
			var want struct {
				Text   string
				IDs    []int32
				Vector string
			}
			if err := json.Unmarshal(scanner.Bytes(), &want); err != nil {
				t.Fatal(err)
			}
			lines++
			if got := m.network.pieces.cut(want.Text); !slices.Equal(got, want.IDs) {
				t.Errorf("%q: pieces %v, not %v", want.Text, got, want.IDs)
			}
			codes, err := base64.StdEncoding.DecodeString(want.Vector)
			if err != nil {
				t.Fatal(err)
			}
			got, err := m.EmbedQuery(t.Context(), want.Text)
			if err != nil {
				t.Fatal(err)
			}
			expected := make([]float32, len(codes))
			for i, code := range codes {
				expected[i] = float32(int8(code))
			}
			same := cosine(got, expected)
			least = min(least, same)
			if len(want.IDs) <= passageTokens && same < 0.999 {
				t.Errorf("%q: cosine %.4f", want.Text, same)
			}
		}
		t.Logf("%s: %d lines, least cosine %.5f", path, lines, least)
		if lines == 0 || scanner.Err() != nil {
			t.Errorf("%s: %d lines, %v", path, lines, scanner.Err())
		}
	}
}

func cosine(a, b []float32) float64 {
	var ab, aa, bb float64
	for i := range a {
		ab += float64(a[i]) * float64(b[i])
		aa += float64(a[i]) * float64(a[i])
		bb += float64(b[i]) * float64(b[i])
	}
	return ab / math.Sqrt(aa*bb)
}

// A question lies nearer to what answers it than to the rest, without a common word and
// across languages; records and queries go the same way.
func TestMeaning(t *testing.T) {
	t.Parallel()
	m := MustOpen(t)
	texts := []string{"I have a hamster called Biscuit", "The invoice was paid in March", "Mi hermana vive en Lima"}
	vectors, err := m.Embed(t.Context(), texts)
	if err != nil {
		t.Fatal(err)
	}
	for question, want := range map[string]int{"Which animal do I own?": 0, "Welches Haustier besitze ich?": 0, "Where does my sibling live?": 2} {
		q, err := embed.Query(t.Context(), m, question)
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range vectors {
			if i != want && cosine(q, v) >= cosine(q, vectors[want]) {
				t.Errorf("%q is nearer to %q than to %q", question, texts[i], texts[want])
			}
		}
	}
}

// Every text has a vector of length one; a long one that of its beginning, in passages.
func TestAnyText(t *testing.T) {
	t.Parallel()
	m := MustOpen(t)
	long := strings.Repeat("The hamster sleeps in the afternoon. ", 1000)
	vectors, err := m.Embed(t.Context(), []string{"", " ", "\xff\xfe", "\x00", strings.Repeat("\u3000", 50), long, long[:maxBytes]})
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range vectors {
		if length := cosine(v, v); len(v) != Dimensions || math.IsNaN(length) {
			t.Errorf("text %d: %d numbers, cosine with itself %v", i, len(v), length)
		}
	}
	if same := cosine(vectors[5], vectors[6]); same < 0.9999 {
		t.Errorf("what comes after the beginning counts: cosine %v", same)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := m.Embed(ctx, []string{"a"}); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of the context: %v", err)
	}
}

// The fast product and the plain one agree.
func TestProducts(t *testing.T) {
	t.Parallel()
	for _, n := range []int{8, 16, 320, 512, 1280} {
		w, x := make([]float32, 2*n), make([]float32, 5*n)
		for i := range w {
			w[i] = float32(i%17) - 8
		}
		for i := range x {
			x[i] = float32(i%13) - 6
		}
		var fast, plain [2 * group]float32
		products(w, n, x, n/2, n, &fast)
		plainProducts(w, n, x, n/2, n, &plain)
		if fast != plain { // whole numbers: exact
			t.Errorf("%d numbers: %v, not %v", n, fast, plain)
		}
	}
}

// A file that is missing, short, damaged or something else is refused, at the latest at the
// first use, and the error says that it may be there later.
func TestDamagedFile(t *testing.T) {
	t.Parallel()
	whole, err := os.ReadFile(MustFind(t))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if _, err := New(filepath.Join(dir, "none")); !errors.Is(err, ErrFile) {
		t.Errorf("a missing file: %v", err)
	}
	path := filepath.Join(dir, FileName)
	for name, content := range map[string][]byte{"empty": nil, "short": whole[:len(whole)-1], "other": []byte(strings.Repeat("x", 1000))} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := New(path); !errors.Is(err, ErrFile) {
			t.Errorf("%s: %v", name, err)
		}
	}
	whole[len(whole)/2] ^= 1
	if err := os.WriteFile(path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := New(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.EmbedQuery(t.Context(), "a"); !errors.Is(err, ErrFile) || !errors.Is(err, embed.ErrUnreachable) {
		t.Errorf("damaged within: %v", err)
	}
}

// The model is found beside the binary, through links to it, and in the share folder.
func TestFind(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	binary := filepath.Join(dir, "bin", "server")
	share := filepath.Join(dir, "share", "loom-bridge")
	for _, folder := range []string{filepath.Dir(binary), share} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.WriteFile(binary, nil, 0o700))
	link := filepath.Join(dir, "link")
	must(os.Symlink(binary, link))
	if got := Find(link); got != "" {
		t.Errorf("found %s", got)
	}
	must(os.WriteFile(filepath.Join(share, FileName), nil, 0o600))
	if got := Find(link); !strings.HasSuffix(got, filepath.Join("share", "loom-bridge", FileName)) {
		t.Errorf("in share: found %q", got)
	}
	must(os.WriteFile(filepath.Join(dir, "bin", FileName), nil, 0o600))
	if got := Find(link); !strings.HasSuffix(got, filepath.Join("bin", FileName)) {
		t.Errorf("beside the binary: found %q", got)
	}
}

// BenchmarkText tells what a text of some pieces costs.
func BenchmarkText(b *testing.B) {
	m := MustOpen(b)
	for name, words := range map[string]int{"20": 18, "200": 198, "1000": 998} {
		text := strings.Repeat("word ", words)
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := m.EmbedQuery(b.Context(), text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
