package kvtest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// foreseen is what the cases of reading along say they will read. They read it, and more.
func foreseen(along *kv.Reads) {
	along.Sequence(ref(kv.Records, alpha()), ref(kv.Log, alpha()))
	along.Get(kv.Records, key(alpha(), "a"), key(alpha(), "missing"))
	along.Get(kv.Records, key(alpha(), "a"))
	along.Get(kv.Log, key(alpha(), "empty"))
	along.Scan(kv.Records, kv.Prefix(alpha().Key('k')))
	along.Scan(kv.Records, kv.Range{Reverse: true, Limit: 1})
}

func testSnapshotAlong(t *testing.T, e kv.Engine) {
	fill(t, e, "a=1", "b=2")
	fillRef(t, e, ref(kv.Log, alpha()), "empty=")
	with, err := kv.SnapshotWith(t.Context(), e, []kv.Ref{ref(kv.Records, alpha())}, foreseen)
	if err != nil {
		t.Fatal(err)
	}
	all := []kv.Snapshot{with}
	if far, ok := e.(kv.Far); ok {
		var along kv.Reads
		foreseen(&along)
		for range 3 { // each is opened by another read
			later, err := far.SnapshotLater(t.Context(), along)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, later)
		}
		wantSequence(t, all[1], ref(kv.Records, alpha()), 1)
		wantGet(t, all[2], []string{"b", "a"}, "2", "1")
		wantScan(t, all[3], kv.Records, kv.Range{Start: key(alpha(), "b")}, "b=2")
	}
	fill(t, e, "a=3", "c=4")
	fillRef(t, e, ref(kv.Log, alpha()), "empty=no")
	if n := with.Sequences(); len(n) != 1 || n[0] != 1 {
		t.Errorf("opened with sequences %v", n)
	}
	for _, s := range all {
		for range 2 {
			wantSequence(t, s, ref(kv.Records, alpha()), 1)
			wantSequence(t, s, ref(kv.Log, alpha()), 1)
			wantSequence(t, s, ref(kv.Events, alpha()), 0)
			wantGet(t, s, []string{"a", "missing", "a"}, "1", "-", "1")
			wantGet(t, s, []string{"a", "b", "c"}, "1", "2", "-")
			wantScan(t, s, kv.Records, kv.Prefix(alpha().Key('k')), "a=1", "b=2")
			wantScan(t, s, kv.Records, kv.Range{Reverse: true, Limit: 1}, "b=2")
			wantScan(t, s, kv.Records, kv.Range{Reverse: true}, "b=2", "a=1")
			values, err := s.Get(t.Context(), kv.Log, key(alpha(), "empty"))
			if err != nil || values[0] == nil || len(values[0]) != 0 {
				t.Errorf("empty value: %v, %v", values, err)
			}
			// What was given belongs to the caller.
			values, err = s.Get(t.Context(), kv.Records, key(alpha(), "a"))
			if err != nil {
				t.Fatal(err)
			}
			values[0][0] = 'x'
			for pair, err := range s.Scan(t.Context(), kv.Records, kv.Prefix(alpha().Key('k'))) {
				if err != nil {
					t.Fatal(err)
				}
				clear(pair.Key)
				clear(pair.Value)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if _, err := s.Get(t.Context(), kv.Records, key(alpha(), "a")); !errors.Is(err, kv.ErrClosed) {
			t.Errorf("a key that was read along, of a closed snapshot: %v", err)
		}
		if _, err := s.Sequence(t.Context(), ref(kv.Records, alpha())); !errors.Is(err, kv.ErrClosed) {
			t.Errorf("a sequence that was read along, of a closed snapshot: %v", err)
		}
	}
}

func testSnapshotAlongTooMuch(t *testing.T, e kv.Engine) {
	var names, want []string
	for i := range kv.MaxAlong + 10 {
		names, want = append(names, fmt.Sprint(i)), append(want, "-")
	}
	fill(t, e, "0=first", fmt.Sprintf("%d=last", kv.MaxAlong+9))
	want[0], want[len(want)-1] = "first", "last"
	s, err := kv.SnapshotWith(t.Context(), e, nil, func(along *kv.Reads) {
		for _, name := range names {
			along.Get(kv.Records, key(alpha(), name))
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	wantGet(t, s, names, want...)
	wantGet(t, s, []string{"0", names[len(names)-1]}, "first", "last")
}
