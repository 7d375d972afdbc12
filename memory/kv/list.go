package kv

import (
	"bytes"
	"context"
	"hash/fnv"
	"iter"
	"strconv"
	"strings"
)

// Parts is how many parts the owners of a tenant are divided into, by a hash, where
// one scope for all of them would be named by every commit. It is part of the on-disk
// format (memory/FORMAT.md).
const Parts = 64

// Part is the number of the scope's part: from 0 to Parts-1.
func (s Scope) Part() int {
	sum := fnv.New32a()
	sum.Write([]byte{byte(s.Kind)})
	sum.Write([]byte(s.Owner))
	return int(sum.Sum32() % Parts)
}

// PartOf is the owner id of a part of what is kept under a name for a whole tenant.
func PartOf(name string, part int) string { return name + partMark + strconv.Itoa(part) }

// partMark stands between a name and the number of a part.
const partMark = "#"

// List is the name of a list that many owners of a tenant write to, in the keyspace
// System. It is divided into Parts scopes, so that their commits rarely name the same
// one. Stores before format 4 have it in one scope, the whole: what stands there is
// read, and deleted when it is done, and nothing is added.
type List string

// Part is the scope in which entries about an owner are written.
func (l List) Part(of Scope) Scope {
	return Scope{of.Tenant, OwnerSystem, PartOf(string(l), of.Part())}
}

// Ref is the ref of Part.
func (l List) Ref(of Scope) Ref { return Ref{System, l.Part(of)} }

// Whole is the scope of the whole tenant's list in stores before format 4.
func (l List) Whole(tenant string) Scope { return Scope{tenant, OwnerSystem, string(l)} }

// WholeRef is the ref of Whole.
func (l List) WholeRef(tenant string) Ref { return Ref{System, l.Whole(tenant)} }

// Has reports whether the scope is one of the list's.
func (l List) Has(s Scope) bool {
	if s == l.Whole(s.Tenant) {
		return true
	}
	_, number, _ := strings.Cut(s.Owner, partMark)
	part, err := strconv.Atoi(number)
	return err == nil && part >= 0 && part < Parts && s == Scope{s.Tenant, OwnerSystem, PartOf(string(l), part)}
}

// Scopes yields the scopes of the list that hold a key, of all tenants in order. It
// reads a few keys of each tenant. An error comes last, with a zero Scope.
func (l List) Scopes(ctx context.Context, from Reader) iter.Seq2[Scope, error] {
	return func(yield func(Scope, error) bool) {
		for start := []byte(nil); ; {
			scope, found, err := firstScope(ctx, from, System, Range{Start: start})
			if err != nil {
				yield(Scope{}, err)
				return
			}
			if !found || l.Has(scope) && !yield(scope, nil) {
				return
			}
			if start = l.behind(scope); start == nil {
				return
			}
		}
	}
}

// behind is where to look for the list's next scope behind one that was found.
func (l List) behind(found Scope) []byte {
	prefix := found.AppendPrefix(nil)
	first := l.Whole(found.Tenant).AppendPrefix(nil)
	end := After(append(first[:len(first)-1:len(first)-1], partMark...))
	switch {
	case bytes.Compare(prefix, first) < 0:
		return first
	case bytes.Compare(prefix, end) < 0:
		return After(prefix)
	}
	return After(append([]byte(found.Tenant), terminator))
}
