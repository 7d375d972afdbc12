package approvals

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// terminal is a terminal and the end at which a person types.
func terminal(t *testing.T) (keys, screen *os.File) {
	t.Helper()
	keys, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip(err) // a machine without terminals
	}
	t.Cleanup(func() { keys.Close() })
	fd := int(keys.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	screen, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { screen.Close() })
	return keys, screen
}

// asked calls back whenever a question stands there.
type asked func()

func (a asked) Write(p []byte) (int, error) {
	if strings.HasSuffix(string(p), ": ") {
		a()
	}
	return len(p), nil
}

// TestTypedAhead: what was typed before a question stood there answers none, neither the
// first call nor the one behind it, and what a script sends answers in order.
func TestTypedAhead(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		terminal bool
		want     string
	}{"terminal": {true, "1 DENY,2 DENY"}, "script": {false, "1 ONCE,2 ALWAYS"}} {
		c := &tools{}
		var typed io.Writer
		var in io.Reader
		if tt.terminal {
			keys, screen := terminal(t)
			typed, in = keys, screen
		} else {
			r, w := io.Pipe()
			lines := make(chan string, 9)
			go func() {
				for line := range lines {
					_, _ = io.WriteString(w, line)
				}
			}()
			defer close(lines)
			typed, in = queue(lines), r
		}
		write := func(line string) {
			if _, err := io.WriteString(typed, line); err != nil {
				t.Error(err)
			}
		}
		d := &desk{Options: Options{Out: asked(func() { write("n\n") })}, tools: c}
		read := newAnswers(in)
		write("y\nalways\n")
		for _, id := range []string{"1", "2"} {
			if err := d.show(t.Context(), pending(id, "ls"), read, true); err != nil {
				t.Fatal(err)
			}
			if tt.terminal {
				write("agent\n")
			}
		}
		if got := strings.Join(c.answers, ","); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}

type queue chan<- string

func (q queue) Write(p []byte) (int, error) { q <- string(p); return len(p), nil }
