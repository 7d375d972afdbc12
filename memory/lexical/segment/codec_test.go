package segment

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

	"github.com/loom-bridge/loom-bridge/internal/testkit/chance"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/lexical/bitset"
)

func collect(tb testing.TB, e Entry) (terms []Term) {
	tb.Helper()
	for t, err := range e.Each() {
		if err != nil {
			tb.Fatal(err)
		}
		terms = append(terms, Term{Field: Field(t.Term[0]), Text: string(t.Term[1:]), Body: t.Body, Header: t.Header})
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
	e, err := DecodeEntry(d.Encode())
	if err != nil {
		t.Fatal(err)
	}
	columns := Row{
		Body: 3, Header: 2, Session: SessionDigest("s"), Author: "ann b", Event: -5, Create: 6, Expires: 12345,
		Superseded: 8, Supersedes: 7, Importance: 0.25, Tier: 3, Flags: FlagPinned | FlagAsks, Place: 3,
	}
	if string(e.ID) != "id-1" || e.Row != columns {
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
	e := Entry{ID: []byte("id"), Terms: []byte("terms"), Row: Row{
		Body: 3, Header: 2, Expires: -7, Supersedes: 300, Session: 5, Author: "ann", Event: 1, Create: 2,
		Importance: 0.5, Tier: 4, Flags: FlagAsks, Place: 6, Superseded: 3,
	}}
	h := Head{
		Active: 2,
		Stats: Statistics{
			Documents: 3, BodyWords: 300, HeaderWords: 1, Last: 4, Packed: 2, TailBytes: 9,
			Sessions: 1, InSessions: 2, Deleted: 1, Purged: 1,
		},
		Incarnation: 7, Rebuilding: true, Sweep: 1, Analysis: "english/1", Reach: 9,
	}
	rows := []Row{{Body: 3, Session: 9, Author: "ann", Create: 100}, {Header: 300, Event: 7, Create: 90, Place: 1023, Tier: 4}}
	l := List{
		next:     9,
		Segments: []Info{{ID: 3, Stamp: 1 << 63, First: 1, Last: 1024, Level: 1, Bytes: 99, Purged: 1}},
		Building: &Info{ID: 9, First: 1, Last: 2},
		Dropped:  []uint32{1, 2},
	}
	for _, tt := range []struct {
		name string
		got  []byte
		want string
	}{
		{"entry", e.Encode(), "080212026964180320022a057465726d73300d38ac02" + "490500000000000000" + "5203616e6e" + "5802" + "6004" + "68808080f803" + "7004" + "7808" + "800106" + "880106"},
		{"bare entry", Entry{}.Encode(), "0802"},
		{"head", h.Encode(), "08021002180320ac022801300438024009" + "490700000000000000" + "5001" + "5802" + "6001" + "6801" + "7001" + "7801" + "820109656e676c6973682f31" + "880109"},
		{
			"columns", EncodeRows(rows, 1024), "0802" + "1002" + "1a020300" + "220300ac02" + "32020100" + "42020100" + "4a02000f" + "5203c90114" +
				"7a020004" + "8a01020002" + "2a080000000000000009" + "3a03616e6e",
		},
		{"few rows", EncodeRows([]Row{5: {Body: 3}, 9: {Header: 2, Place: 1026}, 11: {}}, 1024), "0802" + "100c" + "9201020604" + "1a020300" + "22020002" + "8a01020007"},
		{"rows of nothing", EncodeRows(make([]Row, 2), 1024), "08021002"},
		{"dead documents", EncodeDeleted(bitset.Set{6, 0, 1 << 63}), "0201" + "02" + "01" + "bd01"},
		{"count of a session", EncodeCount(300), "02ac02"},
		{"list of segments", l.Encode(), "0802" + "1009" + "1a1608031100000000000000801801208008280130633801" + "220f080911000000000000000018012002" + "2801" + "2802"},
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
	e, err := DecodeEntry(encoded)
	if err != nil {
		t.Fatal(err)
	}
	if got := len(collect(t, e)); got != len(words) {
		t.Errorf("%d terms, want %d", got, len(words))
	}
	if !bytes.Equal(e.Encode(), encoded) {
		t.Error("encoding it again gives other bytes")
	}
}

func TestLaterFormatsAreRefused(t *testing.T) {
	later := []byte{8, Format + 1} // field 1 of a message, or what packed pieces begin with
	if _, err := DecodeEntry(later); !errors.Is(err, ErrNewer) {
		t.Errorf("entry: %v", err)
	}
	if _, err := DecodeHead(later); !errors.Is(err, ErrNewer) {
		t.Errorf("head: %v", err)
	}
	if _, err := DecodeList(later); !errors.Is(err, ErrNewer) {
		t.Errorf("list of segments: %v", err)
	}
	packed := []byte{Format + 1}
	if _, err := DecodeDirectory(packed); !errors.Is(err, ErrNewer) {
		t.Errorf("directory: %v", err)
	}
	if _, err := DecodeIDs(packed); !errors.Is(err, ErrNewer) {
		t.Errorf("ids: %v", err)
	}
	if _, err := DecodeRows(later, 0); !errors.Is(err, ErrNewer) {
		t.Errorf("columns: %v", err)
	}
	if err := DecodeDeleted(packed, nil); !errors.Is(err, ErrNewer) {
		t.Errorf("dead documents: %v", err)
	}
	if _, err := DecodeCount(packed); !errors.Is(err, ErrNewer) {
		t.Errorf("count of a session: %v", err)
	}
	if _, err := FindBlocks(nil, packed, 1, "wx"); !errors.Is(err, ErrNewer) {
		t.Errorf("chunk: %v", err)
	}
}

func TestSegmentListRoundTrip(t *testing.T) {
	want := List{
		next: 9,
		Segments: []Info{
			{ID: 3, Stamp: 1 << 63, First: 1, Last: 1024, Level: 1, Bytes: 123456, Purged: 7},
			{ID: 8, Stamp: 5, First: 1025, Last: 1152, Bytes: 999},
		},
		Building: &Info{ID: 9, Stamp: 7, First: 1, Last: 1152, Level: 2},
		Dropped:  []uint32{1, 2},
	}
	got, err := DecodeList(want.Encode())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(List{}, Info{})); diff != "" {
		t.Errorf("list (-want +got):\n%s", diff)
	}
}

// randomSegment returns terms in order with random postings.
func randomSegment(rng *rand.Rand, terms int) (names []string, postings map[string][]Posting) {
	postings = make(map[string][]Posting)
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
			p := Posting{Ordinal: ordinal}
			if payloadOf(field) == frequency {
				p.Value = PackFrequency(rng.Uint32N(300), rng.Uint32N(3))
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
	seed := chance.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 20 {
		names, postings := randomSegment(rng, 1+rng.IntN(400))
		var chunks [][]byte
		w := Writer{base: 90, limit: 512, emit: func(n uint32, chunk []byte) error {
			if int(n) != len(chunks) {
				t.Errorf("chunk %d comes as number %d", len(chunks), n)
			}
			chunks = append(chunks, chunk)
			return nil
		}}
		for _, name := range names {
			if err := w.Add(name, postings[name]); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		firsts, err := DecodeDirectory(EncodeDirectory(w.Firsts))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range append(names, "w", "zzz", names[0]+"x", names[len(names)/2][:1]+"~") {
			var got []Posting
			from, to := LocateChunks(firsts, name)
			for n := from; n < to; n++ {
				found, err := FindBlocks(nil, chunks[n], 90, name)
				if err != nil {
					t.Fatal(err)
				}
				for _, b := range found {
					if got, err = b.Decode(got); err != nil {
						t.Fatal(err)
					}
				}
			}
			if diff := cmp.Diff(postings[name], got, cmp.AllowUnexported(Posting{})); diff != "" {
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
		e, err := DecodeEntry(b)
		if err != nil {
			if !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrNewer) {
				t.Fatal(err)
			}
			return
		}
		for _, err := range e.Each() {
			if err != nil && !errors.Is(err, ErrDamaged) {
				t.Fatal(err)
			}
		}
		again, err := DecodeEntry(e.Encode())
		again.Size = e.Size
		if diff := cmp.Diff(e, again, cmp.AllowUnexported(Entry{}, Row{}), cmp.Comparer(bytes.Equal)); err != nil || diff != "" {
			t.Fatalf("again: %v (-want +got):\n%s", err, diff)
		}
	})
}

func FuzzChunk(f *testing.F) {
	names, postings := randomSegment(rand.New(rand.NewPCG(1, 2)), 8)
	w := Writer{base: 90, limit: 1 << 20, emit: func(_ uint32, chunk []byte) error {
		f.Add(chunk, "wab12")
		return nil
	}}
	for _, name := range names {
		_ = w.Add(name, postings[name])
	}
	_ = w.Close()
	f.Fuzz(func(t *testing.T, chunk []byte, term string) {
		var found []Posting
		blocks, err := FindBlocks(nil, chunk, 1, "w"+term)
		if err != nil && !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrNewer) {
			t.Fatal(err)
		}
		for _, b := range blocks {
			if found, err = b.Decode(found[:0]); err != nil && !errors.Is(err, ErrDamaged) {
				t.Fatal(err)
			}
		}
		s, err := scanChunk(chunk, 1)
		if err != nil {
			return
		}
		for ok, err := s.next(); ok && err == nil; ok, err = s.next() {
			_, _ = s.block.Decode(nil)
		}
	})
}

func FuzzPostings(f *testing.F) {
	f.Add([]byte{1, 0, 5, 1, 2, 200, 9}, uint32(7))
	f.Fuzz(func(t *testing.T, raw []byte, base uint32) {
		base %= 1 << 20
		var want []Posting
		ordinal := base
		for _, c := range raw[:min(len(raw), BlockPostings)] {
			ordinal += uint32(c) + 1
			want = append(want, Posting{ordinal, PackFrequency(uint32(c)*3, uint32(c)%4)})
		}
		if len(want) == 0 {
			return
		}
		r := parser{bytes: appendPostings(nil, frequency, base, want)}
		b := readBlock(&r, frequency, base)
		got, err := b.Decode(nil)
		if err != nil || r.bad || !r.done() {
			t.Fatalf("%v, bad %v, done %v", err, r.bad, r.done())
		}
		if !slices.Equal(want, got) || b.Last != want[len(want)-1].Ordinal || int(b.Count) != len(want) {
			t.Fatalf("want %v, got %v", want, got)
		}
	})
}

func FuzzPieces(f *testing.F) {
	f.Add(EncodeDirectory([]string{"wapple", "wtree"}))
	f.Add(EncodeIDs([][]byte{{}, []byte("a"), []byte("b")}))
	f.Add(EncodeRows([]Row{{Body: 1, Header: 2, Session: 7, Author: "ann"}, {Event: 9, Create: -3, Expires: 4, Importance: 0.5, Place: 3}}, 1024))
	f.Add(EncodeRows([]Row{7: {Body: 1, Supersedes: 3}, 40: {Author: "ann"}, 60: {}}, 1024))
	f.Add(EncodeDeleted(bitset.Set{6, 0, 1 << 63}))
	f.Add(EncodeCount(7))
	f.Add(Head{
		Active: 2,
		Stats:  Statistics{Documents: 3, BodyWords: 9, Last: 3, Packed: 1, Deleted: 2, Purged: 1}, Incarnation: 5, Sweep: 1, Analysis: "english/1", Reach: 3,
	}.Encode())
	f.Add(List{next: 1, Segments: []Info{{ID: 1, First: 1, Last: 2}}}.Encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		if firsts, err := DecodeDirectory(b); err == nil {
			if again, err := DecodeDirectory(EncodeDirectory(firsts)); err != nil || !slices.Equal(firsts, again) {
				t.Fatalf("directory %q, again %q, %v", firsts, again, err)
			}
		}
		if ids, err := DecodeIDs(b); err == nil {
			if again, err := DecodeIDs(EncodeIDs(ids)); err != nil || len(again) != len(ids) {
				t.Fatalf("%d ids, again %d, %v", len(ids), len(again), err)
			}
		}
		if rows, err := DecodeRows(b, 1024); err == nil {
			bits := cmp.Comparer(func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) })
			again, err := DecodeRows(EncodeRows(rows, 1024), 1024)
			if diff := cmp.Diff(rows, again, cmp.AllowUnexported(Row{}), cmpopts.EquateEmpty(), bits); err != nil || diff != "" {
				t.Fatalf("rows again: %v\n%s", err, diff)
			}
		}
		if _, err := DecodeCount(b); err != nil && !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrNewer) {
			t.Fatal(err)
		}
		var dead, again bitset.Set
		dead.Reset(DeletedPerChunk)
		again.Reset(DeletedPerChunk)
		if err := DecodeDeleted(b, dead); err == nil {
			if err := DecodeDeleted(EncodeDeleted(dead), again); err != nil || !slices.Equal(dead, again) {
				t.Fatalf("dead %v, again %v, %v", dead, again, err)
			}
		}
		if c, err := DecodeHead(b); err == nil && b != nil && !c.Outdated {
			again, err := DecodeHead(c.Encode())
			if err != nil || again != c && c.Active != 0 {
				t.Fatalf("head %+v, again %+v, %v", c, again, err)
			}
		}
		if l, err := DecodeList(b); err == nil && b != nil {
			again, err := DecodeList(l.Encode())
			if diff := cmp.Diff(l, again, cmp.AllowUnexported(List{}, Info{})); err != nil || diff != "" {
				t.Fatalf("list again: %v\n%s", err, diff)
			}
		}
	})
}

// Blocks of columns fit one value, whatever the names in them.
func TestColumnsFitOneValue(t *testing.T) {
	rows := make([]Row, RowsPerBlock)
	for i := range rows {
		rows[i] = Row{
			Body: 1 << 20, Header: 1 << 20, Session: uint64(i+1) << 32, Author: strings.Repeat("n", maxNameBytes-4) + string([]byte{byte(i >> 8), byte(i), 1, 1}),
			Event: int64(i%2) << 60, Create: int64(i%2) << 60, Expires: int64(i%2) << 60, Superseded: int64(i%2) << 60, Importance: 0.3, Tier: 4, Flags: 0xff,
		}
	}
	if size := len(EncodeRows(rows, 0)); size > kv.MaxValueBytes {
		t.Errorf("%d bytes", size)
	}
}
