package server

// Services are the domain objects behind the handlers. All are required and must be
// safe for concurrent use.
type Services struct {
	// Memory keeps records.
	Memory Memory
	// Hand runs tools and records them.
	Hand Hand
	// Tasks finds tasks in the tiers of memory.
	Tasks Tasks
	// Tools lists what can be run.
	Tools Tools
	// Log holds steps and messages.
	Log Log
	// Conversations reads back what Log holds.
	Conversations Conversations
	// Blobs holds offloaded bytes.
	Blobs Blobs
	// Reads gives back what prompts leave out.
	Reads Reads
	// Tokens counts.
	Tokens Tokens
	// Assembler builds prompts.
	Assembler Assembler
	// Events carries events.
	Events Events
	// Agents knows who is attached.
	Agents Agents
}
