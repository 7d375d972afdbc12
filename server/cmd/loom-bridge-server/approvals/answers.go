package approvals

import (
	"bufio"
	"io"
	"os"
	"strings"
)

// answers are the words that a person types, a line each.
type answers struct {
	in    io.Reader
	lines *bufio.Scanner
}

func newAnswers(in io.Reader) *answers { return &answers{in, bufio.NewScanner(in)} }

// forget drops input typed before a question was shown.
// Other input, such as that of a script, is all meant.
func (a *answers) forget() {
	if file, ok := a.in.(*os.File); ok && flush(file) {
		a.lines = bufio.NewScanner(a.in)
	}
}

// next is the next word, and why behind a no; more is false at the end of them.
func (a *answers) next() (word, why string, more bool, err error) {
	if !a.lines.Scan() {
		return "", "", false, a.lines.Err()
	}
	line := strings.TrimSpace(a.lines.Text())
	word, why, _ = strings.Cut(line, " ")
	if word = strings.ToLower(word); decisions[word] != decisions["deny"] {
		return strings.ToLower(line), "", true, nil
	}
	return word, strings.TrimSpace(why), true, nil
}
