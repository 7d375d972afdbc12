package blob

import (
	"bytes"
	"encoding/json"
	"path"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/loom-bridge/loom-bridge/context/step"
)

// names finds which of some blobs a text names. It rather finds one too many
// than one too few, because what is not found is deleted.
type names struct {
	found []bool
	// by are the blobs with the first MinRefDigits digits of a ref, or with the
	// last part of a path.
	by map[string][]int
	// byStep are the blobs that a step made.
	byStep map[uint64][]int
	// lengths are those of the path parts, each once.
	lengths []int
	// bare are paths without a folder: they are looked for everywhere.
	bare []string
}

func newNames(all []Entry) *names {
	n := &names{found: make([]bool, len(all)), by: make(map[string][]int), byStep: make(map[uint64][]int)}
	for i, e := range all {
		n.by[e.Ref[:MinRefDigits]] = append(n.by[e.Ref[:MinRefDigits]], i)
		if number, ok := step.ParseID(e.StepID); ok {
			n.byStep[number] = append(n.byStep[number], i)
		}
		n.addPath(i, e.Path)
		for _, alias := range e.Aliases {
			n.addPath(i, alias)
		}
	}
	return n
}

func (n *names) addPath(i int, p string) {
	part := path.Base(p)
	parts := []string{part}
	if rest, ok := strings.CutPrefix(p, ResultsFolder); ok && len(rest) > MinRefDigits {
		ref := rest[:MinRefDigits]
		n.by[ref] = append(n.by[ref], i)
	}
	if rest, ok := strings.CutPrefix(part, CategoryRead+"_"); ok {
		parts = append(parts, "file_"+rest)
	}
	if escaped := escapedJSON(part); escaped != part {
		parts = append(parts, escaped)
	}
	for _, part := range parts {
		n.by[part] = append(n.by[part], i)
		if !slices.Contains(n.lengths, len(part)) {
			n.lengths = append(n.lengths, len(part))
		}
		if part == p {
			n.bare = append(n.bare, part)
		}
	}
}

// escapedJSON is how a name stands in JSON text that has ASCII alone.
func escapedJSON(name string) string {
	var out strings.Builder
	for _, r := range name {
		if r < 0x80 {
			out.WriteRune(r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			const digits = "0123456789abcdef"
			out.WriteString(`\u`)
			for shift := 12; shift >= 0; shift -= 4 {
				out.WriteByte(digits[unit>>shift&0xf])
			}
		}
	}
	text := out.String()
	if quoted, err := json.Marshal(name); err == nil && text == name {
		return strings.Trim(string(quoted), `"`)
	}
	return text
}

// mark notes what a text names.
func (n *names) mark(text []byte) {
	n.markPaths(text)
	n.markRefs(text)
	n.markSteps(text)
	for _, p := range n.bare {
		if bytes.Contains(text, []byte(p)) {
			n.markAll(n.by[p])
		}
	}
}

func (n *names) markAll(blobs []int) {
	for _, i := range blobs {
		n.found[i] = true
	}
}

// markPaths looks behind each slash for the last part of a path.
func (n *names) markPaths(text []byte) {
	for {
		at := bytes.IndexByte(text, '/')
		if at < 0 {
			return
		}
		text = text[at+1:]
		for _, length := range n.lengths {
			if length <= len(text) {
				n.markAll(n.by[string(text[:length])])
			}
		}
	}
}

// markRefs looks at all runs of MinRefDigits hexadecimal digits.
func (n *names) markRefs(text []byte) {
	var window [MinRefDigits]byte
	run := 0
	for i, b := range text {
		if !isHex(b) {
			run = 0
			continue
		}
		if run++; run < MinRefDigits {
			continue
		}
		for k, digit := range text[i+1-MinRefDigits : i+1] {
			window[k] = digit | 0x20 // lower case; digits stay as they are
		}
		n.markAll(n.by[string(window[:])])
	}
}

func isHex(b byte) bool {
	return '0' <= b && b <= '9' || 'a' <= b && b <= 'f' || 'A' <= b && b <= 'F'
}

// markSteps looks for step ids.
func (n *names) markSteps(text []byte) {
	prefix := []byte(stepPrefixText)
	for {
		at := bytes.Index(text, prefix)
		if at < 0 {
			return
		}
		text = text[at+len(prefix):]
		digits := 0
		var number uint64
		for digits < len(text) && digits < maxStepDigits && '0' <= text[digits] && text[digits] <= '9' {
			number = number*10 + uint64(text[digits]-'0')
			digits++
		}
		n.markAll(n.byStep[number])
	}
}

const (
	// stepPrefixText begins every step id.
	stepPrefixText = "step_"
	// maxStepDigits keeps a number within 64 bits.
	maxStepDigits = 19
)
