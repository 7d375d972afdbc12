package policy

import (
	"errors"
	"fmt"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// FileError says what in a file can't be used.
type FileError struct {
	// File is its path, Line the line, from 1; 0 where it has none.
	File string
	Line int
	// Key is the key, with dots and, from 0, the numbers of list entries.
	Key string
	// Problem says what is wrong, and the allowed values.
	Problem string
}

func (e *FileError) Error() string {
	text := e.File
	if e.Line > 0 {
		text += fmt.Sprintf(", line %d", e.Line)
	}
	if e.Key != "" {
		text += ": " + e.Key
	}
	return text + ": " + e.Problem
}

// document is a TOML file that knows where its keys stand.
type document struct {
	file  string
	text  []byte
	lines map[string]int
}

// newDocument finds the lines of the keys. Errors of the text itself come from decode.
func newDocument(file string, text []byte) document {
	d := document{file, text, map[string]int{}}
	p := unstable.Parser{}
	p.Reset(text)
	table, counts := "", map[string]int{}
	for p.NextExpression() {
		e := p.Expression()
		name, line := keyOf(&p, e)
		switch e.Kind {
		case unstable.Table:
			table = numbered(name, counts)
			d.lines[table] = line
		case unstable.ArrayTable:
			outer, last := cutLast(name)
			name = joined(numbered(outer, counts), last)
			table = fmt.Sprintf("%s[%d]", name, counts[name])
			counts[name]++
			d.lines[table] = line
		case unstable.KeyValue:
			d.lines[joined(table, name)] = line
		}
	}
	return d
}

func keyOf(p *unstable.Parser, e *unstable.Node) (name string, line int) {
	var parts []string
	for keys := e.Key(); keys.Next(); {
		if line == 0 {
			line = p.Shape(keys.Node().Raw).Start.Line
		}
		parts = append(parts, string(keys.Node().Data))
	}
	return strings.Join(parts, "."), line
}

// numbered puts the number of the newest entry behind each part that is a list.
func numbered(name string, counts map[string]int) string {
	out := ""
	for part := range strings.SplitSeq(name, ".") {
		out = joined(out, part)
		if n := counts[out]; n > 0 {
			out = fmt.Sprintf("%s[%d]", out, n-1)
		}
	}
	return out
}

func joined(table, key string) string {
	if table == "" || key == "" {
		return table + key
	}
	return table + "." + key
}

func cutLast(name string) (outer, last string) {
	if at := strings.LastIndexByte(name, '.'); at >= 0 {
		return name[:at], name[at+1:]
	}
	return "", name
}

// fault is an error about a key. The line is its own, or that of what it stands in.
func (d document) fault(key, problem string, args ...any) *FileError {
	e := &FileError{File: d.file, Key: key, Problem: fmt.Sprintf(problem, args...)}
	for at := key; at != ""; {
		if e.Line = d.lines[at]; e.Line > 0 {
			break
		}
		at = at[:max(strings.LastIndexAny(at, ".["), 0)]
	}
	return e
}

// decode reads the text into a struct. Keys that it does not have are errors where mine
// says that they are of this package.
func (d document) decode(into any, mine func(key []string) bool) error {
	err := toml.NewDecoder(strings.NewReader(string(d.text))).DisallowUnknownFields().Decode(into)
	if unknown, ok := errors.AsType[*toml.StrictMissingError](err); ok {
		for i := range unknown.Errors {
			one := &unknown.Errors[i]
			if key := one.Key(); mine(key) {
				row, _ := one.Position()
				return &FileError{d.file, row, strings.Join(key, "."), "there is no such key" + allowedKeys(key)}
			}
		}
		return nil
	}
	if bad, ok := errors.AsType[*toml.DecodeError](err); ok {
		row, _ := bad.Position()
		return &FileError{d.file, row, d.keyAt(row), kindProblem(strings.TrimPrefix(bad.Error(), "toml: "))}
	}
	if err != nil {
		return &FileError{File: d.file, Problem: err.Error()}
	}
	return nil
}

// keyAt is the key of a line; empty for none.
func (d document) keyAt(line int) string {
	for key, at := range d.lines {
		if at == line {
			return key
		}
	}
	return ""
}

// kinds are what people call the types of values.
var kinds = map[string]string{
	"string": "a text in quotes", "int": "a whole number", "bool": "true or false", "[]string": "a list of texts", "[]int": "a list of whole numbers",
}

// kindProblem says in plain words that a value is of the wrong kind; other problems stay as
// the library reports them.
func kindProblem(text string) string {
	if at := strings.LastIndex(text, "of type "); at >= 0 {
		if kind, ok := kinds[strings.TrimLeft(text[at+len("of type "):], "*")]; ok {
			return "must be " + kind
		}
		return "is of the wrong kind"
	}
	return text
}
