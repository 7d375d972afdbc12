// Package writer says who worded a change: a program, which an operator runs, or a model,
// which may have read the words anywhere.
//
// The mark travels in a context from the face that knows it (a tool that a model calls, the
// Model Context Protocol) to whatever stores the words, and only ever takes rights away: a
// context without one is a program's.
package writer

import "context"

// Writer is by whose words a change is made. The numbers are part of the on-disk format.
type Writer uint8

const (
	// Program is the agent's own program, or the operator.
	Program Writer = iota
	// Model is a model, through one of its tools.
	Model
	// Import is a file of records from somewhere else.
	Import
)

// String is the name: program, model or import.
func (w Writer) String() string {
	switch w {
	case Program:
		return "program"
	case Model:
		return "model"
	case Import:
		return "import"
	}
	return "unknown"
}

type key struct{}

// As returns a context in which changes are made by a writer's words.
func As(ctx context.Context, w Writer) context.Context { return context.WithValue(ctx, key{}, w) }

// Of is by whose words changes are made in a context.
func Of(ctx context.Context) Writer {
	w, _ := ctx.Value(key{}).(Writer)
	return w
}
