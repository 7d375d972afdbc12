package main

import (
	"fmt"

	"github.com/spf13/pflag"

	"github.com/loom-bridge/loom-bridge/bridge/tiers"
)

// maxTierTasks bounds the capacity of a tier: more than that, and a move up reads
// and writes for too long.
const maxTierTasks = 1000

// Tiers is how many tasks the tiers of memory hold, for each session.
type Tiers struct {
	// MemoryL1Tasks is how many tasks are recent. Default 50.
	MemoryL1Tasks int `koanf:"memory-l1-tasks"`
	// MemoryL2Tasks is how many important ones are at hand. Default 100.
	MemoryL2Tasks int `koanf:"memory-l2-tasks"`
	// MemoryL3Tasks is how many summaries there are before the oldest become
	// long-term memory. Default 500.
	MemoryL3Tasks int `koanf:"memory-l3-tasks"`
}

func defaultTiers() Tiers { return Tiers{tiers.DefaultL1, tiers.DefaultL2, tiers.DefaultL3} }

func tierFlags(f *pflag.FlagSet, d Tiers) {
	f.Int("memory-l1-tasks", d.MemoryL1Tasks, "recent tasks of a session")
	f.Int("memory-l2-tasks", d.MemoryL2Tasks, "important tasks of a session at hand")
	f.Int("memory-l3-tasks", d.MemoryL3Tasks, "summaries of a session's tasks before the oldest become long-term memory")
}

func (c Config) checkTiers() error {
	for field, value := range map[string]int{
		"memory-l1-tasks": c.MemoryL1Tasks, "memory-l2-tasks": c.MemoryL2Tasks, "memory-l3-tasks": c.MemoryL3Tasks,
	} {
		if value < 1 || value > maxTierTasks {
			return &ConfigError{field, value, fmt.Sprintf("must be from 1 to %d", maxTierTasks)}
		}
	}
	return nil
}

func (c Config) tiers() tiers.Options {
	return tiers.Options{L1: c.MemoryL1Tasks, L2: c.MemoryL2Tasks, L3: c.MemoryL3Tasks}
}
