// Package script runs Python scripts for a caller who wants a value: a function of a
// script is called with JSON and its result is JSON, or the script runs as a whole.
//
// A [Request] is what the driver, which is itself Python, reads from its input; a
// [Splitter] parts what it writes into the script's own output and the [Reply]. A [AnswerCache]
// keeps replies by what they were made from: the script's bytes, the arguments, and
// whatever the script read in the workspace.
//
// Caveats: what a script learns from the clock, from the machine or by asking whether a
// file exists is not noticed. A script that starts programs or writes outside of the
// folder for temporary files is never answered from a cache.
package script

import (
	"bytes"
	"crypto/rand"
	_ "embed" // for the driver
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

//go:embed driver.py
var driver string

// Limits of scripts.
const (
	// MaxBytes bounds a script.
	MaxBytes = 1 << 20
	// MaxReplyBytes bounds the reply, the result's JSON in it.
	MaxReplyBytes = 4 << 20
	// MaxReads bounds the files and folders that a cached reply was made from.
	MaxReads = 256
)

// Request is the driver's input.
type Request struct {
	// Path is the script's absolute path, Workspace the folder it works in.
	Path      string `json:"path"`
	Workspace string `json:"workspace"`
	// Bytes are the script.
	Bytes []byte `json:"bytes"`
	// Function is what to call; empty runs the script as a whole.
	Function string `json:"function"`
	// Args are the arguments: a list, or an object by name.
	Args any `json:"args"`
	// Mark stands in front of the reply. Default: a new one.
	Mark string `json:"mark"`
	// MaxReads is MaxReads.
	MaxReads int `json:"max_reads"`
}

// Command is the program that runs a request, with its arguments, and its input.
func (r *Request) Command(python string) (argv []string, input []byte, err error) {
	if r.Mark == "" {
		r.Mark = "\x00loom:" + rand.Text() + "\x00"
	}
	r.MaxReads = MaxReads
	input, err = json.Marshal(r)
	return []string{python, "-B", "-X", "utf8", "-c", driver}, input, err
}

// Env are the variables that make runs alike.
func Env() []string { return []string{"PYTHONHASHSEED=0", "PYTHONDONTWRITEBYTECODE=1"} }

// Reply is what came of a run.
type Reply struct {
	OK bool `json:"ok"`
	// Result is the JSON of what the function returned; HasResult is false where none was
	// called.
	Result    json.RawMessage `json:"result"`
	HasResult bool            `json:"has_result"`
	// Functions are the names of functions that a script which ran as a whole defines, the
	// first 20.
	Functions []string `json:"functions"`
	// Kind says why it failed: exception, function (no function of that name), arguments
	// (they do not fit), result (it is not JSON).
	Kind string `json:"kind"`
	// Type, Message and Traceback describe an exception; Message of any other failure.
	Type      string `json:"type"`
	Message   string `json:"message"`
	Traceback string `json:"traceback"`
	// Pure says that it did nothing but read, and Reads what it read in the workspace.
	Pure  bool   `json:"pure"`
	Reads []Read `json:"reads"`
}

// Read is something of the workspace that a script read.
type Read struct {
	Kind ReadKind
	Path string // relative to the workspace
}

// ReadKind is what of a path was read.
type ReadKind string

// The kinds.
const (
	ReadFile    ReadKind = "file"    // its bytes
	ReadNames   ReadKind = "names"   // the names in a folder
	ReadModules ReadKind = "modules" // the same, for an import
)

// UnmarshalJSON takes a pair of kind and path.
func (r *Read) UnmarshalJSON(text []byte) error {
	var pair [2]string
	if err := json.Unmarshal(text, &pair); err != nil {
		return err
	}
	r.Kind, r.Path = ReadKind(pair[0]), pair[1]
	return nil
}

// Errors of replies.
var (
	// ErrNoReply: the script's process ended without one.
	ErrNoReply = errors.New("the script ended without a result")
	// ErrTooLong: the reply is over MaxReplyBytes.
	ErrTooLong = fmt.Errorf("the result is longer than the limit of %d bytes: write it to a file and return its path", MaxReplyBytes)
)

// Splitter passes the output of a script on and keeps the reply behind it. It is used by
// one goroutine.
type Splitter struct {
	to    io.Writer
	mark  []byte
	held  []byte // the beginning of what may be the mark
	found bool
	reply []byte
}

// NewSplitter returns a splitter for the mark of a request.
func NewSplitter(mark string, to io.Writer) *Splitter { return &Splitter{to: to, mark: []byte(mark)} }

// Write takes output of the driver.
func (s *Splitter) Write(p []byte) (int, error) {
	n := len(p)
	if s.found {
		s.keep(p)
		return n, nil
	}
	s.held = append(s.held, p...)
	out := s.held
	if i := bytes.Index(s.held, s.mark); i >= 0 {
		s.found = true
		s.keep(s.held[i+len(s.mark):])
		out = s.held[:i]
	} else {
		out = out[:len(out)-s.possible()]
	}
	_, err := s.to.Write(out)
	s.held = append(s.held[:0], s.held[len(out):]...)
	return n, err
}

// possible is how many bytes at the end may be the beginning of the mark.
func (s *Splitter) possible() int {
	for n := min(len(s.mark)-1, len(s.held)); n > 0; n-- {
		if bytes.HasSuffix(s.held, s.mark[:n]) {
			return n
		}
	}
	return 0
}

func (s *Splitter) keep(p []byte) {
	s.reply = append(s.reply, p[:min(len(p), MaxReplyBytes+1-len(s.reply))]...)
}

// Reply returns the reply once all output was written, or ErrNoReply or ErrTooLong.
func (s *Splitter) Reply() (Reply, error) {
	if !s.found {
		if len(s.held) > 0 {
			if _, err := s.to.Write(s.held); err != nil {
				return Reply{}, err
			}
		}
		return Reply{}, ErrNoReply
	}
	if len(s.reply) > MaxReplyBytes {
		return Reply{}, ErrTooLong
	}
	var r Reply
	if err := json.Unmarshal(s.reply, &r); err != nil {
		return Reply{}, ErrNoReply // whatever wrote the mark, it was not the driver
	}
	return r, nil
}
