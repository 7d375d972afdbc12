package session

import (
	"context"
	"fmt"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
)

// An import ends what a program has begun that imported in several commits and was killed: its
// head and first entries. What somebody has added to is another session.
func TestImportEndsWhatWasBegun(t *testing.T) {
	scope := kv.AgentScope("default", "ann")
	open := func() (*Log, *kv.Writer) {
		engine := memkv.New(nil)
		writer := kv.NewWriter(engine, nil)
		t.Cleanup(func() { _ = writer.Close() })
		return New(engine, writer, nil), writer
	}
	from, _ := open()
	for i := range 9 {
		if _, err := from.AppendMessages(t.Context(), scope, "s", []Message{{Role: User, Content: fmt.Sprint("message ", i)}}, ""); err != nil {
			t.Fatal(err)
		}
	}
	all, err := from.Parts(t.Context(), scope, "s")
	if err != nil {
		t.Fatal(err)
	}
	for begun := 1; begun < 9; begun++ {
		for _, added := range []bool{false, true} {
			to, writer := open()
			err := writer.Do(t.Context(), kv.Request{Refs: []kv.Ref{to.Ref(scope)}, Stage: func(_ context.Context, tx *kv.Tx) error {
				tx.Put(kv.Log, headKey(scope, "s"), encodeHead(head{last: uint64(begun)}))
				for _, p := range all[1 : 1+begun] {
					tx.Put(kv.Log, entryKey(scope, "s", p.Number), p.Value)
				}
				return nil
			}})
			if err != nil {
				t.Fatal(err)
			}
			if added {
				if _, err := to.AppendMessages(t.Context(), scope, "s", []Message{{Role: User, Content: "more"}}, ""); err != nil {
					t.Fatal(err)
				}
			}
			there, err := to.Import(t.Context(), scope, "s", all)
			if there || (err == nil) == added {
				t.Errorf("%d entries, added to %v: there %v, %v", begun, added, there, err)
			}
			if there, err = to.Import(t.Context(), scope, "s", all); there == added {
				t.Errorf("%d entries, made again: there %v, %v", begun, there, err)
			}
		}
	}
}
