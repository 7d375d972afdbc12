package settings

import "time"

// Limits of what settings may hold.
const (
	// MaxBytes bounds stored settings.
	MaxBytes = 512 << 10
	// MaxSystemBytes bounds a system prompt.
	MaxSystemBytes = 1 << 20
	// MaxCapTokens bounds caps, and what is left to the answer.
	MaxCapTokens = 10_000_000
	// MaxKnowledgeTimeout bounds how long a prompt waits for knowledge.
	MaxKnowledgeTimeout = 10 * time.Second
	// MaxActionBytes bounds the name of an action.
	MaxActionBytes = 64
	// MaxExamples bounds the examples, and MaxExampleBytes the text of one.
	MaxExamples     = 32
	MaxExampleBytes = 16 << 10
	// MaxSkills bounds the declared skills, and the others what one holds.
	MaxSkills           = 64
	MaxSkillNameBytes   = 128
	MaxDescriptionBytes = 1 << 10
	MaxSkillBytes       = 64 << 10
	MaxSkillTools       = 32
	// MaxAgentsBytes bounds the text in the place of the AGENTS.md of a workspace.
	MaxAgentsBytes = 64 << 10
	// MaxUserIDBytes bounds the id of a user.
	MaxUserIDBytes = 256
	// MaxLevels and MaxToolPatterns bound a choice of tools, MaxToolPatternBytes a name
	// or pattern of it.
	MaxLevels           = 3
	MaxToolPatterns     = 128
	MaxToolPatternBytes = 128
	// MaxExcluded bounds the sections that are left out.
	MaxExcluded = 32
	// MaxLayers bounds the tiers of memory whose tasks are shown.
	MaxLayers = 2
	// MaxShown bounds the memories, and the pieces of knowledge, of one prompt.
	MaxShown = 100
	// MaxEventActions bounds the actions of events that are shown.
	MaxEventActions = 32
	// MaxInstructors bounds the agents whose messages instruct.
	MaxInstructors = 32
	// MaxInjections bounds the caller's sections, and the others what one holds.
	MaxInjections      = 32
	MaxInjectionName   = 64
	MaxInjectionBytes  = 256 << 10
	MaxInjectionTokens = 12_000
	MaxPriority        = 100
	MaxTagBytes        = 64
	MaxCaps            = 64
	MaxVariation       = 0.8
	MaxToolDefinitions = 256
	MaxToolNameBytes   = 128
	MaxToolTextBytes   = 16 << 10
	MaxToolSchemaBytes = 256 << 10
)
