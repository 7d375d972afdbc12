package grants

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
)

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// open returns a store over an engine in memory, in which parents says who spawned whom.
func open(tb testing.TB, parents map[string]string) *Store {
	tb.Helper()
	engine := memkv.New(nil)
	writer := kv.NewWriter(engine, nil)
	s := New(engine, writer, &Options{
		Clear:  func(context.Context, kv.Scope) error { return nil },
		Parent: func(_ context.Context, agent kv.Scope) (string, error) { return parents[agent.Owner], nil },
	})
	tb.Cleanup(func() {
		must(tb, s.Close())
		must(tb, writer.Close())
		must(tb, engine.Close())
	})
	return s
}

func TestMatches(t *testing.T) {
	for _, tt := range []struct {
		pattern, name string
		want          bool
	}{
		{"a", "a", true}, {"a", "ab", false}, {"a*", "a", true}, {"a*", "ab", true}, {"a*", "ba", false}, {"*", "", true}, {"*", "x", true}, {"", "x", false}, {"A", "a", false},
	} {
		if got := Matches(tt.pattern, tt.name); got != tt.want {
			t.Errorf("%q matches %q: %t", tt.pattern, tt.name, got)
		}
	}
}

// A child has at most what each agent above it has, also where its own grant is higher.
func TestLevelOfChildren(t *testing.T) {
	s := open(t, map[string]string{"child": "parent", "grandchild": "child", "orphan": "stranger"})
	ctx := t.Context()
	_, err := s.Create(ctx, "acme", "team", "maker")
	must(t, err)
	scope := SpaceScope("acme", "team")
	for pattern, level := range map[string]Level{"parent": Write, "child": Admin, "grandchild": Admin, "orphan": Admin} {
		_, err := s.Grant(ctx, scope, "maker", pattern, level)
		must(t, err)
	}
	for agent, want := range map[string]Level{"maker": Admin, "parent": Write, "child": Write, "grandchild": Write, "orphan": None, "stranger": None} {
		for level := Read; level <= Admin; level++ {
			_, err := s.Need(ctx, scope, agent, level)
			if denied := errors.Is(err, ErrDenied); denied != (level > want) || !denied && err != nil {
				t.Errorf("%s needs %s and may %s: %v", agent, level, want, err)
			}
		}
	}
	must(t, s.Revoke(ctx, scope, "maker", "parent"))
	if _, err := s.Need(ctx, scope, "grandchild", Read); !errors.Is(err, ErrDenied) {
		t.Errorf("what its grandparent has lost, a child may: %v", err)
	}
}

// A commit that is staged before access is taken back, and made after it, writes nothing.
func TestPermitInCommit(t *testing.T) {
	s := open(t, nil)
	ctx := t.Context()
	_, err := s.Create(ctx, "acme", "team", "maker")
	must(t, err)
	scope := SpaceScope("acme", "team")
	_, err = s.Grant(ctx, scope, "maker", "friend", Write)
	must(t, err)
	permit, err := s.Need(ctx, scope, "friend", Write)
	must(t, err)
	records := kv.Ref{Keyspace: kv.Records, Scope: scope}
	staged := 0
	err = s.writer.Do(ctx, kv.Request{Refs: []kv.Ref{records}, Blind: permit.Refs(), Stage: func(ctx context.Context, tx *kv.Tx) error {
		if err := permit.Check(ctx, tx); err != nil {
			return err
		}
		if staged++; staged == 1 {
			must(t, s.Revoke(ctx, scope, "maker", "friend"))
		}
		tx.Put(kv.Records, scope.Key('x'), []byte("x"))
		return nil
	}})
	if !errors.Is(err, ErrDenied) || staged != 1 {
		t.Errorf("the commit, staged %d times, ended with %v", staged, err)
	}
	values, err := s.engine.Get(ctx, kv.Records, scope.Key('x'))
	if must(t, err); values[0] != nil {
		t.Error("it has written all the same")
	}
}

// Check finds what is damaged.
func TestCheck(t *testing.T) {
	scope, now := SpaceScope("acme", "team"), time.UnixMicro(1)
	good := (&memory{maker: "m", made: now, grants: []Grant{{"a", Read, "m", now}, {"m", Admin, "m", now}}}).encode()
	for name, tt := range map[string]struct {
		value []byte
		bad   bool
	}{
		"as written":   {good, false},
		"cut":          {good[:len(good)-1], true},
		"no admin":     {(&memory{maker: "m", grants: []Grant{{"a", Read, "m", now}}}).encode(), true},
		"leaving":      {(&memory{maker: "m", leaving: true}).encode(), false},
		"out of order": {(&memory{grants: []Grant{{"b", Admin, "m", now}, {"a", Read, "m", now}}}).encode(), true},
		"bad level":    {(&memory{grants: []Grant{{"b", 9, "m", now}}}).encode(), true},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, nil)
			must(t, s.writer.Do(t.Context(), kv.Request{Refs: []kv.Ref{refOf(scope)}, Stage: func(_ context.Context, tx *kv.Tx) error {
				tx.Put(kv.System, keyOf(scope), tt.value)
				return nil
			}}))
			var found []error
			must(t, Check(t.Context(), s.engine, scope, func(err error) { found = append(found, err) }))
			if (len(found) > 0) != tt.bad {
				t.Errorf("found %v", found)
			}
		})
	}
}

// What can be read is written the same way again, and nothing makes the reading panic.
func FuzzDecode(f *testing.F) {
	now := time.UnixMicro(1700000000000000)
	f.Add((&memory{maker: "m", made: now, leaving: true, grants: []Grant{{"a*", Read, "m", now}, {"m", Admin, "m", now}}}).encode())
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, err := decode(raw)
		if err != nil {
			if !errors.Is(err, kv.ErrDamaged) {
				t.Errorf("err = %v", err)
			}
			return
		}
		again, err := decode(m.encode())
		if err != nil || !bytes.Equal(again.encode(), m.encode()) {
			t.Errorf("%x comes back as %x, %v", m.encode(), again.encode(), err)
		}
	})
}

func BenchmarkNeed(b *testing.B) {
	s := open(b, nil)
	ctx := b.Context()
	_, err := s.Create(ctx, "acme", "team", "maker")
	must(b, err)
	for name, scope := range map[string]kv.Scope{"own": kv.AgentScope("acme", "maker"), "space": SpaceScope("acme", "team")} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Need(ctx, scope, "maker", Read); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
