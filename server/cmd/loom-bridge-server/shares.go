package main

import (
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/loom-bridge/loom-bridge/bridge/agents"
	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/bridge/hand"
	"github.com/loom-bridge/loom-bridge/server"
	"github.com/loom-bridge/loom-bridge/server/domain"
)

// Sharing is how much there is of what tenants and agents share, beside
// --max-calls and --max-streams. See server.Limits for the first ones.
type Sharing struct {
	MaxWaitingCalls     int `koanf:"max-waiting-calls"`
	MaxSearches         int `koanf:"max-searches"`
	MaxRequestBytes     int `koanf:"max-request-bytes"`
	ContendedCalls      int `koanf:"contended-calls"`
	ContendedEventBytes int `koanf:"contended-event-bytes"`
	// MaxTools bounds the tools that run in this process. Default 128.
	MaxTools int `koanf:"max-tools"`
	// MaxRelayedCalls bounds the tool calls that wait for agents. Default 8,192.
	MaxRelayedCalls int `koanf:"max-relayed-calls"`
	// MaxQueuedEventBytes bounds the volatile events that wait for readers. Default
	// 256 MiB.
	MaxQueuedEventBytes int `koanf:"max-queued-event-bytes"`
	// MaxAgentToolBytes bounds what one agent's tools say of themselves, and
	// MaxTenantToolBytes what those of all agents of a tenant do. Defaults 256 KiB and
	// 4 MiB.
	MaxAgentToolBytes  int `koanf:"max-agent-tool-bytes"`
	MaxTenantToolBytes int `koanf:"max-tenant-tool-bytes"`
	// MaxStoreBytes is what all tenants together may store; each has a share. 0: as
	// much as there is room for on the disk. Default 0.
	MaxStoreBytes int `koanf:"max-store-bytes"`
	// StoreCheckInterval is the time between two measurements of what tenants store.
	// Default 10 s.
	StoreCheckInterval time.Duration `koanf:"store-check-interval"`
}

func defaultSharing() Sharing {
	l := server.DefaultLimits()
	return Sharing{
		MaxWaitingCalls: l.MaxWaitingCalls, MaxSearches: l.MaxSearches, MaxRequestBytes: l.MaxRequestBytes,
		ContendedCalls: l.ContendedCalls, ContendedEventBytes: l.ContendedEventBytes,
		MaxTools: hand.DefaultMaxRunning, MaxRelayedCalls: agents.DefaultMaxCalls,
		MaxQueuedEventBytes: events.DefaultMaxQueuedBytes,
		MaxAgentToolBytes:   agents.DefaultMaxToolBytes, MaxTenantToolBytes: agents.DefaultMaxTenantToolBytes,
		StoreCheckInterval: domain.DefaultDiskEvery,
	}
}

func sharingFlags(f *pflag.FlagSet, d Sharing) {
	f.Int("max-waiting-calls", d.MaxWaitingCalls, "calls that wait to run; more are refused")
	f.Int("max-tools", d.MaxTools, "tools that run at once; more wait")
	f.Int("max-relayed-calls", d.MaxRelayedCalls, "calls that wait for tools of agents; more are refused")
	f.Int("max-searches", d.MaxSearches, "queries of memory that run at once; more wait")
	f.Int("max-request-bytes", d.MaxRequestBytes, "requests in memory, of all calls in flight; more are refused")
	f.Int("max-queued-event-bytes", d.MaxQueuedEventBytes, "volatile events that wait for readers; beyond a tenant's share its slowest reader is cut off")
	f.Int("max-agent-tool-bytes", d.MaxAgentToolBytes, "names, descriptions and schemas of the tools that one agent provides")
	f.Int("max-tenant-tool-bytes", d.MaxTenantToolBytes, "the same of all agents of a tenant, which share it")
	f.Int("max-store-bytes", d.MaxStoreBytes, "bytes that all tenants may store; each has a share; 0 for what the disk has room for")
	f.Duration("store-check-interval", d.StoreCheckInterval, "time between two measurements of what tenants store")
	f.Int("contended-calls", d.ContendedCalls, "calls that run at once while several tenants make some; each has its part")
	f.Int("contended-event-bytes", d.ContendedEventBytes, "bytes of events a second while several tenants are there; each has its part")
}

func (c Config) checkSharing() error {
	for field, value := range map[string]int{
		"max-waiting-calls": c.MaxWaitingCalls, "max-tools": c.MaxTools, "max-relayed-calls": c.MaxRelayedCalls,
		"max-searches": c.MaxSearches, "max-request-bytes": c.MaxRequestBytes, "contended-calls": c.ContendedCalls,
		"contended-event-bytes": c.ContendedEventBytes, "max-queued-event-bytes": c.MaxQueuedEventBytes,
		"max-agent-tool-bytes": c.MaxAgentToolBytes, "max-tenant-tool-bytes": c.MaxTenantToolBytes,
	} {
		if value <= 0 || value > maxLimit {
			return &ConfigError{field, value, fmt.Sprintf("must be from 1 to %d", maxLimit)}
		}
	}
	switch {
	case c.MaxStoreBytes < 0:
		return &ConfigError{"max-store-bytes", c.MaxStoreBytes, "must not be negative; 0 is what the disk has room for"}
	case c.StoreCheckInterval <= 0:
		return &ConfigError{"store-check-interval", c.StoreCheckInterval, "must be more than zero, such as 10s"}
	}
	return nil
}
