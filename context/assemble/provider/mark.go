package provider

// What a cache mark ends.
const (
	// MarkTools ends the tools.
	MarkTools = "tools"
	// MarkStable ends what stays for the session.
	MarkStable = "stable"
	// MarkSession ends what stays for minutes.
	MarkSession = "session"
	// MarkHistory ends the settled history. There may be two: one where that of the
	// prompt before stood.
	MarkHistory = "history"
)

// Mark is a place at which a provider's cache should keep the prompt: everything up
// to it, the block itself included.
type Mark struct {
	// What says what it ends.
	What string
	// Place is the block.
	BlockPlace
	// Blocks is how many content blocks stand up to it, and Tokens what they take.
	Blocks, Tokens int
	// Expected is how many tokens the provider should read from its cache by this mark: the
	// size of the entry that the previous prompt left ending here or within the provider's
	// look-back. 0: it left none.
	Expected int
}

// BlockPlace is a content block of a prompt.
type BlockPlace struct {
	// Message is its message, from 0, or BehindTools or BehindSystem.
	Message int
	// Block is the content block of the message, from 0. A block behind the last
	// one stands for the last one.
	Block int
}

// upTo reports whether a place stands at or before another.
func (p BlockPlace) upTo(other BlockPlace) bool {
	return p.Message < other.Message || p.Message == other.Message && p.Block <= other.Block
}

// cacheControl is a mark in Anthropic's JSON.
const cacheControl = `,"cache_control":{"type":"ephemeral"}}`
