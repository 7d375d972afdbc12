// Package logs writes the lines of the server, and never waits for their reader.
package logs

import (
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/secret"
)

// Formats of lines.
const (
	Text = "text"
	JSON = "json"
)

const (
	// waitingLines bounds the lines that wait for a reader.
	waitingLines = 1024
	// maxLineBytes bounds one line, a stack trace included.
	maxLineBytes = 16 << 10
	// flushTimeout is how long the last lines may take at the end.
	flushTimeout = 100 * time.Millisecond
)

// Writer hands lines to a writer that may block for ever, such as a
// pipe without a reader, without ever blocking itself: lines that do not fit the
// queue are dropped, and the next line says how many were.
type Writer struct {
	secrets *secret.Set
	lines   chan []byte
	dropped atomic.Int64
	stop    chan struct{}
	closing sync.Once
	done    chan struct{}
}

// NewWriter returns a writer that passes its lines on until it is closed, with stars in the
// place of secrets. There may be none.
func NewWriter(to io.Writer, secrets *secret.Set) *Writer {
	w := &Writer{secrets: secrets, lines: make(chan []byte, waitingLines), stop: make(chan struct{}), done: make(chan struct{})}
	go w.forward(to)
	return w
}

// Write queues one line. It never fails.
func (w *Writer) Write(line []byte) (int, error) {
	masked := w.secrets.All().Bytes(line)
	kept := append([]byte(nil), masked[:min(len(line), maxLineBytes)]...)
	if len(kept) < len(line) {
		kept = append(kept, "…\n"...)
	}
	select {
	case w.lines <- kept:
	default:
		w.dropped.Add(1)
	}
	return len(line), nil
}

// Close waits for the queued lines to be written, but not for long: a goroutine
// that hangs in a dead pipe is left behind. Lines written later are dropped.
func (w *Writer) Close() error {
	w.closing.Do(func() { close(w.stop) })
	select {
	case <-w.done:
	case <-time.After(flushTimeout):
	}
	return nil
}

func (w *Writer) forward(to io.Writer) {
	defer close(w.done)
	for {
		select {
		case line := <-w.lines:
			w.pass(to, line)
			continue
		default:
		}
		select {
		case line := <-w.lines:
			w.pass(to, line)
		case <-w.stop:
			return
		}
	}
}

// pass writes one line. An error is ignored: there is nowhere to report it.
func (w *Writer) pass(to io.Writer, line []byte) {
	_, _ = to.Write(line)
	if n := w.dropped.Swap(0); n > 0 {
		_, _ = fmt.Fprintf(to, "%d log lines were dropped: the reader was too slow\n", n)
	}
}

// NewLogger returns a logger of the given level and format.
func NewLogger(to io.Writer, level slog.Level, format string) *slog.Logger {
	options := &slog.HandlerOptions{Level: level}
	if format == JSON {
		return slog.New(slog.NewJSONHandler(to, options))
	}
	return slog.New(slog.NewTextHandler(to, options))
}
