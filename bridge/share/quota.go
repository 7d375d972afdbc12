package share

import (
	"slices"
	"sync/atomic"
	"time"
)

// Quota bounds what tenants use of something that is measured from time to time, and
// counted in between. It is a kv.Gate. All methods are safe for concurrent use; a nil
// Quota bounds nothing.
type Quota struct {
	name, setting string
	rooms         atomic.Pointer[map[string]*room]
	rest          time.Time // until when no files are rewritten; belongs to who measures
	// due gets a token when the count since the last measurement is large enough for a new
	// one.
	due chan struct{}
}

// room is what one tenant uses, as it was measured, and may use.
type room struct {
	size, limit, total int64
	since              *since
}

// half is half of a tenant's measured remaining room. Counted bytes exceed the bytes stored
// in the end, so a new measurement is made before the room is used up.
func (r *room) half() int64 { return (r.limit - r.size) / 2 }

// since is what a tenant has done since it was measured.
type since struct {
	grown   atomic.Int64
	deletes atomic.Bool
}

// NewQuota returns a quota. name is the measured unit, in the plural, and setting is the
// setting that raises the quota.
func NewQuota(name, setting string) *Quota {
	return &Quota{name: name, setting: setting, due: make(chan struct{}, 1)}
}

// Measured sets how much of total each tenant uses. A tenant may use the part of 15/16 of
// total that the others leave, or, if that is less, its max-min fair share (Level). alone
// says that there is only one tenant, which may use all of total. counted is the part of
// the bytes counted since the previous measurement that sizes include.
func (q *Quota) Measured(sizes map[string]int64, total int64, alone bool, counted map[string]int64) {
	all := make([]int64, 0, len(sizes))
	for _, size := range sizes {
		all = append(all, size)
	}
	slices.Sort(all)
	usable := total
	if !alone {
		usable -= total / kept
	}
	before, rooms := q.all(), make(map[string]*room, len(sizes))
	for tenant, size := range sizes {
		r := &room{size: size, limit: limitOf(size, all, usable), total: total, since: new(since)}
		if known := before[tenant]; known != nil {
			r.since = known.since
			r.since.grown.Add(-counted[tenant])
		}
		rooms[tenant] = r
	}
	q.rooms.Store(&rooms)
}

// limitOf is how much a tenant may use that now uses size, one of sorted: what it would have
// by Level if it wanted everything.
func limitOf(size int64, sorted []int64, total int64) int64 {
	own, found := slices.BinarySearch(sorted, size)
	left, owners := max(total, 0), int64(len(sorted))
	for i, other := range sorted {
		if found && i == own {
			continue
		}
		part := left / owners
		if other > part {
			return part
		}
		left -= other
		owners--
	}
	return left
}

// all are the rooms of all tenants; the map is not to be changed.
func (q *Quota) all() map[string]*room {
	if rooms := q.rooms.Load(); rooms != nil {
		return *rooms
	}
	return nil
}

// slack is the part of its limit (one in eight) by which what one commit adds may pass it.
// Less would refuse large commits while small ones are taken, so that it were unclear what is
// full.
const slack = 8

// Admit returns an *ExhaustedError for a tenant that is over its share, or would be far over
// it with n more.
func (q *Quota) Admit(tenant string, n int) error {
	if q == nil {
		return nil
	}
	r := q.all()[tenant]
	if r == nil {
		return nil
	}
	used, wanted := r.size+r.since.grown.Load(), int64(0)
	switch {
	case used > r.limit:
	case int64(n) <= r.limit-used+r.limit/slack:
		return nil
	default:
		wanted = int64(n)
	}
	return &ExhaustedError{
		Pool: q.name, Setting: q.setting, Quota: true, Whose: ByTenant, Name: tenant, Held: used, Wanted: wanted, Total: r.total,
	}
}

// Check is Admit for what is not known yet to add anything.
func (q *Quota) Check(tenant string) error { return q.Admit(tenant, 0) }

// Stored counts n units more of a tenant. Deletes says that it has let go of some, too, of
// which the next measurement says how many.
func (q *Quota) Stored(tenant string, n int, deletes bool) {
	if q == nil {
		return
	}
	if r := q.all()[tenant]; r != nil {
		if grown := r.since.grown.Add(int64(n)); grown >= r.half() {
			select {
			case q.due <- struct{}{}:
			default:
			}
		}
		if deletes && !r.since.deletes.Load() {
			r.since.deletes.Store(true)
		}
	}
}
