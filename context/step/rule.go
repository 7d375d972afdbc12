package step

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/context/text"
)

// namePart is what the parts of a blob's name may be.
var namePart = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,31}$`)

// allArgs in a table keeps every argument, the long ones in short.
const allArgs = "*"

// rule makes the rule of a whole table.
func (t table) rule(name string) (*rule, error) {
	made := &rule{
		offload: deref(t.Offload), kind: deref(t.Kind), ext: deref(t.Ext),
		category: deref(t.Category), keep: deref(t.Keep), hide: t.Hide != nil && *t.Hide,
	}
	if name == "" || len(name) > maxRuleText {
		return nil, fmt.Errorf("the name is empty or longer than %d bytes", maxRuleText)
	}
	var ok bool
	if made.shape, ok = shapes()[deref(t.Shape)]; !ok {
		return nil, fmt.Errorf("shape %q is not one of %s", deref(t.Shape), oneOf(shapes()))
	}
	made.category = cmp.Or(made.category, made.kind)
	if t.Args != nil && !slices.Equal(*t.Args, []string{allArgs}) {
		made.args = append([]string{}, *t.Args...)
	}
	if err := made.check(); err != nil {
		return nil, err
	}
	if err := t.lines(made); err != nil {
		return nil, err
	}
	if err := t.compactLine(name, made); err != nil {
		return nil, err
	}
	return made, t.thresholds(&made.from)
}

// check says what is wrong with the words of a rule.
func (r *rule) check() error {
	switch {
	case r.offload != offloadText && r.offload != offloadResult && r.offload != offloadNever:
		return fmt.Errorf("offload %q is not never, result or text", r.offload)
	case slices.Contains(r.args, allArgs):
		return fmt.Errorf("args has %q together with others", allArgs)
	case slices.Contains(r.args, ""):
		return fmt.Errorf("args has an empty name")
	}
	for _, part := range []struct{ key, text string }{{"kind", r.kind}, {"category", r.category}, {"ext", r.ext}} {
		if part.text == "" && part.key == "ext" {
			continue
		}
		if !namePart.MatchString(part.text) {
			return fmt.Errorf("%s %q is not 1 to 32 small letters, digits, _ and -", part.key, part.text)
		}
	}
	return nil
}

// lines reads the templates.
func (t table) lines(made *rule) (err error) {
	known := made.placeholders()
	for _, line := range []struct {
		key  string
		from *string
		to   *template
	}{
		{"observation", t.Observation, &made.observation},
		{"design", t.Design, &made.design},
		{"empty", t.Empty, &made.empty},
	} {
		if len(deref(line.from)) > maxRuleText {
			return fmt.Errorf("%s is longer than %d bytes", line.key, maxRuleText)
		}
		if *line.to, err = parseTemplate(deref(line.from), known); err != nil {
			return fmt.Errorf("%s: %w", line.key, err)
		}
	}
	if made.observation == nil {
		return fmt.Errorf("observation is empty")
	}
	return nil
}

// placeholders are the names that the rule's lines may have.
func (r *rule) placeholders() map[string]bool {
	known := map[string]bool{"tool": true, "human_size": true}
	for _, name := range slices.Concat(r.args, r.shape.figures) {
		known[name] = true
	}
	return known
}

func (t table) thresholds(to *thresholds) error {
	for _, from := range []struct {
		key  string
		from *int64
		to   *int64
	}{
		{"from_bytes", t.FromBytes, &to.bytes},
		{"from_chars", t.FromChars, &to.chars},
		{"from_lines", t.FromLines, &to.lines},
		{"from_items", t.FromItems, &to.items},
	} {
		if from.from == nil {
			continue
		}
		if *from.to = *from.from; *from.to < 1 {
			return fmt.Errorf("%s is %d, not at least 1", from.key, *from.to)
		}
	}
	return nil
}

// thresholds are the sizes from which a result is offloaded; zero is none.
type thresholds struct{ bytes, chars, lines, items int64 }

// size is how large a result is. What it does not have is zero.
type size struct {
	bytes, items int64
	// text is what characters and lines are counted in, or as much of it as is
	// held.
	text string
}

// reached reports whether a result is offloaded. shortest is the size from which
// it pays where there is no threshold.
func (t thresholds) reached(s size, shortest int64) bool {
	if t == (thresholds{}) {
		return s.bytes >= shortest
	}
	over := func(n, from int64) bool { return from > 0 && n >= from }
	return over(s.bytes, t.bytes) || over(s.items, t.items) ||
		t.chars > 0 && over(s.chars(), t.chars) || t.lines > 0 && over(text.CountLines(s.text), t.lines)
}

// chars is exact where all of the text is held.
func (s size) chars() int64 {
	if int64(len(s.text)) < s.bytes {
		return math.MaxInt64
	}
	return int64(utf8.RuneCountInString(s.text))
}

// template is a line with placeholders: literal text and names alternating, text first.
type template []string

// parseTemplate reads a line; of no text there is no template.
func parseTemplate(line string, known map[string]bool) (template, error) {
	if line == "" {
		return nil, nil
	}
	var made template
	rest := line
	for {
		literal, more, found := strings.Cut(rest, "{")
		made = append(made, literal)
		if !found {
			return made, nil
		}
		name, after, closed := strings.Cut(more, "}")
		if !closed {
			return nil, fmt.Errorf("a brace is not closed in %q", line)
		}
		if !known[name] {
			return nil, fmt.Errorf("unknown placeholder {%s}, there are %s", name, oneOf(known))
		}
		made, rest = append(made, name), after
	}
}

// fill puts values in the place of the names.
func (t template) fill(value func(name string) string) string {
	var line strings.Builder
	for i, part := range t {
		if i%2 == 1 {
			part = value(part)
		}
		line.WriteString(part)
	}
	return line.String()
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func oneOf[V any](names map[string]V) string {
	return strings.Join(slices.Sorted(maps.Keys(names)), ", ")
}
