package native

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/loom-bridge/loom-bridge/bridge/sandbox"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/context/text"
)

// maxUntilBytes of each stream stand in the failure of a program that ran out of time.
const maxUntilBytes = (step.MaxErrorBytes - 128) / 2

// printed is the output of a command while it runs: a body of what it writes to stdout,
// at whose end the rest of the result stands in values.
type printed struct {
	values map[string]any
	stdout ends // besides what is read, for a run that does not get to its end
	stderr ends

	from *io.PipeReader
	to   *io.PipeWriter

	ended   chan struct{} // closed by end
	outcome sandbox.RunOutcome
	denied  []string // connections
	names   []string // words that may name programs
	err     error    // why it did not run to its end

	once sync.Once
}

func newPrinted() *printed {
	p := &printed{values: map[string]any{}, ended: make(chan struct{})}
	p.from, p.to = io.Pipe()
	return p
}

// Write takes stdout. It waits for the reader, so that nothing piles up.
func (p *printed) Write(b []byte) (int, error) {
	_, _ = p.stdout.Write(b) // it takes all
	return p.to.Write(b)
}

// end says that the command has ended.
func (p *printed) end(out sandbox.RunOutcome, err error) {
	if errors.Is(err, context.DeadlineExceeded) {
		stdout, _ := p.stdout.text()
		stderr, _ := p.stderr.text()
		err = timedOut(err, stdout, stderr)
	}
	p.outcome, p.err = out, err
	close(p.ended)
	_ = p.to.CloseWithError(err) // nil is the end of the output; it returns nil
}

// timedOut is the failure of a program that ran out of time: it says what the program printed
// last, which nothing else keeps.
func timedOut(err error, stdout, stderr string) error {
	message := "Timeout"
	for _, said := range [][2]string{{"stdout", stdout}, {"stderr", stderr}} {
		if printed := strings.TrimRight(strings.ToValidUTF8(said[1], "\uFFFD"), "\r\n"); printed != "" {
			message += "\n" + said[0] + " until then:\n" + text.Tail(printed, maxUntilBytes)
		}
	}
	return wrapped(tools.Timeout, message, err)
}

// Read gives stdout. With its end, values are complete.
func (p *printed) Read(b []byte) (int, error) {
	n, err := p.from.Read(b)
	if errors.Is(err, io.EOF) {
		p.complete()
	}
	return n, err
}

// Close waits for the end of the command. Unread output is lost.
func (p *printed) Close() error {
	_, _ = io.Copy(io.Discard, p.from) // readers get how it ended
	p.complete()
	return nil
}

// complete fills in the fields known at the end.
func (p *printed) complete() {
	p.once.Do(func() {
		<-p.ended
		if p.err != nil {
			return
		}
		stderr, cut := p.stderr.text()
		p.values["stderr"] = strings.ToValidUTF8(stderr, "\uFFFD")
		if cut {
			p.values["stderr_truncated"] = true
		}
		p.values["exit_code"] = nil
		if p.outcome.Signal == 0 {
			p.values["exit_code"] = int64(p.outcome.Exit)
		}
		if len(p.denied) > 0 {
			denied := make([]any, len(p.denied))
			for i, text := range p.denied {
				denied[i] = text
			}
			p.values["network_denied"] = denied
		}
		if len(p.outcome.Refused) > 0 {
			p.values["refused"] = textValues(p.outcome.Refused)
		}
		if p.outcome.Signal == 0 && p.outcome.Exit == exitNoProgram {
			if hint := instead(p.names...); hint != "" {
				p.values["note"] = hint
			}
		}
		if p.outcome.Limit != "" {
			p.values["limit"] = p.outcome.Limit
			p.values["exit_code"] = nil
		}
	})
}

// exitNoProgram is how a shell ends for a program that is not there (POSIX, 2.8.2).
const exitNoProgram = 127

// instead names an installed program to use for a missing one: many machines have python3
// and pip3 but neither python nor pip. Empty if there is none.
func instead(names ...string) string {
	has := func(name string) bool {
		for _, folder := range filepath.SplitList(sandbox.Path) {
			if info, err := os.Stat(filepath.Join(folder, name)); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
				return true
			}
		}
		return false
	}
	for _, name := range names {
		if name != "" && !strings.ContainsRune(name, '/') && !has(name) && has(name+"3") {
			return "there is no program " + name + " here; " + name + "3 is there"
		}
	}
	return ""
}

// textValues describes in a result the protected paths that a program was kept from.
func textValues(restored []string) []any {
	list := make([]any, len(restored))
	for i, path := range restored {
		list[i] = path
	}
	return list
}

// ends keeps the beginning and the end of a text.
type ends struct {
	mu   sync.Mutex
	head []byte // guarded by mu
	tail []byte // guarded by mu
	size int64  // guarded by mu
}

// Write takes more of the text.
func (e *ends) Write(b []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := len(b)
	e.size += int64(n)
	fit := min(n, maxStderrBytes/2-len(e.head))
	e.head = append(e.head, b[:fit]...)
	e.tail = append(e.tail, b[fit:]...)
	if over := len(e.tail) - maxStderrBytes/2; over > maxStderrBytes {
		e.tail = append(e.tail[:0], e.tail[over:]...)
	}
	return n, nil
}

// text returns the whole, or its two ends.
func (e *ends) text() (text string, cut bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	tail := e.tail[max(0, len(e.tail)-maxStderrBytes/2):]
	if int64(len(e.head)+len(tail)) == e.size {
		return string(e.head) + string(tail), false
	}
	return string(e.head) + "\n[...]\n" + string(tail), true
}
