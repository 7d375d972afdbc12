package compress

import (
	"slices"
	"strings"
)

// StrategyOf returns the strategy that fits a result: by hint, kind, name of the
// tool, and what the content looks like. The content may turn out to be
// something else.
func StrategyOf(r Result) Strategy {
	if r.Hint == HintSearch {
		return Search
	}
	if slices.Contains(Kinds(), r.Kind) {
		return r.Kind
	}
	if strategy, known := byName(r.Tool); known {
		return strategy
	}
	if strings.HasPrefix(strings.TrimLeft(r.Content, jsonSpace), "{") {
		return API
	}
	return Text
}

var colons = strings.NewReplacer(".", ":", "_", ":", "-", ":", "/", ":")

// byName knows the tools by their names, however models and clients write the
// colon.
func byName(tool string) (Strategy, bool) {
	switch colons.Replace(tool) {
	case "web:search", "fs:search", "search":
		return Search, true
	case "fs:read:file", "read:file", "cat":
		return File, true
	case "system:shell", "shell", "bash", "python:run:script", "run:script", "execute:code":
		return Exec, true
	}
	return None, false
}
