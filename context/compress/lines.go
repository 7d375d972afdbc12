package compress

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/text"
)

// pathChars bounds the name of a file in its first line.
const pathChars = 300

// file shows the first lines of a file.
func (c *Compressor) file(j *job, f frame) []string {
	s, path := fileOf(j)
	about := fmt.Sprintf("%s, %d lines", text.HumanSize(int64(len(s))), text.CountLines(s))
	if path = oneLine(path, pathChars); path != "" {
		about = path + ": " + about
	}
	return firstLines(about, s, fileLines, f.room(fileChars))
}

// fileOf is the text of a file and its name: the content, or what stands in the
// result of a tool that reads files.
func fileOf(j *job) (text, path string) {
	if j.kind == blob.KindJSON {
		if content, ok := wrapped(j.Content, "content"); ok {
			path, _ := field(j.Content, "path")
			name, _ := textOf(path)
			return content, cmp.Or(j.Path, name)
		}
	}
	return j.Content, j.Path
}

// wrapped returns a text that a tool has put into an object. A file may be an
// object with such a key itself, so all others must be ones that tools add.
func wrapped(object, key string) (string, bool) {
	if isArray(object) {
		return "", false
	}
	added := []string{
		`"path"`, `"size"`, `"lines"`, `"offset"`, `"next_offset"`, `"truncated"`, `"success"`, `"sha256"`, `"encoding"`, `"error"`,
	}
	found := ""
	for name, value := range members(object) {
		if name == `"`+key+`"` {
			found = value
		} else if !slices.Contains(added, name) {
			return "", false
		}
	}
	return textOf(found)
}

// firstLines is a line about a text and the text's first lines. One that is too
// long ends in an ellipsis.
func firstLines(about, text string, most, room int) []string {
	l := lines{room: room}
	l.add(about)
	for n := 0; n < most && text != ""; n++ {
		line, rest, _ := strings.Cut(text, "\n")
		text = rest
		if line = strings.TrimSuffix(line, "\r"); !l.add(line) {
			l.addPart(line)
			break
		}
	}
	return l.all
}

// run is what a command printed and how it ended.
type run struct {
	text     string
	exitCode int
}

// runOf reads the output of a command: the content, or what stands in the
// result of a tool that runs commands.
func runOf(r *Result, isJSON bool) run {
	out := run{r.Content, r.ExitCode}
	if !isJSON || isArray(r.Content) {
		return out
	}
	if out.exitCode == 0 {
		code, _ := field(r.Content, "exit_code", "code", "returncode")
		out.exitCode, _ = strconv.Atoi(code)
	}
	var parts []string
	for _, key := range []string{"stdout", "output", "stderr"} {
		value, _ := field(r.Content, key)
		if text, ok := textOf(value); ok && text != "" {
			parts = append(parts, strings.TrimSuffix(text, "\n"))
		}
	}
	if len(parts) > 0 {
		out.text = strings.Join(parts, "\n")
	}
	return out
}

// exec shows how a command ended and the first lines that it printed.
func (c *Compressor) exec(j *job, f frame) []string {
	about := fmt.Sprintf("exit %d, %d lines", j.run.exitCode, text.CountLines(j.run.text))
	return firstLines(about, j.run.text, execLines, f.room(execChars))
}
