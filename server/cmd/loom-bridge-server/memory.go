package main

import "github.com/loom-bridge/loom-bridge/memory/analysis"

// languages are the names of those that memory can be searched in.
func languages() []string {
	var names []string
	for _, l := range analysis.Languages() {
		names = append(names, l.String())
	}
	return names
}

// language returns the language of memory.
func (c Config) language() (analysis.Language, error) {
	return analysis.ParseLanguage(c.MemoryLanguage)
}
