package selection_test

import (
	"errors"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	"github.com/loom-bridge/loom-bridge/memory/lexical"
)

var scope = kv.AgentScope("default", "a")

var errInjected = errors.New("injected")

// library is an index in memory.
type library struct {
	*lexical.Index
	engine kv.Engine
	writer *kv.Writer
}

func MustLibrary(tb testing.TB) *library {
	tb.Helper()
	engine := memkv.New(nil)
	l := &library{Index: lexical.New(nil), engine: engine, writer: kv.NewWriter(engine, nil)}
	tb.Cleanup(func() { _ = l.writer.Close() })
	return l
}

func (l *library) MustPack(tb testing.TB) {
	tb.Helper()
	for {
		s, _, err := l.Pack(tb.Context(), l.engine, l.writer, scope)
		if err != nil {
			tb.Fatal(err)
		}
		if s.Tail() == 0 {
			return
		}
	}
}

func (l *library) MustMerge(tb testing.TB) {
	tb.Helper()
	for more := true; more; {
		var err error
		if more, err = l.Merge(tb.Context(), l.engine, l.writer, scope); err != nil {
			tb.Fatal(err)
		}
	}
}
