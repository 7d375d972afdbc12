package main

import (
	"strings"

	"github.com/spf13/pflag"

	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/analysis"
)

// keyMemoryLanguage is a setting of whatever opens the memory of a store.
const keyMemoryLanguage = "memory-language"

// Memory is how long-term memory searches.
type Memory struct {
	// MemoryLanguage is the language of the texts: its endings and stop words drop.
	// When it changes, the indexes of a store are made anew. Default english.
	MemoryLanguage string `koanf:"memory-language"`
	// VectorWeight is how much the nearness of vectors counts beside the words,
	// up to 1; see memory.Options. Default 0.15.
	VectorWeight float64 `koanf:"vector-weight"`
}

func defaultMemory() Memory {
	return Memory{MemoryLanguage: analysis.English.String(), VectorWeight: memory.DefaultVectorWeight}
}

func memoryFlags(f *pflag.FlagSet, d Memory) {
	f.String(keyMemoryLanguage, d.MemoryLanguage, "`language` of the texts in memory, whose endings and stop words searching drops: "+
		languages()+"; another one than before makes the index anew")
	f.Float64("vector-weight", d.VectorWeight, "how much vectors count beside words in memory, up to 1; 0.3 to 0.5 for a good model")
}

// languages are the names of those there are.
func languages() string {
	var names []string
	for _, l := range analysis.Languages() {
		names = append(names, l.String())
	}
	return strings.Join(names, ", ")
}

// language returns the language.
func (m Memory) language() (analysis.Language, error) {
	l, err := analysis.ParseLanguage(m.MemoryLanguage)
	if err != nil || m.MemoryLanguage == "" {
		return l, &ConfigError{keyMemoryLanguage, m.MemoryLanguage, "is not one of " + languages()}
	}
	return l, nil
}

// checkMemory checks the settings of long-term memory.
func (c Config) checkMemory() error {
	if !(c.VectorWeight > 0 && c.VectorWeight <= 1) {
		return &ConfigError{"vector-weight", c.VectorWeight, "is not more than 0 and at most 1"}
	}
	_, err := c.language()
	return err
}
