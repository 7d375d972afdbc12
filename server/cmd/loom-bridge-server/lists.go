package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// list is texts with commas between.
func list(to *[]string, unit string) scalar[[]string] {
	return scalar[[]string]{
		to: to, name: unit,
		parse: func(text string) ([]string, error) { return items(text), nil },
		print: func(values []string) string { return strings.Join(values, ",") },
	}
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

// numbers is whole numbers with commas between.
func numbers(to *[]int, unit string) scalar[[]int] {
	return scalar[[]int]{
		to: to, name: unit,
		parse: func(text string) ([]int, error) {
			var all []int
			for _, part := range items(text) {
				n, err := strconv.Atoi(part)
				if err != nil {
					return nil, fmt.Errorf("%q is not a whole number", part)
				}
				all = append(all, n)
			}
			return all, nil
		},
		print: printNumbers,
	}
}

func printNumbers(values []int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(values), " ", ","), "[]")
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

// repeats tells whether a field takes several values, with commas between. Its flag may
// then stand there several times.
func repeats(f field) bool {
	switch f.(type) {
	case scalar[[]string], scalar[[]int], scalar[map[string]int], scalar[map[string]time.Duration]:
		return true
	}
	return false
}
