package tokens

import (
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
)

// However many ask at once, only as many texts are counted as there are
// processors: each takes memory while it is.
func TestCountsAtOnceAreBounded(t *testing.T) {
	if _, err := engineFor(O200K); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		c, err := New(nil)
		if err != nil {
			t.Fatal(err)
		}
		for range runtime.GOMAXPROCS(0) {
			c.working <- struct{}{}
		}
		counted := false
		go func() {
			_, _ = c.Count("gpt-4o", "hello")
			counted = true
		}()
		if synctest.Wait(); counted {
			t.Error("one more was counted")
		}
		<-c.working
		if synctest.Wait(); !counted {
			t.Error("a free place was not taken")
		}
	})
}

// A very long text leaves no large buffers behind.
func TestLongTextsLeaveNoBuffers(t *testing.T) {
	c, err := New(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{strings.Repeat("ab", 1<<20), strings.Repeat("\x80", 1<<20)} {
		if _, err := c.Count("gpt-4o", text); err != nil {
			t.Fatal(err)
		}
	}
	s := c.benches[O200K].take()
	if n := cap(s.tokens)*4 + cap(s.dead)*8 + cap(s.repaired); n > 4*maxKeptBytes {
		t.Errorf("%d bytes are kept", n)
	}
}

// bytePairs merges as the definition says: again and again the pair of lowest
// rank, the leftmost first.
func bytePairs(v *vocabulary, piece string) (lengths []int) {
	ends := make([]int, 0, len(piece)+1)
	for i := range len(piece) + 1 {
		ends = append(ends, i)
	}
	for {
		best, at := noToken, 0
		for i := 0; i+2 < len(ends); i++ {
			if found := v.tree.find(v, piece[ends[i]:ends[i+2]]); found < best {
				best, at = found, i
			}
		}
		if best == noToken {
			break
		}
		ends = slices.Delete(ends, at+1, at+2)
	}
	for i := range len(ends) - 1 {
		lengths = append(lengths, ends[i+1]-ends[i])
	}
	return lengths
}

// Every token of a vocabulary merges to itself, and neighbours in it to what
// the definition says, not only to as many.
func TestMergeIsBytePairEncoding(t *testing.T) {
	for _, encoding := range []Encoding{O200K, CL100K, P50K, R50K} {
		e, err := engineFor(encoding)
		if err != nil {
			t.Fatal(err)
		}
		v, s := e.vocabulary, newScratch()
		for i := range token(v.size()) {
			if v.merge(string(v.bytes(i)), s); len(s.tokens) != 1 || s.tokens[0] != i {
				t.Fatalf("%s: token %d %q merges to %v", encoding, i, v.bytes(i), s.tokens)
			}
		}
		for i := token(0); int(i) < v.size()-1; i += 61 {
			piece := string(v.bytes(i)) + string(v.bytes(i+1)) + string(v.bytes(i/2))
			v.merge(piece, s)
			var got []int
			for _, found := range s.tokens {
				got = append(got, int(v.length[found]))
			}
			if want := bytePairs(v, piece); !slices.Equal(got, want) {
				t.Fatalf("%s: %q: got %v, want %v", encoding, piece, got, want)
			}
		}
	}
}

// The tables know each token and nothing else.
func TestWholePieces(t *testing.T) {
	e, err := engineFor(CL100K)
	if err != nil {
		t.Fatal(err)
	}
	v := e.vocabulary
	for i := range token(v.size()) {
		text := "x" + string(v.bytes(i))
		if !v.has(text, 1, len(text)) {
			t.Fatalf("token %d %q is missing", i, v.bytes(i))
		}
		text += "\x00"
		if found := v.tree.find(v, text[1:]); (found != noToken) != v.has(text, 1, len(text)) {
			t.Errorf("%q: the tables disagree", text[1:])
		}
	}
}

func TestVocabularyRefusesWhatIsNone(t *testing.T) {
	for name, file := range map[string]string{
		"nothing":      "",
		"no rank":      "YQ==\n",
		"no number":    "YQ== x\n",
		"falling":      "YQ== 1\nYg== 0\n",
		"no base64":    "? 0\n",
		"empty":        " 0\n",
		"bytes amiss":  "YQ== 0\n",
		"negative":     "YQ== -1\n",
		"far too long": strings.Repeat("YWFh", 200) + " 0\n",
	} {
		v := &vocabulary{}
		err := v.parse([]byte(file))
		if err == nil {
			v.tree, v.shorter = newTree(v)
			err = v.addMerges()
		}
		if err == nil {
			t.Errorf("%s was taken for a vocabulary", name)
		}
	}
}

// A table of the largest vocabulary stays within what a process can spare.
func TestVocabularySize(t *testing.T) {
	const most = 24 << 20
	before := heap()
	v, err := loadVocabulary(string(O200K))
	if err != nil {
		t.Fatal(err)
	}
	if kept := int64(heap()) - int64(before); kept > most {
		t.Errorf("%d bytes", kept)
	}
	if v.size() != 199_998 {
		t.Errorf("%d tokens", v.size())
	}
}

func BenchmarkLoad(b *testing.B) {
	for _, encoding := range []Encoding{O200K, CL100K} {
		b.Run(string(encoding), func(b *testing.B) {
			var kept *vocabulary
			before := heap()
			for b.Loop() {
				v, err := loadVocabulary(string(encoding))
				if err != nil {
					b.Fatal(err)
				}
				kept = v
			}
			b.ReportMetric(float64(heap()-before)/(1<<20), "MiB-kept")
			runtime.KeepAlive(kept)
		})
	}
}

func heap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
