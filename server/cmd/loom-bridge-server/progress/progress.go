// Package progress shows on a terminal how far something has come.
package progress

import (
	"fmt"
	"io"
	"os"
	"time"
)

// Line is a line on a terminal that says how far something has come.
type Line struct {
	to    io.Writer // nil: there is no terminal
	last  time.Time
	shown bool
}

// every is the time between two changes of the line.
const every = 200 * time.Millisecond

// New shows progress if w is a terminal.
func New(w io.Writer) *Line {
	if f, ok := w.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			return &Line{to: w}
		}
	}
	return &Line{}
}

// Show replaces the line, now and then. What can't be shown is not missed.
func (p *Line) Show(format string, args ...any) {
	if now := time.Now(); p.to != nil && now.Sub(p.last) >= every {
		p.last, p.shown = now, true
		_, _ = fmt.Fprintf(p.to, "\r\x1b[K"+format, args...)
	}
}

// Clear takes the line away, before something else is written.
func (p *Line) Clear() {
	if p.shown {
		p.shown = false
		_, _ = fmt.Fprint(p.to, "\r\x1b[K")
	}
}
