package redact

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
)

// ErrInvalid: a pattern breaks a rule. It comes as an *invalid.Error.
var ErrInvalid = errors.New("redact: invalid pattern")

// maxExpressionBytes bounds the text of an own pattern.
const maxExpressionBytes = 1 << 10

// Own is a pattern that the one who runs the server adds.
type Own struct {
	// Name stands in the place of what is found: letters, digits and _.
	Name string
	// Expression is a regular expression of RE2 that matches no empty text.
	Expression string
	// Literal is in every match, which makes the search for it cheap; empty where the
	// expression begins with no fixed text.
	Literal    string
	expression *regexp.Regexp
}

// ParseOwn reads NAME=EXPRESSION.
func ParseOwn(text string) (Own, error) {
	name, expression, found := strings.Cut(text, "=")
	if !found {
		return Own{}, invalid.Field(ErrInvalid, "redact-pattern", "%q is not NAME=EXPRESSION", text)
	}
	compiled, err := regexp.Compile(expression)
	switch {
	case name == "" || len(name) > MaxNameBytes || strings.IndexFunc(name, func(c rune) bool { return c >= 0x80 || !word(byte(c)) }) >= 0:
		return Own{}, invalid.Field(ErrInvalid, "redact-pattern", "%q is no name: 1 to %d letters, digits and _", name, MaxNameBytes)
	case len(expression) > maxExpressionBytes:
		return Own{}, invalid.Field(ErrInvalid, "redact-pattern", "the expression of %s is longer than %d bytes", name, maxExpressionBytes)
	case err != nil:
		return Own{}, invalid.Field(ErrInvalid, "redact-pattern", "%s: %v", name, err)
	case compiled.MatchString(""):
		return Own{}, invalid.Field(ErrInvalid, "redact-pattern", "%s matches the empty text", name)
	case compiled.MatchString(mark(name)):
		return Own{}, invalid.Field(ErrInvalid, "redact-pattern", "%s also matches its replacement, %s", name, mark(name))
	}
	literal, _ := compiled.LiteralPrefix()
	return Own{name, expression, literal, compiled}, nil
}

// checkOwn checks own patterns together.
func checkOwn(own []Own) error {
	if len(own) > MaxOwn {
		return invalid.Field(ErrInvalid, "redact-pattern", "are %d, more than %d", len(own), MaxOwn)
	}
	names := Names()
	for _, o := range own {
		if slices.Contains(names, o.Name) {
			return invalid.Field(ErrInvalid, "redact-pattern", "%q is there already", o.Name)
		}
		names = append(names, o.Name)
	}
	return nil
}
