// Package shardkv divides the tenants of one service over several stores.
//
// A [Map] gives each tenant to one store: by one of [Shards] shards, which is a hash of the
// tenant's name, or by a pin. A [DB] is one engine over the stores: since every key begins
// with its tenant, the key says where it lies. The system store has what lies under no
// tenant, such as the registry of servers.
//
// What one store has is as in that store: commits, snapshots and scans of a tenant. A commit
// over two tenants is refused ([ErrTwoTenants]), wherever they lie. A snapshot is of one
// moment in each store, and those are different moments: that of the call in the stores whose
// refs it names, that of the first read in the others. A scan over several tenants goes
// through all stores in the order of the keys; what a store has of tenants that the map gives
// to another one is never seen. Where a store can't be reached, the scan yields what the
// others have and the error behind it.
//
// That all servers have one map, and what stands in each store for that, is in
// memory/kv/bridges (Division).
package shardkv
