package validate

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/text"
)

// ErrInvalidRequest: fields of the request break a rule; *RequestError says
// which. Clients see the text.
var ErrInvalidRequest = errors.New("server: invalid request")

// Violation says which field of a request breaks which rule.
type Violation struct {
	// Field is the path of the field in the request, such as `messages[2].role`.
	Field string
	// Description is the rule, as a sentence without its subject.
	Description string
}

// maxViolations bounds the rules that one answer lists: enough to correct a
// request, and not as many as the items of a hostile one.
const maxViolations = 32

// RequestError lists the rules that a request breaks. It is an ErrInvalidRequest.
type RequestError struct {
	// Violations are the first ones, at most maxViolations.
	Violations []Violation
	// More is the number of further violations.
	More int
}

// All returns the violations, and one that stands for the unlisted ones.
func (e *RequestError) All() []Violation {
	if e.More == 0 {
		return e.Violations
	}
	return append(slices.Clip(e.Violations), Violation{Description: fmt.Sprintf("and %d more", e.More)})
}

func (e *RequestError) Error() string {
	parts := make([]string, len(e.Violations))
	for i, v := range e.Violations {
		parts[i] = v.Field + " " + v.Description
		if v.Field == "" {
			parts[i] = "it " + v.Description
		}
	}
	if e.More > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", e.More))
	}
	return ErrInvalidRequest.Error() + ": " + strings.Join(parts, "; ")
}

// Is makes errors.Is(err, ErrInvalidRequest) true.
func (e *RequestError) Is(target error) bool { return target == ErrInvalidRequest }

// Refuse returns the *RequestError of one violation.
func Refuse(field, problem string) error {
	return &RequestError{Violations: []Violation{{field, problem}}}
}

// checker collects the violations of one request; its zero value is empty.
type checker struct {
	violations []Violation
	more       int // violations beyond maxViolations
}

func (c *checker) add(field, format string, args ...any) {
	if len(c.violations) == maxViolations {
		c.more++
		return
	}
	c.violations = append(c.violations, Violation{Field: field, Description: fmt.Sprintf(format, args...)})
}

// err is nil when no rule is broken.
func (c *checker) err() error {
	if len(c.violations) == 0 {
		return nil
	}
	return &RequestError{Violations: c.violations, More: c.more}
}

// size refuses one over the limit.
func (c *checker) size(field string, size, limit int) {
	if size > limit {
		c.add(field, "is %d bytes, at most %d are allowed", size, limit)
	}
}

// name is text that becomes a key, so that it can't hold NUL.
func (c *checker) name(field, s string, limit int) {
	c.size(field, len(s), limit)
	if strings.IndexByte(s, 0) >= 0 {
		c.add(field, "holds a NUL character")
	}
}

// said is text that says something: a blank one would be shown, and never found.
func (c *checker) said(field, s string) {
	switch {
	case s == "":
		c.add(field, "is required")
	case strings.TrimSpace(s) == "":
		c.add(field, "has white space alone")
	}
}

// required is text that may not be empty.
func (c *checker) required(field, s string, limit int) {
	if s == "" {
		c.add(field, "is required")
	}
	c.size(field, len(s), limit)
}

// Item is the path of one item of a field.
func Item(field string, i int) string { return field + "[" + strconv.Itoa(i) + "]" }

// between refuses numbers outside low and high; both are allowed.
func (c *checker) between(field string, n, low, high int64) {
	if n < low || n > high {
		c.add(field, "is %d, it must be from %d to %d", n, low, high)
	}
}

// Printable cuts a caller's text for use inside a message.
func Printable(s string) string {
	const shown = 64 // bytes; enough to recognise a name
	return text.Cut(s, shown, text.Ellipsis)
}

// Cut returns at most limit bytes of s as valid UTF-8.
func Cut(s string, limit int) string {
	s = text.Valid(s)
	if len(s) <= limit {
		return s
	}
	return text.Cut(s, limit-len(text.Ellipsis), text.Ellipsis)
}
