package main

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/throttle"
	"github.com/loom-bridge/loom-bridge/memory/record"
	"github.com/loom-bridge/loom-bridge/memory/redact"
)

// field is where a setting keeps its value, how it is written and what it may be.
type field interface {
	// Set reads a value. Its error says what is wrong with the text.
	Set(text string) error
	// String writes the value so that Set reads it.
	String() string
	// unit names what a value is, for the help.
	unit() string
}

// scalar is a field of one word.
type scalar[T any] struct {
	to    *T
	name  string // of what it is
	parse func(text string) (T, error)
	print func(value T) string
}

func (s scalar[T]) Set(text string) error {
	value, err := s.parse(text)
	if err == nil {
		*s.to = value
	}
	return err
}

func (s scalar[T]) String() string { return s.print(*s.to) }

func (s scalar[T]) unit() string { return s.name }

// as is the same field with another name for what it is.
func (s scalar[T]) as(unit string) scalar[T] {
	s.name = unit
	return s
}

// anyText takes every text; file, directory and the like are names for it.
func anyText(to *string, unit string) scalar[string] {
	return checked(to, unit, func(string) error { return nil })
}

// checked is a text that check takes.
func checked(to *string, unit string, check func(text string) error) scalar[string] {
	return scalar[string]{
		to: to, name: unit,
		parse: func(text string) (string, error) { return text, check(text) },
		print: func(value string) string { return value },
	}
}

// required is a text that is not empty.
func required(to *string, unit string) scalar[string] {
	return checked(to, unit, func(text string) error {
		if text == "" {
			return errors.New("a " + unit + " is needed")
		}
		return nil
	})
}

// choice is one of a few names.
func choice(to *string, names ...string) scalar[string] {
	return checked(to, strings.Join(names, "|"), func(text string) error {
		if slices.Contains(names, text) {
			return nil
		}
		return errors.New("is not " + alternatives(names))
	})
}

// optional is a text that may also be empty: then the setting says nothing.
func optional(s scalar[string]) scalar[string] {
	parse := s.parse
	s.parse = func(text string) (string, error) {
		if text == "" {
			return "", nil
		}
		return parse(text)
	}
	return s
}

// alternatives are names as an error offers them: "a, b or c".
func alternatives(names []string) string {
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// yes is true or false.
func yes(to *bool) scalar[bool] {
	return scalar[bool]{
		to: to, name: "true|false",
		parse: func(text string) (bool, error) {
			value, err := strconv.ParseBool(text)
			if err != nil {
				return false, errors.New("is not true or false")
			}
			return value, nil
		},
		print: strconv.FormatBool,
	}
}

// number is a whole number from low to high.
func number[T int | int64](to *T, unit string, low, high T) scalar[T] {
	return scalar[T]{
		to: to, name: unit,
		parse: func(text string) (T, error) {
			value, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return 0, errors.New("is not a whole number")
			}
			return T(value), between(T(value), low, high)
		},
		print: func(value T) string { return strconv.FormatInt(int64(value), 10) },
	}
}

// unlimited is no upper bound of a number.
const unlimited = math.MaxInt64

func between[T int | int64](value, low, high T) error {
	switch {
	case value >= low && value <= high:
		return nil
	case high == T(unlimited):
		return fmt.Errorf("must be at least %d", low)
	}
	return fmt.Errorf("must be from %d to %d", low, high)
}

// size is a number of bytes, also written with KiB, MiB or GiB.
func size[T int | int64](to *T, low, high T) scalar[T] {
	s := number(to, "bytes", low, high)
	plain := s.parse
	s.parse = func(text string) (T, error) {
		for _, unit := range byteUnits() {
			count, ok := strings.CutSuffix(text, unit.name)
			if !ok {
				continue
			}
			value, err := strconv.ParseInt(strings.TrimSpace(count), 10, 64)
			if err != nil || value > math.MaxInt64/unit.bytes || value < math.MinInt64/unit.bytes {
				return 0, errors.New("is not a number of bytes, such as 1048576 or 1MiB")
			}
			return T(value * unit.bytes), between(T(value*unit.bytes), low, high)
		}
		return plain(text)
	}
	return s
}

type byteUnit struct {
	name  string
	bytes int64
}

// byteUnits are the units of sizes, the largest first.
func byteUnits() []byteUnit {
	return []byteUnit{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}}
}

// span is a time of at least low.
func span(to *time.Duration, low time.Duration) scalar[time.Duration] {
	return scalar[time.Duration]{
		to: to, name: "duration",
		parse: func(text string) (time.Duration, error) {
			value, err := time.ParseDuration(text)
			switch {
			case err != nil && spans.MatchString(text):
				return 0, errors.New("is longer than 2562047h, which is 292 years")
			case err != nil:
				return 0, errors.New("is not a time with a unit, such as 10s")
			case value >= low:
				return value, nil
			case low == 0:
				return 0, errors.New("must not be negative")
			}
			return 0, errors.New("must be above zero, such as 10s")
		},
		print: shortSpan,
	}
}

// spans are times with units, those included that a time.Duration is too short for.
var spans = regexp.MustCompile(`^[-+]?([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))+$`)

// positive is a time that is not zero.
func positive(to *time.Duration) scalar[time.Duration] { return span(to, 1) }

// shortSpan writes 10m for 10m0s.
func shortSpan(value time.Duration) string {
	text := value.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// fraction is more than 0 and at most 1.
func fraction(to *float64) scalar[float64] { return decimal(to, "fraction", 1) }

// decimal is more than 0 and at most some number.
func decimal(to *float64, name string, most float64) scalar[float64] {
	return scalar[float64]{
		to: to, name: name,
		parse: func(text string) (float64, error) {
			value, err := strconv.ParseFloat(text, 64)
			if err != nil || !(value > 0 && value <= most) {
				return 0, fmt.Errorf("is not a number above 0 and at most %v", most)
			}
			return value, nil
		},
		print: func(value float64) string { return strconv.FormatFloat(value, 'g', -1, 64) },
	}
}

// zeroIsNone is a number whose 0 means none, where the packages below take 0 for
// their default and less for none.
func zeroIsNone[T int | int64 | time.Duration](s scalar[T]) scalar[T] {
	parse, written := s.parse, s.print
	s.parse = func(text string) (T, error) {
		value, err := parse(text)
		if value == 0 && err == nil {
			value = -1
		}
		return value, err
	}
	s.print = func(value T) string { return written(max(value, 0)) }
	return s
}

// shown is a value as the help shows it: 64MiB for a round number of bytes.
func shown(f field) string {
	text := f.String()
	if f.unit() != "bytes" {
		return text
	}
	value, err := strconv.ParseInt(text, 10, 64)
	for _, unit := range byteUnits() {
		if err == nil && value > 0 && value%unit.bytes == 0 {
			return strconv.FormatInt(value/unit.bytes, 10) + unit.name
		}
	}
	return cmp.Or(text, "0")
}

// list is texts with commas between.
func list(to *[]string, unit string) scalar[[]string] {
	return scalar[[]string]{
		to: to, name: unit,
		parse: func(text string) ([]string, error) { return items(text), nil },
		print: func(values []string) string { return strings.Join(values, ",") },
	}
}

// origins are names of origins of records.
func origins(to *[]record.Origin) scalar[[]record.Origin] {
	return scalar[[]record.Origin]{
		to: to, name: "origin,...",
		parse: func(text string) (all []record.Origin, err error) {
			for _, name := range items(text) {
				o := record.Origin(slices.IndexFunc(originNames, func(known string) bool { return known == name }) + 1)
				if o == 0 {
					return nil, errors.New("an origin is " + alternatives(originNames))
				}
				all = append(all, o)
			}
			return all, nil
		},
		print: func(all []record.Origin) string {
			names := make([]string, len(all))
			for i, o := range all {
				names[i] = o.String()
			}
			return strings.Join(names, ",")
		},
	}
}

// redactNames are names of patterns and groups of secrets; off is none.
func redactNames(to *[]string) scalar[[]string] {
	return scalar[[]string]{
		to: to, name: "off|pattern,...",
		parse: func(text string) ([]string, error) {
			names := items(text)
			if len(names) == 1 && names[0] == redactOff {
				return nil, nil
			}
			known := append(redact.Names(), redactOwn)
			for _, name := range names {
				if !slices.Contains(known, name) {
					return nil, errors.New("is off, or some of " + strings.Join(known, ", "))
				}
			}
			return names, nil
		},
		print: func(names []string) string { return cmp.Or(strings.Join(names, ","), redactOff) },
	}
}

// Words for --redact other than names of patterns: nothing, and only the own patterns.
const (
	redactOff = "off"
	redactOwn = "own"
)

// originNames are the names of the origins, in the order of their numbers.
var originNames = []string{
	record.OriginUser.String(), record.OriginAgent.String(), record.OriginTool.String(), record.OriginWeb.String(),
}

// items are the parts of a list that are not blank.
func items(text string) []string {
	var all []string
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			all = append(all, part)
		}
	}
	return all
}

// toolRules are limits of tools with commas between.
func toolRules(to *[]throttle.Rule) scalar[[]throttle.Rule] {
	return scalar[[]throttle.Rule]{
		to: to, name: "rule,...",
		parse: func(text string) ([]throttle.Rule, error) {
			var all []throttle.Rule
			for _, part := range items(text) {
				rule, err := throttle.ParseRule(part)
				if err != nil {
					return nil, errors.New(part + ": " + err.Error())
				}
				if slices.Contains(all, rule) {
					return nil, errors.New(part + ": stands there twice")
				}
				all = append(all, rule)
			}
			if len(all) > throttle.MaxRules {
				return nil, fmt.Errorf("has %d rules, at most %d", len(all), throttle.MaxRules)
			}
			return all, nil
		},
		print: func(rules []throttle.Rule) string {
			var parts []string
			for _, rule := range rules {
				parts = append(parts, rule.String())
			}
			return strings.Join(parts, ",")
		},
	}
}

// named is whole numbers by name, written as "plan=200,goal=100", each of which check
// takes.
func named(to *map[string]int, unit string, check func(name string, value int) error) scalar[map[string]int] {
	return scalar[map[string]int]{
		to: to, name: unit, print: printNamed,
		parse: func(text string) (map[string]int, error) {
			all := map[string]int{}
			for _, part := range items(text) {
				name, number, ok := strings.Cut(part, "=")
				value, err := strconv.Atoi(strings.TrimSpace(number))
				if !ok || err != nil {
					return nil, fmt.Errorf("%q is not a name, = and a whole number", part)
				}
				name = strings.TrimSpace(name)
				if err := check(name, value); err != nil {
					return nil, errors.New(part + ": " + err.Error())
				}
				all[name] = value
			}
			return all, nil
		},
	}
}

func printNamed(values map[string]int) string {
	var parts []string
	for name, value := range values {
		parts = append(parts, fmt.Sprintf("%s=%d", name, value))
	}
	slices.Sort(parts)
	return strings.Join(parts, ",")
}

// repeats reports whether a field takes several values, with commas between. Its flag may
// then stand there several times.
func repeats(f field) bool {
	switch f.(type) {
	case scalar[[]string], scalar[[]int], scalar[[]throttle.Rule], scalar[map[string]int], scalar[map[string]time.Duration]:
		return true
	}
	return false
}
