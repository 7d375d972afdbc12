package lexical

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func collect(tb testing.TB, e entry) (terms []Term) {
	tb.Helper()
	for t, err := range e.each() {
		if err != nil {
			tb.Fatal(err)
		}
		terms = append(terms, Term{Field: Field(t.term[0]), Text: string(t.term[1:]), Body: t.body, Header: t.header})
	}
	return terms
}

func TestEntryRoundTrip(t *testing.T) {
	d := NewDocument("id-1")
	d.AddBody(slices.Values([]string{"apple", "tree", "apple"}))
	d.AddHeader(slices.Values([]string{"ann", "apple"}))
	d.AddValue(Tag, "red")
	d.AddValue(Tag, "red")
	d.AddValue(Kind, "")
	d.AddValue(Metadata, strings.Repeat("x", 1000))
	d.Expire(12345)
	d.Supersede(7)
	facts := Facts{
		Session: "s", Author: "Ann  B.", Event: -5, Create: 6, Superseded: 8, Importance: 0.25, Tier: 3,
		Flags: FlagPinned | FlagAsks, Place: 3,
	}
	d.SetFacts(facts)
	e, err := decodeEntry(d.Encode())
	if err != nil {
		t.Fatal(err)
	}
	columns := row{
		body: 3, header: 2, session: sessionDigest("s"), author: "ann b", event: -5, create: 6, expires: 12345,
		superseded: 8, supersedes: 7, importance: 0.25, tier: 3, flags: FlagPinned | FlagAsks, place: 3,
	}
	if string(e.id) != "id-1" || e.row != columns {
		t.Errorf("got %+v", e)
	}
	want := []Term{
		{Word, "apple", 2, 1},
		{Word, "tree", 1, 0},
		{Word, "ann", 0, 1},
		{Tag, "red", 0, 0},
		{Metadata, Value(strings.Repeat("x", 1000)), 0, 0},
	}
	if diff := cmp.Diff(want, collect(t, e)); diff != "" {
		t.Errorf("terms (-want +got):\n%s", diff)
	}
}

// The stored bytes of a generation never change: they are what FORMAT.md says.
func TestStoredBytes(t *testing.T) {
	e := entry{id: []byte("id"), terms: []byte("terms"), row: row{
		body: 3, header: 2, expires: -7, supersedes: 300, session: 5, author: "ann", event: 1, create: 2,
		importance: 0.5, tier: 4, flags: FlagAsks, place: 6, superseded: 3,
	}}
	h := head{space: space{generation: 2}, headContents: headContents{
		stats: Statistics{
			Documents: 3, BodyWords: 300, HeaderWords: 1, Last: 4, Packed: 2, TailBytes: 9,
			Sessions: 1, InSessions: 2, Dead: 1, Purged: 1,
		},
		incarnation: 7, rebuilding: true, sweep: 1, analysis: "english/1", reach: 9,
	}}
	rows := []row{{body: 3, session: 9, author: "ann", create: 100}, {header: 300, event: 7, create: 90, place: 1023, tier: 4}}
	l := segmentList{
		next:     9,
		segments: []segmentInfo{{id: 3, stamp: 1 << 63, first: 1, last: 1024, level: 1, bytes: 99, purged: 1}},
		building: &segmentInfo{id: 9, first: 1, last: 2},
		dropped:  []uint32{1, 2},
	}
	for _, tt := range []struct {
		name string
		got  []byte
		want string
	}{
		{"entry", e.encode(), "080212026964180320022a057465726d73300d38ac02" + "490500000000000000" + "5203616e6e" + "5802" + "6004" + "68808080f803" + "7004" + "7808" + "800106" + "880106"},
		{"bare entry", entry{}.encode(), "0802"},
		{"head", h.encode(), "08021002180320ac022801300438024009" + "490700000000000000" + "5001" + "5802" + "6001" + "6801" + "7001" + "7801" + "820109656e676c6973682f31" + "880109"},
		{
			"columns", encodeRows(rows, 1024), "0802" + "1002" + "1a020300" + "220300ac02" + "32020100" + "42020100" + "4a02000f" + "5203c90114" +
				"7a020004" + "8a01020002" + "2a080000000000000009" + "3a03616e6e",
		},
		{"few rows", encodeRows([]row{5: {body: 3}, 9: {header: 2, place: 1026}, 11: {}}, 1024), "0802" + "100c" + "9201020604" + "1a020300" + "22020002" + "8a01020007"},
		{"rows of nothing", encodeRows(make([]row, 2), 1024), "08021002"},
		{"dead documents", encodeDead(bitset{6, 0, 1 << 63}), "0201" + "02" + "01" + "bd01"},
		{"count of a session", encodeSession(300), "02ac02"},
		{"list of segments", l.encode(), "0802" + "1009" + "1a1608031100000000000000801801208008280130633801" + "220f080911000000000000000018012002" + "2801" + "2802"},
	} {
		if got := hex.EncodeToString(tt.got); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestHugeEntryIsDeflated(t *testing.T) {
	d := NewDocument("huge")
	words := make([]string, 100_000)
	for i := range words {
		words[i] = fmt.Sprintf("word%d", i*7919)
	}
	d.AddBody(slices.Values(words))
	encoded := d.Encode()
	if len(encoded) > deflateFrom {
		t.Errorf("stored in %d bytes", len(encoded))
	}
	e, err := decodeEntry(encoded)
	if err != nil {
		t.Fatal(err)
	}
	if got := len(collect(t, e)); got != len(words) {
		t.Errorf("%d terms, want %d", got, len(words))
	}
	if !bytes.Equal(e.encode(), encoded) {
		t.Error("encoding it again gives other bytes")
	}
}

func TestLaterFormatsAreRefused(t *testing.T) {
	later := []byte{8, layout + 1} // field 1 of a message, or what packed pieces begin with
	if _, err := decodeEntry(later); !errors.Is(err, ErrNewer) {
		t.Errorf("entry: %v", err)
	}
	if _, err := decodeHead(later); !errors.Is(err, ErrNewer) {
		t.Errorf("head: %v", err)
	}
	if _, err := decodeSegmentList(later); !errors.Is(err, ErrNewer) {
		t.Errorf("list of segments: %v", err)
	}
	packed := []byte{layout + 1}
	if _, err := decodeDirectory(packed); !errors.Is(err, ErrNewer) {
		t.Errorf("directory: %v", err)
	}
	if _, err := decodeIDs(packed); !errors.Is(err, ErrNewer) {
		t.Errorf("ids: %v", err)
	}
	if _, err := decodeRows(later, 0); !errors.Is(err, ErrNewer) {
		t.Errorf("columns: %v", err)
	}
	if err := decodeDead(packed, nil); !errors.Is(err, ErrNewer) {
		t.Errorf("dead documents: %v", err)
	}
	if _, err := decodeSession(packed); !errors.Is(err, ErrNewer) {
		t.Errorf("count of a session: %v", err)
	}
	if _, err := find(nil, packed, 1, "wx"); !errors.Is(err, ErrNewer) {
		t.Errorf("chunk: %v", err)
	}
}

func TestSegmentListRoundTrip(t *testing.T) {
	want := segmentList{
		next: 9,
		segments: []segmentInfo{
			{id: 3, stamp: 1 << 63, first: 1, last: 1024, level: 1, bytes: 123456, purged: 7},
			{id: 8, stamp: 5, first: 1025, last: 1152, bytes: 999},
		},
		building: &segmentInfo{id: 9, stamp: 7, first: 1, last: 1152, level: 2},
		dropped:  []uint32{1, 2},
	}
	got, err := decodeSegmentList(want.encode())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(segmentList{}, segmentInfo{})); diff != "" {
		t.Errorf("list (-want +got):\n%s", diff)
	}
}

// randomSegment returns terms in order with random postings.
func randomSegment(rng *rand.Rand, terms int) (names []string, postings map[string][]posting) {
	postings = make(map[string][]posting)
	fields := []Field{Word, Word, Word, Tag, Metadata}
	for range terms {
		field := fields[rng.IntN(len(fields))]
		name := string(byte(field)) + strings.Repeat("ab", rng.IntN(3)) + fmt.Sprint(rng.IntN(5*terms))
		if _, ok := postings[name]; ok {
			continue
		}
		ordinal := uint32(100 + rng.IntN(50))
		n := 1 + rng.IntN(5)
		if rng.IntN(20) == 0 {
			n = 1 + rng.IntN(1500)
		}
		for range n {
			p := posting{ordinal: ordinal}
			if payloadOf(field) == frequency {
				p.value = pack(rng.Uint32N(300), rng.Uint32N(3))
			}
			postings[name] = append(postings[name], p)
			ordinal += 1 + rng.Uint32N(200)
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names, postings
}

func TestChunksHoldWhatWasWritten(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 20 {
		names, postings := randomSegment(rng, 1+rng.IntN(400))
		var chunks [][]byte
		w := segmentWriter{base: 90, limit: 512, emit: func(n uint32, chunk []byte) error {
			if int(n) != len(chunks) {
				t.Errorf("chunk %d comes as number %d", len(chunks), n)
			}
			chunks = append(chunks, chunk)
			return nil
		}}
		for _, name := range names {
			if err := w.add(name, postings[name]); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.close(); err != nil {
			t.Fatal(err)
		}
		firsts, err := decodeDirectory(encodeDirectory(w.firsts))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range append(names, "w", "zzz", names[0]+"x", names[len(names)/2][:1]+"~") {
			var got []posting
			from, to := locate(firsts, name)
			for n := from; n < to; n++ {
				found, err := find(nil, chunks[n], 90, name)
				if err != nil {
					t.Fatal(err)
				}
				for _, b := range found {
					if got, err = b.decode(got); err != nil {
						t.Fatal(err)
					}
				}
			}
			if diff := cmp.Diff(postings[name], got, cmp.AllowUnexported(posting{})); diff != "" {
				t.Fatalf("postings of %q (-want +got):\n%s", name, diff)
			}
		}
	}
}

func FuzzEntry(f *testing.F) {
	d := NewDocument("id")
	d.AddBody(slices.Values([]string{"apple", "tree"}))
	d.AddHeader(slices.Values([]string{"ann"}))
	d.AddValue(Tag, "red")
	f.Add(d.Encode())
	f.Add([]byte{8, 2, 0x2a, 2, 1, 'w'})
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := decodeEntry(b)
		if err != nil {
			if !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrNewer) {
				t.Fatal(err)
			}
			return
		}
		for _, err := range e.each() {
			if err != nil && !errors.Is(err, ErrDamaged) {
				t.Fatal(err)
			}
		}
		again, err := decodeEntry(e.encode())
		again.size = e.size
		if diff := cmp.Diff(e, again, cmp.AllowUnexported(entry{}, row{}), cmp.Comparer(bytes.Equal)); err != nil || diff != "" {
			t.Fatalf("again: %v (-want +got):\n%s", err, diff)
		}
	})
}

func FuzzChunk(f *testing.F) {
	names, postings := randomSegment(rand.New(rand.NewPCG(1, 2)), 8)
	w := segmentWriter{base: 90, limit: 1 << 20, emit: func(_ uint32, chunk []byte) error {
		f.Add(chunk, "wab12")
		return nil
	}}
	for _, name := range names {
		_ = w.add(name, postings[name])
	}
	_ = w.close()
	f.Fuzz(func(t *testing.T, chunk []byte, term string) {
		var found []posting
		blocks, err := find(nil, chunk, 1, "w"+term)
		if err != nil && !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrNewer) {
			t.Fatal(err)
		}
		for _, b := range blocks {
			if found, err = b.decode(found[:0]); err != nil && !errors.Is(err, ErrDamaged) {
				t.Fatal(err)
			}
		}
		s, err := scanChunk(chunk, 1)
		if err != nil {
			return
		}
		for ok, err := s.next(); ok && err == nil; ok, err = s.next() {
			_, _ = s.block.decode(nil)
		}
	})
}

func FuzzPostings(f *testing.F) {
	f.Add([]byte{1, 0, 5, 1, 2, 200, 9}, uint32(7))
	f.Fuzz(func(t *testing.T, raw []byte, base uint32) {
		base %= 1 << 20
		var want []posting
		ordinal := base
		for _, c := range raw[:min(len(raw), blockPostings)] {
			ordinal += uint32(c) + 1
			want = append(want, posting{ordinal, pack(uint32(c)*3, uint32(c)%4)})
		}
		if len(want) == 0 {
			return
		}
		r := parser{bytes: appendPostings(nil, frequency, base, want)}
		b := readBlock(&r, frequency, base)
		got, err := b.decode(nil)
		if err != nil || r.bad || !r.done() {
			t.Fatalf("%v, bad %v, done %v", err, r.bad, r.done())
		}
		if !slices.Equal(want, got) || b.last != want[len(want)-1].ordinal || int(b.count) != len(want) {
			t.Fatalf("want %v, got %v", want, got)
		}
	})
}

func FuzzPieces(f *testing.F) {
	f.Add(encodeDirectory([]string{"wapple", "wtree"}))
	f.Add(encodeIDs([][]byte{{}, []byte("a"), []byte("b")}))
	f.Add(encodeRows([]row{{body: 1, header: 2, session: 7, author: "ann"}, {event: 9, create: -3, expires: 4, importance: 0.5, place: 3}}, 1024))
	f.Add(encodeRows([]row{7: {body: 1, supersedes: 3}, 40: {author: "ann"}, 60: {}}, 1024))
	f.Add(encodeDead(bitset{6, 0, 1 << 63}))
	f.Add(encodeSession(7))
	f.Add(head{space: space{generation: 2}, headContents: headContents{
		stats: Statistics{Documents: 3, BodyWords: 9, Last: 3, Packed: 1, Dead: 2, Purged: 1}, incarnation: 5, sweep: 1, analysis: "english/1", reach: 3,
	}}.encode())
	f.Add(segmentList{next: 1, segments: []segmentInfo{{id: 1, first: 1, last: 2}}}.encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		if firsts, err := decodeDirectory(b); err == nil {
			if again, err := decodeDirectory(encodeDirectory(firsts)); err != nil || !slices.Equal(firsts, again) {
				t.Fatalf("directory %q, again %q, %v", firsts, again, err)
			}
		}
		if ids, err := decodeIDs(b); err == nil {
			if again, err := decodeIDs(encodeIDs(ids)); err != nil || len(again) != len(ids) {
				t.Fatalf("%d ids, again %d, %v", len(ids), len(again), err)
			}
		}
		if rows, err := decodeRows(b, 1024); err == nil {
			bits := cmp.Comparer(func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) })
			again, err := decodeRows(encodeRows(rows, 1024), 1024)
			if diff := cmp.Diff(rows, again, cmp.AllowUnexported(row{}), cmpopts.EquateEmpty(), bits); err != nil || diff != "" {
				t.Fatalf("rows again: %v\n%s", err, diff)
			}
		}
		if _, err := decodeSession(b); err != nil && !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrNewer) {
			t.Fatal(err)
		}
		var dead, again bitset
		dead.reset(deadPerChunk)
		again.reset(deadPerChunk)
		if err := decodeDead(b, dead); err == nil {
			if err := decodeDead(encodeDead(dead), again); err != nil || !slices.Equal(dead, again) {
				t.Fatalf("dead %v, again %v, %v", dead, again, err)
			}
		}
		if c, err := decodeHead(b); err == nil && b != nil && !c.outdated {
			again, err := decodeHead(head{space: space{generation: c.active}, headContents: c}.encode())
			if err != nil || again != c && c.active != 0 {
				t.Fatalf("head %+v, again %+v, %v", c, again, err)
			}
		}
		if l, err := decodeSegmentList(b); err == nil && b != nil {
			again, err := decodeSegmentList(l.encode())
			if diff := cmp.Diff(l, again, cmp.AllowUnexported(segmentList{}, segmentInfo{})); err != nil || diff != "" {
				t.Fatalf("list again: %v\n%s", err, diff)
			}
		}
	})
}
