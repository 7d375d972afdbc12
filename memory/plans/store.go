package plans

import (
	"cmp"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// What a session keeps of each sort. Existing agents rely on these numbers.
const (
	// MaxPlans is how many plans a session keeps, over all symbols.
	MaxPlans = 100
	// MaxExecutions is how many executions a session keeps.
	MaxExecutions = 1000
	// MaxLines is how many lines a session keeps.
	MaxLines = 500
)

// Limits of one entry as it is stored, all fields together, in bytes.
const (
	// MaxPlanBytes leaves a value of the store room for its header.
	MaxPlanBytes = 1 << 20
	// MaxExecutionBytes is room for a long error text, and so small that the
	// executions of an answer fit one message.
	MaxExecutionBytes = 256 << 10
	// MaxLineBytes is so small that the lines of a summary fit one message.
	MaxLineBytes = 64 << 10
	// MaxQueryBytes bounds what Retrieve looks for. A longer text can't be part of
	// a line, whatever case either is in; it finds nothing.
	MaxQueryBytes = 1 << 20
)

// DefaultMaxAnswerBytes bounds one answer. It is below the 4 MiB that gRPC
// clients take by default, with room for what surrounds the texts.
const DefaultMaxAnswerBytes = 4<<20 - 64<<10

// Options adjusts a Store. Nil and zero fields mean the defaults.
type Options struct {
	// Now returns the time. Default time.Now.
	Now func() time.Time
	// MaxAnswerBytes bounds the entries that one call returns, together; more is
	// a *SizeError. Default DefaultMaxAnswerBytes.
	MaxAnswerBytes int
}

// Store appends and reads entries of any number of sessions. It holds no state: all of it
// is in the engine. All methods are safe for concurrent use.
type Store struct {
	engine    kv.Engine
	writer    *kv.Writer
	now       func() time.Time
	maxAnswer int
}

// New returns a store that reads engine and writes through writer. Both stay
// the caller's to close.
func New(engine kv.Engine, writer *kv.Writer, opts *Options) *Store {
	o := *cmp.Or(opts, &Options{})
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.MaxAnswerBytes <= 0 {
		o.MaxAnswerBytes = DefaultMaxAnswerBytes
	}
	return &Store{engine: engine, writer: writer, now: o.Now, maxAnswer: o.MaxAnswerBytes}
}

// room is how much of an answer is left.
type room struct{ used, limit int }

func (s *Store) room() room { return room{limit: s.maxAnswer} }

// take refuses what would make the answer too large.
func (r *room) take(size int) error {
	if r.used += size; r.used > r.limit {
		return &SizeError{What: "answer", Size: r.used, Limit: r.limit}
	}
	return nil
}
