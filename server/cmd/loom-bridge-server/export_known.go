package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// shownNames is how many agents or tenants are named when there is none of that
// name.
const shownNames = 5

// checkExists says so when there is nothing to export, and what there is.
func (e *exporter) checkExists(ctx context.Context) error {
	for _, ks := range []kv.Keyspace{kv.Log, kv.Blobs, kv.Records} {
		r := kv.Prefix(e.scope.AppendPrefix(nil))
		r.Limit = 1
		for _, err := range e.engine.Scan(ctx, ks, r) {
			if err != nil {
				return err
			}
			return e.checkSession(ctx)
		}
	}
	for _, err := range e.ownEvents(ctx) {
		return err
	}
	agents, tenants, err := e.known(ctx)
	if err != nil {
		return err
	}
	problem := "has nothing stored in the tenant " + e.scope.Tenant
	switch {
	case len(agents) > 0:
		problem += "; known agents: " + strings.Join(agents, ", ")
	case len(tenants) > 0:
		problem += "; known tenants: " + strings.Join(tenants, ", ")
	}
	return &ConfigError{"agent", e.scope.Owner, problem}
}

// checkSession says so when the session has nothing.
func (e *exporter) checkSession(ctx context.Context) error {
	if e.session == "" {
		return nil
	}
	last, err := e.log.Last(ctx, e.scope, e.session)
	if err != nil || last > 0 {
		return err
	}
	if tasks, err := e.log.LastTasks(ctx, e.scope, e.session, 1); err != nil || len(tasks) > 0 {
		return err
	}
	for _, err := range e.entries(ctx) {
		return err
	}
	for r, err := range memory.Records(ctx, e.engine, e.scope) {
		if err != nil || r.SessionID == e.session {
			return err
		}
	}
	for _, err := range e.ownEvents(ctx) {
		return err
	}
	return &ConfigError{"session", e.session, "has no entries, offloaded results, records and events of that agent"}
}

// known are the first agents of the tenant that have anything stored, and the first
// tenants that have any.
func (e *exporter) known(ctx context.Context) (agents, tenants []string, err error) {
	for _, ks := range []kv.Keyspace{kv.Log, kv.Records, kv.Blobs} {
		for scope, err := range scopes(ctx, e.engine, ks) {
			if err != nil {
				return nil, nil, err
			}
			if scope.Kind != kv.OwnerAgent {
				continue
			}
			tenants = addName(tenants, scope.Tenant)
			if scope.Tenant == e.scope.Tenant {
				agents = addName(agents, scope.Owner)
			}
		}
	}
	return agents, tenants, nil
}

// addName adds a name once, and dots in place of those that are too many.
func addName(names []string, name string) []string {
	name = fmt.Sprintf("%q", name)
	switch {
	case slices.Contains(names, name) || len(names) > shownNames:
		return names
	case len(names) == shownNames:
		return append(names, "…")
	}
	return append(names, name)
}
