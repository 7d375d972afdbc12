package kv

import "context"

// Sizer is an Engine that knows about how much it stores, without reading it.
type Sizer interface {
	// Size returns about how many bytes the keys and values of a range take. What was
	// written lately may be missing, and large values of the blobs keyspace are.
	Size(ctx context.Context, ks Keyspace, r Range) (int64, error)
	// Free returns how many bytes the store may grow by before its disk is full;
	// false where that is not known.
	Free() (bytes int64, known bool)
}

// Settler is a Sizer whose sizes leave out recent writes.
type Settler interface {
	// Settle returns when Size counts all that was written before the call.
	Settle(ctx context.Context) error
}

// TenantRange is the range of all keys of a tenant.
func TenantRange(tenant string) Range { return Prefix(append([]byte(tenant), terminator)) }
