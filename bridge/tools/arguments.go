package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/context/text"
)

// Limits of a call's arguments. They keep one call's memory and the time of
// its schema check small, whatever a model writes.
const (
	// MaxArgumentsBytes bounds the JSON text.
	MaxArgumentsBytes = 1 << 20
	// MaxArgumentsDepth bounds how deep arrays and objects are nested.
	MaxArgumentsDepth = 64
	// MaxArgumentsContainers bounds how many arrays and objects there are. Each takes
	// a hundred times the bytes of its text.
	MaxArgumentsContainers = 50_000
	// MaxNumberBytes bounds the text of one number.
	MaxNumberBytes = 128
	// MaxNumberExponent bounds a number's exponent: a check computes with exact
	// fractions, whose size grows with it.
	MaxNumberExponent = 400
)

// ParseArguments reads a JSON object. Empty text is an empty object. Numbers
// stay exact, as json.Number; of a key given twice the last value counts. Text
// over a limit, that is not UTF-8, not JSON or no object is an *ArgumentsError.
func ParseArguments(given []byte) (map[string]any, error) {
	if len(bytes.TrimSpace(given)) == 0 {
		return map[string]any{}, nil
	}
	value, err := parseValue(given)
	if err != nil {
		return nil, err
	}
	args, ok := value.(map[string]any)
	if !ok {
		return nil, malformed("arguments must be a JSON object")
	}
	return args, nil
}

// parseValue is ParseArguments for any value.
func parseValue(given []byte) (any, error) {
	if problem := checkText(given); problem != "" {
		return nil, malformed(problem)
	}
	value, err := decode(given)
	if err != nil {
		return nil, malformed(err.Error())
	}
	if problem := checkNumbers(value); problem != "" {
		return nil, malformed(problem)
	}
	return value, nil
}

func malformed(problem string) *ArgumentsError {
	return &ArgumentsError{Violations: []Violation{{Problem: problem}}}
}

func checkText(given []byte) string {
	shape := text.ShapeOf(given)
	switch {
	case len(given) > MaxArgumentsBytes:
		return fmt.Sprintf("arguments of %d bytes exceed the limit of %d", len(given), MaxArgumentsBytes)
	case !utf8.Valid(given):
		return "arguments are not UTF-8"
	case shape.Depth > MaxArgumentsDepth:
		return fmt.Sprintf("arguments are nested deeper than %d levels", MaxArgumentsDepth)
	case shape.Containers > MaxArgumentsContainers:
		return fmt.Sprintf("arguments have %d arrays and objects, more than %d", shape.Containers, MaxArgumentsContainers)
	}
	return ""
}

// decode reads one JSON value. Its errors are sentences for models.
func decode(given []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(given))
	dec.UseNumber()
	var value any
	err := dec.Decode(&value)
	if wrong, ok := errors.AsType[*json.SyntaxError](err); ok && int(wrong.Offset) <= len(given) {
		at := max(int(wrong.Offset)-1, 0)
		near := text.Head(string(given[at:]), maxNearBytes)
		return nil, fmt.Errorf("arguments are not JSON: %q at byte %d is not expected there", near, at)
	}
	if err != nil {
		return nil, errors.New("arguments are not JSON: the text ends before its last brace or quote")
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("arguments are not JSON: there is more text after the object")
	}
	return value, nil
}

// maxNearBytes bounds the text that an error quotes.
const maxNearBytes = 16

// checkNumbers returns what is wrong with the first number over a limit.
func checkNumbers(value any) string {
	switch v := value.(type) {
	case json.Number:
		return checkNumber(string(v))
	case map[string]any:
		for _, member := range v {
			if problem := checkNumbers(member); problem != "" {
				return problem
			}
		}
	case []any:
		for _, item := range v {
			if problem := checkNumbers(item); problem != "" {
				return problem
			}
		}
	}
	return ""
}

func checkNumber(text string) string {
	if len(text) > MaxNumberBytes {
		return fmt.Sprintf("a number of %d digits exceeds the limit of %d", len(text), MaxNumberBytes)
	}
	i := strings.IndexAny(text, "eE")
	if i < 0 {
		return ""
	}
	exponent, err := strconv.Atoi(text[i+1:])
	if err != nil || exponent > MaxNumberExponent || exponent < -MaxNumberExponent {
		return fmt.Sprintf("the exponent of %s exceeds the limit of %d", text, MaxNumberExponent)
	}
	return ""
}

// Integer returns a JSON number as int64 and whether it is one. 3.0 is 3, for
// JSON Schema calls both whole; beyond int64 the nearest int64 is taken.
func Integer(value any) (int64, bool) {
	number, ok := value.(json.Number)
	if !ok {
		return 0, false
	}
	if n, err := strconv.ParseInt(string(number), 10, 64); err == nil {
		return n, true
	}
	f, err := number.Float64()
	switch {
	case err != nil && !math.IsInf(f, 0):
		return 0, false
	case f >= math.MaxInt64:
		return math.MaxInt64, true
	case f <= math.MinInt64:
		return math.MinInt64, true
	}
	return int64(f), true
}
