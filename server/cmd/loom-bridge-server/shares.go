package main

import "time"

// Sharing is how much there is of what tenants and agents share, beside what
// server.Limits has.
type Sharing struct {
	// MaxTools bounds the tools that run in this process.
	MaxTools int
	// MaxRelayedCalls bounds the tool calls that wait for agents.
	MaxRelayedCalls int
	// MaxQueuedEventBytes bounds the volatile events that wait for readers.
	MaxQueuedEventBytes int64
	// MaxAgentToolBytes bounds what one agent's tools say of themselves, and
	// MaxTenantToolBytes what those of all agents of a tenant do.
	MaxAgentToolBytes, MaxTenantToolBytes int
	// MaxStoreBytes is what all tenants together may store; each has a share. 0: as
	// much as there is room for on the disk.
	MaxStoreBytes int64
	// StoreCheckInterval is the time between two measurements of what tenants store.
	StoreCheckInterval time.Duration
}
