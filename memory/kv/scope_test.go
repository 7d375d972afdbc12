package kv_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

func TestScopeValidate(t *testing.T) {
	long := func(n int) string { return strings.Repeat("x", n) }
	tests := []struct {
		name  string
		scope kv.Scope
		ok    bool
	}{
		{"agent", kv.AgentScope("acme", "researcher-1"), true},
		{"every kind", kv.Scope{Tenant: "a", Kind: kv.OwnerSystem, Owner: "b"}, true},
		{"UTF-8", kv.AgentScope("åcme", "研究者"), true},
		{"tenant below limit", kv.AgentScope(long(kv.MaxTenantBytes-1), "a"), true},
		{"tenant at limit", kv.AgentScope(long(kv.MaxTenantBytes), "a"), true},
		{"tenant over limit", kv.AgentScope(long(kv.MaxTenantBytes+1), "a"), false},
		{"owner below limit", kv.AgentScope("a", long(kv.MaxOwnerBytes-1)), true},
		{"owner at limit", kv.AgentScope("a", long(kv.MaxOwnerBytes)), true},
		{"owner over limit", kv.AgentScope("a", long(kv.MaxOwnerBytes+1)), false},
		{"zero", kv.Scope{}, false},
		{"no tenant", kv.AgentScope("", "a"), false},
		{"no owner", kv.AgentScope("a", ""), false},
		{"no kind", kv.Scope{Tenant: "a", Owner: "b"}, false},
		{"unknown kind", kv.Scope{Tenant: "a", Kind: 'z', Owner: "b"}, false},
		{"NUL in tenant", kv.AgentScope("a\x00b", "c"), false},
		{"NUL in owner", kv.AgentScope("a", "b\x00"), false},
		{"not UTF-8", kv.AgentScope("a", "b\xff"), false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := test.scope.Validate()
			if (err == nil) != test.ok || (err != nil && !errors.Is(err, kv.ErrBadScope)) {
				t.Errorf("error %v, want ok = %v", err, test.ok)
			}
		})
	}
}

func TestSplitKeyRefuses(t *testing.T) {
	for _, key := range []string{"", "a", "a\x00", "a\x00a", "a\x00ab", "\x00aa\x00", "a\x00a\x00", "a\x00zb\x00", "a\x00\x00b\x00"} {
		if _, _, err := kv.SplitKey([]byte(key)); !errors.Is(err, kv.ErrBadScope) {
			t.Errorf("split %q: error %v, want ErrBadScope", key, err)
		}
	}
}

// fuzzScopes adds scopes whose parts are prefixes of each other.
func fuzzScopes(f *testing.F) {
	f.Add("acme", byte('a'), "alpha", "acme", byte('a'), "alph", []byte("k"))
	f.Add("acme", byte('a'), "alpha", "acm", byte('a'), "ealpha", []byte{})
	f.Add("a", byte('a'), "b", "a", byte('u'), "b", []byte{0xff, 0xff})
	f.Add("å", byte('s'), "\x01", "å\x01", byte('s'), "x", []byte{0})
	f.Add("", byte(0), "\x00", "a", byte('t'), "b\xff", []byte("rest"))
}

// FuzzScopeKey checks for any two scopes that keys lead back to them, that
// neither prefix begins with the other, and that the keys of one scope lie
// together.
func FuzzScopeKey(f *testing.F) {
	fuzzScopes(f)
	f.Fuzz(func(t *testing.T, tenantA string, kindA byte, ownerA, tenantB string, kindB byte, ownerB string, rest []byte) {
		a := kv.Scope{Tenant: tenantA, Kind: kv.OwnerKind(kindA), Owner: ownerA}
		b := kv.Scope{Tenant: tenantB, Kind: kv.OwnerKind(kindB), Owner: ownerB}
		if a.Validate() != nil || b.Validate() != nil {
			return
		}
		wantSplit(t, a, rest)
		wantSplit(t, b, rest)
		if a != b {
			wantApart(t, a, b, rest)
		}
	})
}

// wantSplit takes keys of a scope apart again.
func wantSplit(t *testing.T, s kv.Scope, rest []byte) {
	t.Helper()
	key := s.Key('k', rest, []byte("end"))
	got, tail, err := kv.SplitKey(key)
	if err != nil || got != s || string(tail) != "k"+string(rest)+"end" {
		t.Errorf("split %q = %v, %q, %v; want %v", key, got, tail, err, s)
	}
	if !bytes.HasPrefix(key, s.AppendPrefix(nil)) || kv.IsReserved(key) {
		t.Errorf("key %q of %v: wrong prefix, or reserved", key, s)
	}
	if sequence := kv.SequenceKey(s); !kv.IsReserved(sequence) || bytes.Compare(sequence, s.Key(1)) >= 0 {
		t.Errorf("sequence key %q of %v is not reserved or not the first", sequence, s)
	}
}

// wantApart wants the keys of two scopes not to mix in byte order.
func wantApart(t *testing.T, a, b kv.Scope, rest []byte) {
	t.Helper()
	prefixA, prefixB := a.AppendPrefix(nil), b.AppendPrefix(nil)
	if bytes.HasPrefix(prefixA, prefixB) || bytes.HasPrefix(prefixB, prefixA) {
		t.Fatalf("prefixes of %v and %v: one begins with the other", a, b)
	}
	order := bytes.Compare(prefixA, prefixB)
	keysA := [][]byte{kv.SequenceKey(a), a.Key('k', rest), a.Key(0xff, rest)}
	keysB := [][]byte{kv.SequenceKey(b), b.Key('k', rest), b.Key(0xff, rest)}
	for _, x := range keysA {
		for _, y := range keysB {
			if bytes.Compare(x, y) != order {
				t.Errorf("%q and %q are in another order than their scopes", x, y)
			}
		}
		if r := kv.Prefix(prefixA); !inside(r, x) || inside(kv.Prefix(prefixB), x) {
			t.Errorf("%q: in the range of the wrong scope", x)
		}
	}
}

func inside(r kv.Range, key []byte) bool {
	return bytes.Compare(key, r.Start) >= 0 && (r.End == nil || bytes.Compare(key, r.End) < 0)
}

// FuzzSplitKey wants no panic on garbage, and what it accepts to be what Key
// would have written.
func FuzzSplitKey(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("a\x00ab\x00rest"))
	f.Add([]byte("a\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, key []byte) {
		s, rest, err := kv.SplitKey(key)
		if err == nil && !bytes.Equal(append(s.AppendPrefix(nil), rest...), key) {
			t.Errorf("split %q = %v, %q", key, s, rest)
		}
		if kv.IsReserved(key) && err != nil {
			t.Errorf("%q is reserved, but of no scope", key)
		}
	})
}

// FuzzEscaped checks the round trip of escaped text, with anything behind it,
// and that it sorts as the text does.
func FuzzEscaped(f *testing.F) {
	f.Add("", "", []byte{})
	f.Add("a", "a\x00", []byte{1})
	f.Add("a\x00\xff", "a\x00\x01", []byte{0xff})
	f.Add("ab", "a\xff", []byte("rest"))
	f.Fuzz(func(t *testing.T, a, b string, rest []byte) {
		escaped := kv.AppendEscaped([]byte("head"), a)[len("head"):]
		text, tail, err := kv.CutEscaped(append(slices.Clone(escaped), rest...))
		if err != nil || text != a || !bytes.Equal(tail, rest) {
			t.Errorf("cut %q = %q, %q, %v", escaped, text, tail, err)
		}
		other := kv.AppendEscaped(nil, b)
		if got, want := bytes.Compare(escaped, other), strings.Compare(a, b); got != want {
			t.Errorf("%q and %q escaped compare as %d, want %d", a, b, got, want)
		}
		if a != b && bytes.HasPrefix(escaped, other) {
			t.Errorf("%q escaped begins with %q escaped", a, b)
		}
	})
}

// FuzzCutEscaped wants no panic on garbage, and what it accepts to be what
// AppendEscaped would have written.
func FuzzCutEscaped(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{0, 1})
	f.Add([]byte{0, 0xff, 0, 2})
	f.Fuzz(func(t *testing.T, key []byte) {
		text, rest, err := kv.CutEscaped(key)
		switch {
		case err != nil && !errors.Is(err, kv.ErrBadKey):
			t.Errorf("cut %q: error %v", key, err)
		case err == nil && !bytes.Equal(append(kv.AppendEscaped(nil, text), rest...), key):
			t.Errorf("cut %q = %q, %q", key, text, rest)
		}
	})
}

// FuzzAfter checks that a prefix's range holds what begins with it and no more.
func FuzzAfter(f *testing.F) {
	f.Add([]byte("a"), []byte("ab"))
	f.Add([]byte{0xff}, []byte{0xff, 0xff})
	f.Add([]byte{'a', 0xff}, []byte("b"))
	f.Add([]byte{}, []byte{})
	f.Fuzz(func(t *testing.T, prefix, key []byte) {
		if got, want := inside(kv.Prefix(prefix), key), bytes.HasPrefix(key, prefix); got != want {
			t.Errorf("%q in the range of prefix %q: %v, want %v", key, prefix, got, want)
		}
		whole := append(slices.Clone(prefix), key...)
		if !inside(kv.Prefix(prefix), whole) {
			t.Errorf("%q is not in the range of its prefix %q", whole, prefix)
		}
	})
}

func TestKeyspaces(t *testing.T) {
	var names []string
	for i, ks := range kv.Keyspaces() {
		if int(ks) != i {
			t.Errorf("keyspace %s has number %d at place %d", ks, ks, i)
		}
		names = append(names, ks.String())
	}
	// The names and their order are on disk.
	if want := []string{"records", "index", "log", "blobs", "events", "system"}; !slices.Equal(names, want) {
		t.Errorf("keyspaces %v, want %v", names, want)
	}
	if got := kv.WholeStore.String(); got != "store" {
		t.Errorf("name of what belongs to no keyspace = %q", got)
	}
	if got := (kv.WholeStore + 1).String(); got != "unknown" {
		t.Errorf("name of no keyspace = %q", got)
	}
}

// TestKeyForm pins the bytes of a key: they are on disk.
func TestKeyForm(t *testing.T) {
	s := kv.Scope{Tenant: "acme", Kind: kv.OwnerTopic, Owner: "news"}
	if got, want := string(s.Key('k', []byte("1"), []byte("2"))), "acme\x00tnews\x00k12"; got != want {
		t.Errorf("key %q, want %q", got, want)
	}
	if got, want := string(kv.SequenceKey(s)), "acme\x00tnews\x00\x00"; got != want {
		t.Errorf("sequence key %q, want %q", got, want)
	}
}
