//go:build cgo && !norocksdb

package migration_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/loom-bridge/loom-bridge/bridge/cluster/migration"
	"github.com/loom-bridge/loom-bridge/internal/testkit/pgtest"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/pgkv"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// write puts n pairs of each of some agents into a store in dir, and takes one away.
func write(t *testing.T, dir string, agents, n int, value string) {
	t.Helper()
	db, err := rockskv.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for a := range agents {
		ref := kv.Ref{Keyspace: kv.Log, Scope: kv.AgentScope("acme", fmt.Sprint("agent-", a))}
		last, err := db.Sequence(t.Context(), ref)
		if err != nil {
			t.Fatal(err)
		}
		c := kv.Commit{Guards: []kv.Guard{{Ref: ref, Sequence: last[0]}}, Batch: new(kv.Batch), Token: uint64(a)} //nolint:gosec // small
		for i := range n {
			c.Batch.Put(kv.Log, ref.Scope.Key('k', fmt.Append(nil, i)), []byte(value))
		}
		c.Batch.Delete(kv.Log, ref.Scope.Key('k', []byte("0")))
		if err := db.Commit(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
}

func source(t *testing.T, dir string) *rockskv.DB {
	t.Helper()
	db, err := rockskv.OpenReadOnly(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// targets are empty ones of both engines. They are closed by the test.
func targets(t *testing.T) map[string]func() migration.Target {
	dir, schema := t.TempDir(), pgtest.Schema(t, pgtest.Address(t))
	return map[string]func() migration.Target{
		"rockskv": func() migration.Target {
			db, err := rockskv.Open(dir, &rockskv.Options{Fill: "x"})
			if err != nil {
				t.Fatal(err)
			}
			return db
		},
		"pgkv": func() migration.Target {
			db, err := pgkv.Open(t.Context(), pgtest.Address(t), &pgkv.Options{Schema: schema, Fill: "x"})
			if err != nil {
				t.Fatal(err)
			}
			return db
		},
	}
}

func shut(t *testing.T, to migration.Target) {
	t.Helper()
	if err := to.(kv.Engine).Close(); err != nil {
		t.Fatal(err)
	}
}

// silent watches nothing.
var silent = migration.Watcher{
	Step: func(kv.Keyspace, migration.Stage, int64) {}, Done: func(kv.Keyspace, migration.Count) {}, Again: func(kv.Keyspace) {},
}

// cut is a target that takes only so many fillings.
type cut struct {
	migration.Target
	left int
}

var errCut = errors.New("cut off")

func (c *cut) Fill(ctx context.Context, ks kv.Keyspace, pairs []kv.Pair) error {
	if c.left--; c.left < 0 {
		return errCut
	}
	return c.Target.Fill(ctx, ks, pairs)
}

// What was begun goes on where it was cut off; where the source was changed since then, its
// keyspace is copied anew.
func TestResume(t *testing.T) {
	for name := range targets(t) {
		for _, changed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s changed %v", name, changed), func(t *testing.T) {
				open, dir := targets(t)[name], t.TempDir()
				write(t, dir, 5, 1500, "first")
				from, to := source(t, dir), open()
				if err := migration.Run(t.Context(), from, &cut{to, 2}, silent); !errors.Is(err, errCut) {
					t.Fatal(err)
				}
				shut(t, to)
				if changed {
					_ = from.Close()
					write(t, dir, 1, 3, "second")
					from = source(t, dir)
				}
				again, copied, want := 0, int64(0), migration.Count{}
				to = open()
				defer func() { shut(t, to) }()
				err := migration.Run(t.Context(), from, to, migration.Watcher{
					Again: func(kv.Keyspace) { again++ },
					Step: func(_ kv.Keyspace, stage migration.Stage, pairs int64) {
						if stage == migration.Copying {
							copied = pairs
						}
					},
					Done: func(ks kv.Keyspace, c migration.Count) {
						if ks == kv.Log {
							want = c
						}
					},
				})
				if err != nil {
					t.Fatal(err)
				}
				whole := int64(5*1499 + 5)
				if want.Pairs != 5*1499 || want.Sequences != 5 || (again == 1) != changed || (copied == whole) != changed {
					t.Errorf("%+v, copied anew %d times, %d pairs copied last", want, again, copied)
				}
			})
		}
	}
}

// forgetful loses a pair.
type forgetful struct{ migration.Target }

func (f forgetful) Fill(ctx context.Context, ks kv.Keyspace, pairs []kv.Pair) error {
	return f.Target.Fill(ctx, ks, pairs[1:])
}

// A copy that lacks anything, a sequence alone, is never finished.
func TestDiffers(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, 1, 10, "value")
	from := source(t, dir)
	for name, open := range targets(t) {
		to := open()
		err := migration.Run(t.Context(), from, forgetful{to}, silent)
		if !errors.Is(err, migration.ErrDiffers) {
			t.Errorf("%s: %v", name, err)
		}
		shut(t, to)
	}
}
