package kv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
)

// Walk checks that everything in a range can be read: it calls see
// for each pair and found for each fault that see reports. Where the store
// itself can't be read, found is called and the walk ends, since it is unknown what
// would follow. The error is that of ctx, or ErrClosed.
func Walk(ctx context.Context, from Reader, ks Keyspace, r Range, found func(error), see func(Pair) error) error {
	for pair, err := range from.Scan(ctx, ks, r) {
		if err == nil {
			err = see(pair)
		} else {
			err = fmt.Errorf("the rest can't be read: %w", err)
		}
		if err == nil {
			continue
		}
		if stop := errors.Join(ctx.Err(), closed(err)); stop != nil {
			return stop
		}
		found(err)
	}
	return ctx.Err()
}

// Scopes yields every scope that has a key in a keyspace, in order. It reads one key
// of each. An error comes last, with a zero Scope.
func Scopes(ctx context.Context, from Reader, ks Keyspace) iter.Seq2[Scope, error] {
	return ScopesIn(ctx, from, ks, Range{})
}

// ScopesIn is Scopes, limited to scopes with a key in a range, such as TenantRange.
func ScopesIn(ctx context.Context, from Reader, ks Keyspace, r Range) iter.Seq2[Scope, error] {
	return ScopesOf(ctx, from, []Keyspace{ks}, r)
}

// ScopesOf is ScopesIn of several keyspaces: it yields each scope once that has a key in any.
func ScopesOf(ctx context.Context, from Reader, spaces []Keyspace, r Range) iter.Seq2[Scope, error] {
	return func(yield func(Scope, error) bool) {
		for {
			scope, found, err := firstOf(ctx, from, spaces, r)
			if err != nil {
				yield(Scope{}, err)
				return
			}
			if !found || !yield(scope, nil) {
				return
			}
			if r.Start = After(scope.AppendPrefix(nil)); r.Start == nil {
				return
			}
		}
	}
}

func firstOf(ctx context.Context, from Reader, spaces []Keyspace, r Range) (first Scope, found bool, err error) {
	for _, ks := range spaces {
		scope, there, err := firstScope(ctx, from, ks, r)
		if err != nil {
			return Scope{}, false, err
		}
		if there && (!found || bytes.Compare(scope.AppendPrefix(nil), first.AppendPrefix(nil)) < 0) {
			first, found = scope, true
		}
	}
	return first, found, nil
}

func firstScope(ctx context.Context, from Reader, ks Keyspace, r Range) (scope Scope, found bool, err error) {
	r.Limit = 1
	for pair, err := range from.Scan(ctx, ks, r) {
		if err != nil {
			return Scope{}, false, err
		}
		scope, _, err := SplitKey(pair.Key)
		return scope, err == nil, err
	}
	return Scope{}, false, nil
}

func closed(err error) error {
	if errors.Is(err, ErrClosed) {
		return ErrClosed
	}
	return nil
}
