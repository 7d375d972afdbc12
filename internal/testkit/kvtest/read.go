package kvtest

import (
	"bytes"
	"errors"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

func readCases() []testCase {
	return []testCase{
		{name: "get several in the order asked", run: testGetSeveral},
		{name: "get tells empty from missing", run: testGetEmptyValue},
		{name: "get nothing", run: testGetNothing},
		{name: "get the same key twice", run: testGetTwice},
		{name: "values are the caller's", run: testOwnedValues},
		{name: "what was committed is not kept by reference", run: testBatchIsCopied},
		{name: "scan ranges", run: testScanRanges},
		{name: "scan in reverse", run: testScanReverse},
		{name: "scan with a limit", run: testScanLimit},
		{name: "scan an empty store", run: testScanEmptyStore},
		{name: "scan can stop and start again", run: testScanBreak},
		{name: "scan sees one moment", run: testScanOneMoment},
		{name: "scopes lie apart", run: testScopesApart},
		{name: "keyspaces lie apart", run: testKeyspacesApart},
		{name: "reserved keys are hidden", run: testReservedHidden},
		{name: "bytes order as bytes", run: testByteOrder},
		{name: "unknown keyspace", run: testUnknownKeyspace},
		{name: "sequence of bad refs", run: testBadRefs},
	}
}

func testGetSeveral(t *testing.T, e kv.Engine) {
	fill(t, e, "a=1", "b=2", "c=3")
	wantGet(t, e, []string{"c", "x", "a"}, "3", "-", "1")
	wantGet(t, e, []string{"b"}, "2")
	wantGet(t, e, []string{"x"}, "-")
}

func testGetEmptyValue(t *testing.T, e kv.Engine) {
	fill(t, e, "empty=")
	mustCommit(t, e, kv.Commit{
		Guards: []kv.Guard{anyOf(kv.Records, alpha())},
		Batch:  batchOf(kv.Op{Key: key(alpha(), "nil")}),
	})
	wantGet(t, e, []string{"empty"}, "")
	wantGet(t, e, []string{"missing"}, "-")
	wantGet(t, e, []string{"empty", "missing", "nil"}, "", "-", "")
	wantScan(t, e, kv.Records, kv.Range{}, "empty=", "nil=")
}

func batchOf(ops ...kv.Op) *kv.Batch {
	batch := new(kv.Batch)
	for _, op := range ops {
		if op.Delete {
			batch.Delete(op.Keyspace, op.Key)
		} else {
			batch.Put(op.Keyspace, op.Key, op.Value)
		}
	}
	return batch
}

func testGetNothing(t *testing.T, e kv.Engine) {
	values, err := e.Get(t.Context(), kv.Records)
	if err != nil || len(values) != 0 {
		t.Errorf("get of no key = %v, %v", values, err)
	}
	values, err = e.Get(t.Context(), kv.Records, nil, []byte{})
	if err != nil || len(values) != 2 || values[0] != nil || values[1] != nil {
		t.Errorf("get of empty keys = %v, %v", values, err)
	}
	sequences, err := e.Sequence(t.Context())
	if err != nil || len(sequences) != 0 {
		t.Errorf("sequence of no ref = %v, %v", sequences, err)
	}
}

func testGetTwice(t *testing.T, e kv.Engine) {
	fill(t, e, "a=1")
	wantGet(t, e, []string{"a", "a"}, "1", "1")
}

func testOwnedValues(t *testing.T, e kv.Engine) {
	fill(t, e, "a=1", "b=2")
	for range 2 {
		values, err := e.Get(t.Context(), kv.Records, key(alpha(), "a"), key(alpha(), "b"))
		if err != nil {
			t.Fatal(err)
		}
		values[0][0], values[1][0] = 'X', 'X'
		for pair, err := range e.Scan(t.Context(), kv.Records, kv.Range{}) {
			if err != nil {
				t.Fatal(err)
			}
			pair.Key[0], pair.Value[0] = 'X', 'X'
		}
	}
	wantGet(t, e, []string{"a", "b"}, "1", "2")
	wantScan(t, e, kv.Records, kv.Range{}, "a=1", "b=2")
}

func testBatchIsCopied(t *testing.T, e kv.Engine) {
	k, v := key(alpha(), "a"), []byte("1")
	mustCommit(t, e, kv.Commit{
		Guards: []kv.Guard{anyOf(kv.Records, alpha())},
		Batch:  batchOf(kv.Op{Key: k, Value: v}),
	})
	k[0], v[0] = 'X', 'X'
	wantScan(t, e, kv.Records, kv.Range{}, "a=1")
}

func testScanRanges(t *testing.T, e kv.Engine) {
	fill(t, e, "a=1", "b=2", "c=3", "d=4")
	a, b, c, z := key(alpha(), "a"), key(alpha(), "b"), key(alpha(), "c"), key(alpha(), "z")
	wantScan(t, e, kv.Records, kv.Range{}, "a=1", "b=2", "c=3", "d=4")
	wantScan(t, e, kv.Records, kv.Range{Start: b}, "b=2", "c=3", "d=4")
	wantScan(t, e, kv.Records, kv.Range{End: c}, "a=1", "b=2")
	wantScan(t, e, kv.Records, kv.Range{Start: b, End: c}, "b=2")
	wantScan(t, e, kv.Records, kv.Range{Start: append(bytes.Clone(b), 0), End: z}, "c=3", "d=4")
	wantScan(t, e, kv.Records, kv.Range{Start: a, End: a})
	wantScan(t, e, kv.Records, kv.Range{Start: c, End: a})
	wantScan(t, e, kv.Records, kv.Range{Start: z})
	wantScan(t, e, kv.Records, kv.Range{End: []byte{}})
	wantScan(t, e, kv.Records, kv.Range{Start: []byte{}, End: b}, "a=1")
	wantScan(t, e, kv.Records, kv.Prefix(alpha().Key('k')), "a=1", "b=2", "c=3", "d=4")
	wantScan(t, e, kv.Records, kv.Prefix([]byte{0xff}))
}

func testScanReverse(t *testing.T, e kv.Engine) {
	fill(t, e, "a=1", "b=2", "c=3")
	a, b, c := key(alpha(), "a"), key(alpha(), "b"), key(alpha(), "c")
	wantScan(t, e, kv.Records, kv.Range{Reverse: true}, "c=3", "b=2", "a=1")
	wantScan(t, e, kv.Records, kv.Range{End: c, Reverse: true}, "b=2", "a=1")
	wantScan(t, e, kv.Records, kv.Range{Start: b, Reverse: true}, "c=3", "b=2")
	wantScan(t, e, kv.Records, kv.Range{Start: a, End: b, Reverse: true}, "a=1")
	wantScan(t, e, kv.Records, kv.Range{Start: b, End: b, Reverse: true})
	wantScan(t, e, kv.Records, kv.Range{Start: c, End: a, Reverse: true})
}

func testScanLimit(t *testing.T, e kv.Engine) {
	fill(t, e, "a=1", "b=2", "c=3")
	wantScan(t, e, kv.Records, kv.Range{Limit: 1}, "a=1")
	wantScan(t, e, kv.Records, kv.Range{Limit: 2}, "a=1", "b=2")
	wantScan(t, e, kv.Records, kv.Range{Limit: 2, Reverse: true}, "c=3", "b=2")
	wantScan(t, e, kv.Records, kv.Range{Limit: 3}, "a=1", "b=2", "c=3")
	wantScan(t, e, kv.Records, kv.Range{Limit: 4}, "a=1", "b=2", "c=3")
}

func testScanEmptyStore(t *testing.T, e kv.Engine) {
	for _, ks := range kv.Keyspaces() {
		wantScan(t, e, ks, kv.Range{})
		wantScan(t, e, ks, kv.Range{Reverse: true})
	}
}

func testScanBreak(t *testing.T, e kv.Engine) {
	fill(t, e, "a=1", "b=2", "c=3")
	seq := e.Scan(t.Context(), kv.Records, kv.Range{})
	for range 100 {
		for pair, err := range seq {
			if err != nil || show(t, pair) != "a=1" {
				t.Fatalf("first of a repeated scan = %q, %v", pair, err)
			}
			break
		}
	}
	func() {
		defer func() { _ = recover() }()
		for _, err := range seq {
			panic(err)
		}
	}()
	if err := e.Close(); err != nil {
		t.Errorf("close after broken loops: %v", err)
	}
}

func testScanOneMoment(t *testing.T, e kv.Engine) {
	fill(t, e, "a=1", "c=3")
	var got []string
	for pair, err := range e.Scan(t.Context(), kv.Records, kv.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, show(t, pair))
		fill(t, e, "b=2", "c=4")
	}
	if len(got) != 2 || got[1] != "c=3" {
		t.Errorf("scan beside commits = %q", got)
	}
	wantScan(t, e, kv.Records, kv.Range{}, "a=1", "b=2", "c=4")
}

func testScopesApart(t *testing.T, e kv.Engine) {
	fill(t, e, "x=alpha")
	fillRef(t, e, ref(kv.Records, alph()), "ax=alph")
	wantScan(t, e, kv.Records, kv.Prefix(alpha().AppendPrefix(nil)), "x=alpha")
	wantScan(t, e, kv.Records, kv.Prefix(alph().AppendPrefix(nil)), "ax=alph")
	wantSequence(t, e, ref(kv.Records, alpha()), 1)
	wantSequence(t, e, ref(kv.Records, alph()), 1)
}

func testKeyspacesApart(t *testing.T, e kv.Engine) {
	for i, ks := range kv.Keyspaces() {
		for range i {
			fillRef(t, e, ref(ks, alpha()), "x="+ks.String())
		}
	}
	for i, ks := range kv.Keyspaces() {
		wantSequence(t, e, ref(ks, alpha()), uint64(i))
		if i > 0 {
			wantScan(t, e, ks, kv.Range{}, "x="+ks.String())
		}
	}
}

func testReservedHidden(t *testing.T, e kv.Engine) {
	fill(t, e, "a=1")
	mustCommit(t, e, kv.Commit{Guards: []kv.Guard{anyOf(kv.Records, alph())}})
	wantScan(t, e, kv.Records, kv.Range{}, "a=1")
	wantScan(t, e, kv.Records, kv.Range{Limit: 1}, "a=1")
	wantScan(t, e, kv.Records, kv.Range{Limit: 2, Reverse: true}, "a=1")
	values, err := e.Get(t.Context(), kv.Records, kv.SequenceKey(alpha()))
	if err != nil || values[0] != nil {
		t.Errorf("get of a reserved key = %v, %v", values, err)
	}
	values, err = e.Get(t.Context(), kv.Records, kv.SequenceKey(alpha()), key(alpha(), "a"))
	if err != nil || values[0] != nil || string(values[1]) != "1" {
		t.Errorf("get of a reserved and another key = %q, %v", values, err)
	}
}

func testByteOrder(t *testing.T, e kv.Engine) {
	fill(t, e, "\xff=4", "\x00=1", "\x7f=2", "\x80=3", "\xff\xff=5", "=0")
	wantScan(t, e, kv.Records, kv.Range{}, "=0", "\x00=1", "\x7f=2", "\x80=3", "\xff=4", "\xff\xff=5")
}

func testUnknownKeyspace(t *testing.T, e kv.Engine) {
	none := kv.Keyspace(len(kv.Keyspaces()))
	_, err := e.Get(t.Context(), none, key(alpha(), "a"))
	wantError(t, "get", err, kv.ErrBadScope)
	wantError(t, "scan", scanError(e.Scan(t.Context(), none, kv.Range{})), kv.ErrBadScope)
	_, err = e.Sequence(t.Context(), ref(none, alpha()))
	wantError(t, "sequence", err, kv.ErrBadScope)
}

func testBadRefs(t *testing.T, e kv.Engine) {
	fill(t, e, "a=1")
	for _, s := range []kv.Scope{
		{},
		{Tenant: "acme", Kind: 'q', Owner: "alpha"},
		{Tenant: "acme\x00aalpha\x00", Kind: kv.OwnerAgent, Owner: "x"},
	} {
		if _, err := e.Sequence(t.Context(), ref(kv.Records, s)); !errors.Is(err, kv.ErrBadScope) {
			t.Errorf("sequence of %q: error %v, want ErrBadScope", s, err)
		}
	}
}
