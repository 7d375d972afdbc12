package writer_test

import (
	"context"
	"testing"

	"github.com/loom-bridge/loom-bridge/memory/writer"
)

// A context says who writes, and without a mark it is a program.
func TestContext(t *testing.T) {
	if got := writer.Of(t.Context()); got != writer.Program {
		t.Errorf("without a mark %v writes", got)
	}
	ctx, cancel := context.WithCancel(writer.As(t.Context(), writer.Model))
	defer cancel()
	if got := writer.Of(ctx); got != writer.Model {
		t.Errorf("%v writes, want the model", got)
	}
	for w, want := range map[writer.Writer]string{writer.Program: "program", writer.Model: "model", writer.Import: "import", 9: "unknown"} {
		if w.String() != want {
			t.Errorf("%d is called %q, want %q", w, w, want)
		}
	}
}
